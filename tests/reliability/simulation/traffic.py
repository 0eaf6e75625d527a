"""What clients of the simulation send: traces cut into pieces, as requests in bytes; and which span is which."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from podtrail.otlp import Batch, Group, Status, encode_span, frame, resource_header, scope_header, split, write_request
from podtrail.testing.attempts.made import START, MadeAttempt, No

SpanKey = bytes
"""Trace id and span id, one behind the other."""

_SECOND = 1_000_000_000
_HEADERS = (resource_header({"service.name": "simulated"}), scope_header("simulation"))


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that clients have: some spans of anything, or attempt `number` to schedule Pod `pod`."""

    number: int
    spans: int = 3
    failed: bool = False
    pod: int | None = None

    def __str__(self) -> str:
        what = f"trace {self.number}" if self.pod is None else f"attempt {self.number} of Pod {self.pod}"
        return f"{what}{' (failed)' if self.failed else ''}"


@dataclass(frozen=True, slots=True)
class Piece:
    """Spans of a trace that travel side by side: those from `first` on, before `end`."""

    trace: Trace
    first: int
    end: int

    def __str__(self) -> str:
        of = len(_group(self.trace)[1])
        if (self.first, self.end) == (0, of):
            return f"{self.trace}, whole"
        return f"{self.trace}, spans {self.first + 1} to {self.end} of {of}"


def length(trace: Trace) -> int:
    """Return how many spans a trace has."""
    return len(_group(trace)[1])


@lru_cache(maxsize=4096)
def request(pieces: tuple[Piece, ...]) -> bytes:
    """Return pieces of traces as a serialized ExportTraceServiceRequest."""
    groups: list[Group] = []
    for piece in pieces:
        group, spans = _group(piece.trace)
        mine = spans[piece.first : piece.end]
        groups.append(group._replace(spans=frame(mine), span_count=len(mine)))
    return write_request(groups)


def keys_of_pieces(pieces: Iterable[Piece]) -> Sequence[SpanKey]:
    """Return which spans pieces have, in order."""
    return [key_of(raw) for piece in pieces for raw in _group(piece.trace)[1][piece.first : piece.end]]


def keys_of(batch: Batch) -> Sequence[SpanKey]:
    """Return which spans a batch has, in order."""
    return [key_of(raw) for group in batch.groups for raw in split(group.spans)]


def key_of(span: bytes) -> SpanKey:
    """Return which span this is: every encoder here writes both ids first."""
    return span[2:18] + span[20:28]


@lru_cache(maxsize=4096)
def _group(trace: Trace) -> tuple[Group, Sequence[bytes]]:
    if trace.pod is not None:
        return _attempt(trace)
    trace_id = blake2b(b"trace %d" % trace.number, digest_size=16).digest()
    begin = START + trace.number * _SECOND
    spans = [
        encode_span(
            trace_id=trace_id,
            span_id=blake2b(trace_id + bytes([at]), digest_size=8).digest(),
            parent_span_id=b"" if at == 0 else blake2b(trace_id + bytes([0]), digest_size=8).digest(),
            name="root" if at == 0 else f"step {at}",
            start=begin + at * 1_000_000,
            end=begin + (1 + trace.number % 4) * 500_000_000,
            status=Status(2, "it failed") if trace.failed and at == trace.spans - 1 else None,
            attributes={"at": at},
        )
        for at in range(trace.spans)
    ]
    return Group(*_HEADERS, trace_id, frame(spans), len(spans)), spans


def _attempt(trace: Trace) -> tuple[Group, Sequence[bytes]]:
    no = No(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=("node-1", "node-2"))
    made = MadeAttempt(
        uid=f"1f3c0a52-0000-4000-8000-{trace.pod:012d}",
        name=f"web-{trace.pod}",
        number=trace.number,
        result="Unschedulable" if trace.failed else "Success",
        start=START + trace.number * _SECOND,
        refusals=(no,) if trace.failed else (),
        nodes=3,
        stitched=False,
    )
    (group,) = made.groups()
    return group, split(group.spans)
