"""examples/several-schedulers/: an agent that hangs holds nobody up, and what it had to say finds the decision made."""

import signal
import time

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.examples.several_schedulers import DEADLINE, Site, site, until
from tests.service.conftest import TRACES, Process

__all__ = ["site"]

ONLY_FAILED = (
    'processors.tail_sampling.policies=[{"name": "failed", "type": "scheduling_result", '
    '"scheduling_result": {"results": ["Unschedulable"]}}]'
)


class Client:
    """Sends to an agent as a scheduler does."""

    def __init__(self, agent: Process) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{agent.port()}")
        self._export = self._channel.unary_unary(
            f"/{TRACES}/Export",
            request_serializer=ExportTraceServiceRequest.SerializeToString,
            response_deserializer=ExportTraceServiceResponse.FromString,
        )

    def send(self, trace: int, name: str, result: str = "") -> "grpc.Future[ExportTraceServiceResponse]":
        """Sends a span of a trace, the root of an attempt where there is a result; returns the answer to come."""
        request = ExportTraceServiceRequest()
        now = time.time_ns()
        root = b"root" + trace.to_bytes(4, "big")
        span = (
            request.resource_spans.add()
            .scope_spans.add()
            .spans.add(
                trace_id=trace.to_bytes(16, "big"),
                span_id=root if result else name.encode()[:8].ljust(8),
                parent_span_id=b"" if result else root,
                name=name,
                start_time_unix_nano=now,
                end_time_unix_nano=now + 1,
            )
        )
        if result:
            for key, value in {"scheduler.result": result, "k8s.pod.uid": f"uid-{trace}", "k8s.pod.name": name}.items():
                span.attributes.add(key=key).value.string_value = value
        return self._export.future(request, timeout=DEADLINE)

    def close(self) -> None:
        """Ends it."""
        self._channel.close()


@pytest.fixture
def settings() -> tuple[str, ...]:
    """How the gateway differs from the example."""
    return (
        ONLY_FAILED,
        "processors.tail_sampling.linked_traces.keep=false",
        "processors.tail_sampling.decision_wait_after_root_received=200ms",
        "processors.link_stitching.reorder_wait=200ms",
    )


@pytest.fixture
def agents(site: Site) -> tuple[Process, Process]:
    """Two agents of the gateway."""
    return site.agent("control-plane-1", "agent.yaml", {}), site.agent("control-plane-2", "agent.yaml", {})


def test_an_agent_that_hangs_holds_nobody_up_and_its_late_spans_follow_what_was_decided(
    site: Site, agents: tuple[Process, Process]
) -> None:
    lagging, other = agents
    slow, quick = Client(lagging), Client(other)

    def wait_for(name: str) -> None:
        until(lambda: site.backend.names, lambda names: name in names, lambda: site.gateway.log)

    try:
        slow.send(1, "SchedulePod", "Unschedulable").result()
        slow.send(2, "SchedulePod", "Success").result()
        wait_for("SchedulePod")

        lagging.tell(signal.SIGSTOP)
        of_kept, of_others = slow.send(1, "late, of a kept one"), slow.send(2, "late, of another")
        quick.send(3, "phase").result()
        quick.send(3, "SchedulePod", "Unschedulable").result()
        wait_for("phase")
        assert not of_kept.done()
        assert not of_others.done()
        assert "late, of a kept one" not in site.backend.names

        lagging.tell(signal.SIGCONT)
        of_kept.result()
        of_others.result()
        slow.send(4, "after all of it").result()
        slow.send(4, "SchedulePod", "Unschedulable").result()
        wait_for("after all of it")
        wait_for("late, of a kept one")
        assert "late, of another" not in site.backend.names
    finally:
        lagging.tell(signal.SIGCONT)
        slow.close()
        quick.close()
    nodes = {resource["k8s.node.name"] for resource, _ in site.backend.taken if "k8s.node.name" in resource}
    assert nodes == {"control-plane-1", "control-plane-2"}
