"""examples/several-schedulers/ as it runs: agents, their gateway, and a backend that keeps what comes."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.scheduler.collector import Collector, attributes
from tests.service.conftest import Process

EXAMPLES = Path(__file__).parents[2] / "examples" / "several-schedulers"
PODTRAIL = Path(sys.executable).parent / "podtrail"
DEADLINE = 600
CLUSTER = "production"
ANYWHERE = ("extensions.health_check.endpoint", "service.telemetry.metrics.address")
ROOMY = "processors.memory_limiter.limit_mib=1024"
"""A fork of the process that has loaded everything takes more memory than a podtrail that was started."""


class Attempt(NamedTuple):
    """An attempt as it left the gateway."""

    number: int
    node: str
    """Of the control plane, as its agent says."""
    cluster: str
    declared: int
    result: str
    key: bytes
    """Trace and span id."""


class Backend(Collector):
    """Keeps the resource of each span, too."""

    def attempts(self, pod: str) -> list[Attempt]:
        """The attempts to schedule a Pod, by their beginnings."""
        found = []
        for resource, spans in list(self.taken):
            for span in spans:
                told = attributes(span)
                if span.name == "SchedulePod" and told["k8s.pod.name"] == pod:
                    found.append((span.start_time_unix_nano, _attempt(span, told, resource)))
        return [attempt for _, attempt in sorted(found, key=lambda one: one[0])]


def _attempt(span: Span, told: Mapping[str, Any], resource: Mapping[str, str]) -> Attempt:
    return Attempt(
        told["podtrail.attempt.number"],
        resource.get("k8s.node.name", ""),
        resource.get("k8s.cluster.name", ""),
        told.get("scheduler.attempts", 0),
        told["scheduler.result"],
        span.trace_id + span.span_id,
    )


class Site:
    """Agents and gateway as the example has them, and the backend behind."""

    def __init__(self, folder: Path, backend: Backend, settings: Sequence[str] = ()) -> None:
        self._folder = folder
        self._running: list[Process] = []
        self.backend = backend
        self.gateway = self._run(
            "gateway",
            "gateway.yaml",
            {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{backend.endpoint}"},
            "processors.tail_sampling.decision_wait_after_root_received=1s",
            "processors.link_stitching.reorder_wait=3s",
            "extensions.viewer.endpoint=127.0.0.1:0",
            "extensions.viewer.otlp_endpoint=127.0.0.1:0",
            "service.pipelines.traces.exporters=[otlp_grpc]",
            *settings,
        )
        self.address = f"http://127.0.0.1:{self.gateway.port()}"

    def agent(self, node: str, example: str, environment: Mapping[str, str], *settings: str) -> Process:
        """Starts the agent of a node."""
        about = {"CLUSTER": CLUSTER, "NODE_NAME": node, "GATEWAY": self.address}
        return self._run(node, example, about | dict(environment), *settings)

    def _run(self, name: str, example: str, environment: Mapping[str, str], *settings: str) -> Process:
        folder = self._folder / name
        folder.mkdir()
        sets = [*(f"{key}=127.0.0.1:0" for key in ANYWHERE), ROOMY, *settings]
        arguments = ["run", "--config", str(EXAMPLES / example), *(f"--set={each}" for each in sets)]
        token = self._folder / "token"
        token.write_text("what agents show to the gateway\n")
        common = {"LISTEN": "127.0.0.1:0", "TOKEN_FILE": str(token)}
        process = Process([str(PODTRAIL)], arguments, folder, common | dict(environment))
        self._running.append(process)
        return process.ready()

    def close(self) -> None:
        """Ends all of it."""
        for process in self._running:
            process.close()


def until(read: Callable[[], Any], true: Callable[[Any], Any], told: Callable[[], str]) -> Any:
    """What is read once it is true."""
    end = time.monotonic() + DEADLINE
    while not true(found := read()):
        assert time.monotonic() < end, f"still {found}\n{told()}"
        time.sleep(0.05)
    return found


@pytest.fixture
def settings() -> Sequence[str]:
    """How the gateway differs from the example; for tests to override."""
    return ()


@pytest.fixture
def site(tmp_path: Path, settings: Sequence[str]) -> Iterator[Site]:
    """A gateway that runs, and a backend."""
    backend = Backend()
    it = Site(tmp_path, backend, settings)
    try:
        yield it
    finally:
        it.close()
        backend.stop()
