"""Clients: send traces in two parts, each part again until it is acknowledged, and remember what was.

What becomes of a trace follows from what was sent alone: of a kept one every span says why.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence

import grpc

from benchmarks.loopback.wire import LARGEST, METHOD, SERVICE
from podtrail.otlp import Group, Status, Value, encode_span, frame, resource_header, scope_header, write_request

MOST_TRACES = 8_000_000
SPANS_A_TRACE = 4
_KEPT_EACH = 4
_POD_EACH = 5
"""Attempts of one Pod."""
_TRACES = 20
"""In a request, with half of the spans of each."""
_THREADS = 4
_LATER = 3
"""Requests between a trace's two parts."""
_TIMEOUT = 20.0
_PAUSE = 0.2
_COME_AGAIN = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""What OTLP/gRPC has clients send again."""
_RESOURCE = resource_header({"service.name": "kube-scheduler"})
_SCOPE = scope_header("k8s.io/kubernetes/pkg/scheduler")
_RUN = b"soak-run"


def is_kept(trace: int) -> bool:
    """Say whether a trace is one that the sampler is to keep."""
    return trace % _KEPT_EACH == 0


class Clients:
    """Threads that send so many requests a second together."""

    def __init__(self, port: int, requests: float) -> None:
        self.acknowledged = bytearray(MOST_TRACES)
        """Of each trace the spans, as bits."""
        self.tries = 0
        """Requests that were sent again."""
        self.errors: list[str] = []
        """Answers that no client can do anything about."""
        self._port = port
        self._each = _THREADS / requests
        self._stopping = threading.Event()
        self._abandoned = False
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(_THREADS)]

    def start(self) -> None:
        """Begin to send."""
        for thread in self._threads:
            thread.start()

    def stop(self, *, abandon: bool = False) -> None:
        """Return when all parts of all traces are acknowledged, or are no longer sent."""
        self._abandoned |= abandon
        self._stopping.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    @property
    def spans(self) -> int:
        """Spans that were acknowledged."""
        return sum(map(int.bit_count, self.acknowledged))

    def _run(self, number: int) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", LARGEST)]
        options += [("grpc.max_reconnect_backoff_ms", 500)]
        with grpc.insecure_channel(f"127.0.0.1:{self._port}", options=options) as channel:
            export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{SERVICE}/{METHOD}")
            due = time.monotonic()
            for traces, spans in self._parts(number):
                self._send(export, traces, spans)
                due = max(due + self._each, time.monotonic() - 1)
                if not self._stopping.is_set():
                    self._stopping.wait(max(0.0, due - time.monotonic()))

    def _parts(self, number: int) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        waiting: deque[Sequence[int]] = deque()
        first = (1 + number) * _TRACES  # no span has an id of zeros
        while not self._stopping.is_set() and first + _TRACES < MOST_TRACES:
            traces: Sequence[int] = range(first, first + _TRACES)
            first += _THREADS * _TRACES
            waiting.append(traces)
            yield traces, (2, 3)
            if len(waiting) > _LATER:
                yield waiting.popleft(), (1, 0)
        for left in waiting:
            yield left, (1, 0)

    def _send(
        self, export: "grpc.UnaryUnaryMultiCallable[bytes, bytes]", traces: Sequence[int], spans: Sequence[int]
    ) -> None:
        request = write_request([_group(trace, spans) for trace in traces])
        while True:
            try:
                answer = export(request, timeout=_TIMEOUT)
            except grpc.RpcError as error:
                if self._abandoned:
                    return
                if error.code() in _COME_AGAIN:
                    self.tries += 1
                    time.sleep(_PAUSE)
                    continue
                self.errors.append(f"{error.code()}: {error.details()}")
                return
            if answer:
                self.errors.append(f"rejected: {answer!r}")
            break
        for trace in traces:
            self.acknowledged[trace] |= sum(1 << span for span in spans)


def _group(trace: int, spans: Sequence[int]) -> Group:
    id = _RUN + trace.to_bytes(8, "big")
    status = Status(2, "0/5 nodes are available") if is_kept(trace) else None
    now = time.time_ns()
    raw = [_span(trace, id, span, status, now) for span in spans]
    return Group(_RESOURCE, _SCOPE, id, frame(raw), len(raw))


def _span(trace: int, id: bytes, span: int, status: Status | None, now: int) -> bytes:
    about: dict[str, Value] = {"scheduler.phase": "filter"}
    if span == 0:
        pod = trace // _POD_EACH
        about = {
            "k8s.pod.name": f"web-{pod}",
            "k8s.pod.namespace": "prod",
            "k8s.pod.uid": f"{pod:032x}",
            "scheduler.result": "Success" if status is None else "Unschedulable",
        }
    return encode_span(
        trace_id=id,
        span_id=trace.to_bytes(7, "big") + bytes([span]),
        parent_span_id=trace.to_bytes(7, "big") + b"\0" if span else b"",
        name="filter" if span else "SchedulePod",
        start=now - 1_000_000,
        end=now,
        attributes=about,
        status=status,
    )
