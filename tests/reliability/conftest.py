"""`podtrail run` between real senders and backends that stall, fail or come back, and disks that are full."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.service.conftest import (
    TRACES,
    Process,
    Start,
    black_hole,
    configure,
    json_lines,
    start,
)
from tests.service.toolbox import PATIENCE

__all__ = [
    "black_hole",
    "configure",
    "json_lines",
    "start",
]

MIB = 1 << 20
Spans = Counter[bytes]
"""Span ids, and how often they came."""


def request(number: int, spans: int = 3, padding: int = 0) -> ExportTraceServiceRequest:
    """Return request `number`: one trace, its span ids found in no other request; `padding` bytes in each span."""
    sent = ExportTraceServiceRequest()
    scope = sent.resource_spans.add().scope_spans.add()
    for at in range(spans):
        span = scope.spans.add(
            trace_id=(number + 1).to_bytes(16, "big"),
            span_id=(number * 10_000 + at + 1).to_bytes(8, "big"),
            name="SchedulePod",
            start_time_unix_nano=time.time_ns(),
            end_time_unix_nano=time.time_ns() + 1,
        )
        if padding:
            span.attributes.add(key="padding").value.string_value = "x" * padding
    return sent


def ids(sent: ExportTraceServiceRequest) -> Spans:
    """Return the ids of the spans in a request."""
    return Counter(in_order(sent))


def in_order(sent: ExportTraceServiceRequest) -> list[bytes]:
    """Return the ids of the spans in a request as they stand in it."""
    return [span.span_id for resource in sent.resource_spans for scope in resource.scope_spans for span in scope.spans]


class Backend:
    """An OTLP backend over gRPC that answers while it is open. What it has not answered has not come."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.status = grpc.StatusCode.OK
        """Other than OK: what it says instead of taking anything."""
        self.seconds = 0.0
        """How long it takes over a request."""
        self._came: Spans = Counter()
        self.sequence: list[bytes] = []
        """The ids of all spans in the order in which they came."""
        self.port = 0
        self._lock = threading.Lock()

    @property
    def came(self) -> Spans:
        """The spans that have come by now."""
        with self._lock:
            return Counter(self._came)

    def export(self, raw: bytes, context: grpc.ServicerContext) -> bytes:
        while not self.open.wait(0.02):
            if not context.is_active():
                return b""
        if self.seconds:
            threading.Event().wait(self.seconds)
        if self.status is not grpc.StatusCode.OK:
            context.abort(self.status, "told to")
        with self._lock:
            came = in_order(ExportTraceServiceRequest.FromString(raw))
            self._came.update(came)
            self.sequence += came
        return ExportTraceServiceResponse().SerializeToString()


@contextmanager
def _listening(backend: Backend) -> Iterator[Backend]:
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(backend.export)
    with ThreadPoolExecutor(24) as threads:
        server = grpc.server(threads, options=[("grpc.max_receive_message_length", -1)])
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(TRACES, {"Export": method}),))
        backend.port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield backend
        backend.open.set()
        server.stop(None).wait(PATIENCE)


@pytest.fixture
def stalled() -> Iterator[Backend]:
    """A backend that takes requests and does not answer until it is opened."""
    with _listening(Backend()) as backend:
        yield backend


@pytest.fixture
def healthy() -> Iterator[Backend]:
    """A backend that takes everything at once."""
    backend = Backend()
    backend.open.set()
    with _listening(backend):
        yield backend


@dataclass
class Answer:
    """What became of a request."""

    code: grpc.StatusCode
    seconds: float
    details: str = ""
    retry_info: bool = False

    @property
    def taken(self) -> bool:
        """Whether it was acknowledged."""
        return self.code is grpc.StatusCode.OK


def _refusal(call: Any, seconds: float) -> Answer:
    trailers = {key for key, _ in call.trailing_metadata() or ()}
    told = "google.rpc.retryinfo-bin" in trailers and "grpc-status-details-bin" in trailers
    return Answer(call.code(), seconds, call.details() or "", told)


class Sender:
    """Sends requests over gRPC and notes what was acknowledged."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._export: Any = channel.unary_unary(f"/{TRACES}/Export")
        self._number = 0
        self.acknowledged: Spans = Counter()

    def send(self, sent: ExportTraceServiceRequest, timeout: float = PATIENCE) -> Answer:
        """Send a request once."""
        began = time.monotonic()
        try:
            self._export(sent.SerializeToString(), timeout=timeout)
        except grpc.RpcError as error:
            return _refusal(error, time.monotonic() - began)
        self.acknowledged += ids(sent)
        return Answer(grpc.StatusCode.OK, time.monotonic() - began)

    def next(self, spans: int = 3, padding: int = 0) -> ExportTraceServiceRequest:
        """Return a request that was never sent."""
        self._number += 1
        return request(self._number, spans, padding)

    def send_again_until_taken(self, waiting: Sequence[ExportTraceServiceRequest]) -> None:
        """Send what was refused, as a sender does that keeps it."""
        deadline = time.monotonic() + PATIENCE
        for sent in waiting:
            while not self.send(sent).taken:
                assert time.monotonic() < deadline, "refused to the end"
                threading.Event().wait(0.05)


@pytest.fixture
def sender() -> Iterator[Callable[[Process], Sender]]:
    """Return a function that connects a sender to a process."""
    with ExitStack() as channels:

        def connect(process: Process) -> Sender:
            options = [("grpc.max_send_message_length", -1)]
            return Sender(channels.enter_context(grpc.insecure_channel(f"127.0.0.1:{process.port()}", options)))

        yield connect


Config = dict[str, Any]


def otlp_exporter(port: int, **settings: Any) -> Config:
    """Return the settings of an exporter to a backend at a port, which is tried again soon."""
    retry = {"initial_interval": "50ms", "max_interval": "200ms"}
    return {"endpoint": f"http://127.0.0.1:{port}", "retry_on_failure": retry, **settings}


def configuration(exporters: Config, processors: Config | None = None, metrics_port: int = 0) -> Config:
    """Return a configuration: otlp on free ports, the processors in their order, all exporters."""
    page = {"readers": [{"pull": {"exporter": {"prometheus": {"host": "127.0.0.1", "port": metrics_port}}}}]}
    pipeline = {"receivers": ["otlp"], "processors": list(processors or {}), "exporters": list(exporters)}
    ports = {"endpoint": "127.0.0.1:0"}
    return {
        "receivers": {"otlp": {"protocols": {"grpc": {**ports, "max_recv_msg_size_mib": 64}, "http": ports}}},
        "processors": processors or {},
        "exporters": exporters,
        "service": {
            "telemetry": {"metrics": page if metrics_port else {"level": "none"}},
            "pipelines": {"traces": pipeline},
        },
    }


def dropped(process: Process) -> int:
    """Return how many spans the warnings about a full queue say were dropped."""
    return sum(int(line.split("dropped ")[1].split()[0]) for line in process.lines if "queue is full: dropped" in line)


__all__ += ["Process", "Start"]
