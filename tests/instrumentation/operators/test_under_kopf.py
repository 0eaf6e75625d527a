"""Handlers of every kind, called by kopf itself: an operator's process on a real API server."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.envtest.control_plane import ControlPlane
from tests.scheduler.collector import Collector, attributes

pytestmark = pytest.mark.control_plane

DEADLINE = 60
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OPERATOR = """
import asyncio
import os

import kopf
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import get_current_span
from podtrail_instrumentation import SpanCounters, TracingConfiguration, shutdown, tracer_provider
from podtrail_instrumentation.operators import OperatorTracing

configuration = TracingConfiguration(endpoint=os.environ["ENDPOINT"], sampling_rate_per_million=1_000_000)
provider = tracer_provider(configuration, Resource({"service.name": "operator"}), SpanCounters())
tracing = OperatorTracing(provider.get_tracer("operator"))
ours = {"labels": {"for": "tests"}}


@kopf.on.cleanup()
def end(**_):
    shutdown(provider)


@kopf.on.create("v1", "configmaps", **ours)
@tracing.handler
def plain(patch, **_):
    get_current_span().set_attribute("seen", True)
    return None


@kopf.on.update("v1", "configmaps", field="data", **ours)
@tracing.handler
async def awaited(retry, **_):
    await asyncio.sleep(0)
    get_current_span().set_attribute("seen", True)
    if not retry:
        raise kopf.TemporaryError("not yet", delay=0.1)


@kopf.on.update("v1", "configmaps", field="data", **ours)
@tracing.handler
async def parent(**_):
    @kopf.subhandler(id="child")
    @tracing.handler
    def child(**_):
        get_current_span().set_attribute("seen", True)

    await kopf.execute()


@kopf.timer("v1", "configmaps", interval=0.1, **ours)
@tracing.handler
def ticking(**_):
    get_current_span().set_attribute("seen", True)


@kopf.daemon("v1", "configmaps", cancellation_timeout=1, **ours)
async def daemon(stopped, **arguments):
    while not stopped:
        await looking(**arguments)
        await stopped.wait(0.1)


@kopf.daemon("v1", "configmaps", cancellation_timeout=1, **ours)
@tracing.handler
def threaded(stopped, **_):
    stopped.wait()


@tracing.handler
async def looking(**_):
    get_current_span().set_attribute("seen", True)


@kopf.on.event("v1", "configmaps", **ours)
@tracing.handler
async def watched(**_):
    get_current_span().set_attribute("seen", True)


@kopf.on.delete("v1", "configmaps", **ours)
@tracing.handler
def gone(**_):
    raise kopf.PermanentError("can't be undone")
"""


@pytest.fixture
def collector() -> Iterator[Collector]:
    it = Collector()
    yield it
    it.stop()


@pytest.fixture
def operator(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, collector: Collector
) -> Iterator["subprocess.Popen[bytes]"]:
    (tmp_path / "operator.py").write_text(OPERATOR)
    command: list[str | Path] = [
        Path(sys.executable).parent / "kopf",
        "run",
        "--standalone",
        "-n",
        namespace,
        tmp_path / "operator.py",
    ]
    environment = {
        **os.environ,
        "KUBECONFIG": str(control_plane.kubeconfig),
        "ENDPOINT": collector.endpoint,
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        running.wait()


def spans(collector: Collector, handler: str) -> list[Span]:
    return [span for span in list(collector.spans) if span.name == f"reconcile {handler}"]


def until(read: Callable[[], Any], log: Path) -> Any:
    deadline = time.monotonic() + DEADLINE
    while not (found := read()):
        assert time.monotonic() < deadline, log.read_text()[-5000:]
        time.sleep(0.05)
    return found


def test_handlers_of_every_kind_are_traced(
    control_plane: ControlPlane,
    namespace: str,
    operator: "subprocess.Popen[bytes]",
    collector: Collector,
    tmp_path: Path,
) -> None:
    api, path, log = control_plane.api, f"/api/v1/namespaces/{namespace}/configmaps", tmp_path / "log"
    metadata = {"name": "blue", "labels": {"for": "tests"}, "annotations": {"tracing.k8s.io/traceparent": TRACEPARENT}}
    made = api.create(path, {"metadata": metadata, "data": {"a": "1"}})
    for handler in ("plain", "ticking", "looking", "watched"):
        found = until(partial(spans, collector, handler), log)[0]
        told = attributes(found)
        assert (told["seen"], told["k8s.object.uid"], told["kopf.outcome"]) == (
            True,
            made["metadata"]["uid"],
            "succeeded",
        )
        assert [link.trace_id.hex() for link in found.links] == [TRACEPARENT[3:35]]
        assert not found.parent_span_id

    api.patch(f"{path}/blue", {"data": {"a": "2"}})
    child = until(lambda: spans(collector, "parent.<locals>.child"), log)[0]
    parents = until(lambda: spans(collector, "parent"), log)
    [parent] = [span for span in parents if span.span_id == child.parent_span_id]
    assert (attributes(child)["seen"], child.trace_id) == (True, parent.trace_id)
    calls = until(lambda: len(found := spans(collector, "awaited")) > 1 and found, log)
    first, second = sorted(calls, key=lambda span: span.start_time_unix_nano)
    outcomes = [(attributes(span)["kopf.retry"], attributes(span)["kopf.outcome"]) for span in (first, second)]
    assert outcomes == [(0, "retry"), (1, "succeeded")]
    assert second.links[1].span_id == first.span_id

    api.delete(f"{path}/blue")
    [gone] = until(lambda: spans(collector, "gone"), log)
    assert (gone.status.code, attributes(gone)["kopf.reason"]) == (2, "delete")
    [whole] = until(lambda: spans(collector, "threaded"), log)
    assert attributes(whole)["kopf.outcome"] == "succeeded"

    operator.send_signal(signal.SIGTERM)
    assert operator.wait(DEADLINE) == 0
    assert "Traceback" not in log.read_text()
