"""What clients send, and what is to become of it: policies are such that it follows from what was sent alone.

A sampler here waits for the root of a trace, and keeps what has a span with the attribute `keep`; so it does not matter
how long a trace took, or how often podtrail was killed meanwhile. A trace without root is undecided for ever.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podtrail.testing.attempts import MadeAttempt

KEEP = "keep"
"""The attribute that a policy keeps traces for."""
Load = Literal["plain", "sampled", "linked", "attempts"]


@dataclass(eq=False)
class Trace:
    """A trace, which comes in one or several requests."""

    id: bytes
    marked: bool
    """Whether one of its spans has what it is kept for."""
    parts: int
    sent: list[bytes] = field(default_factory=list)
    """Ids of the spans that requests were made of."""
    root: bytes = b""
    """The id of its root, once a request was made with it."""
    unsure: bool = False
    """Whether a request with a part of it was given up, and nobody knows whether it was taken."""
    rescued_by: "Trace | None" = None
    """The trace that links to it and is kept."""

    def fate(self, *, sampled: bool) -> Literal["kept", "dropped", "undecided", "unsure"]:
        """Return what is to become of it, given that its requests were taken."""
        if not sampled:
            return "kept"
        if self.unsure or (self.rescued_by is not None and self.rescued_by.unsure):
            return "unsure"
        if not self.root:
            return "undecided"
        if self.marked:
            return "kept"
        return "kept" if self.rescued_by is not None and self.rescued_by.root else "dropped"


@dataclass(eq=False)
class Request:
    """A request, and what came of sending it."""

    body: ExportTraceServiceRequest
    spans: list[tuple[Trace, bytes]]
    taken_in: int | None = None
    """The life of podtrail in which it was acknowledged."""
    tries: int = 0


class Numbers(NamedTuple):
    """What tells one Pod's attempts from another's."""

    uid: str
    name: str


class Client:
    """One that sends a request after the other."""

    def __init__(self, load: Load, seed: int, spans: int, padding: int = 0) -> None:
        """Make it; `padding` bytes are in each request beside its spans."""
        self._rng = random.Random(seed)
        self._load = load
        self._spans = spans
        self._padding = "x" * padding
        self._open: list[Trace] = []
        self._resting: list[Trace] = []
        self._decided: list[Trace] = []
        self._pods = 0
        self.traces: list[Trace] = []
        self.pods: dict[str, list[bytes]] = {}
        """Pods by uid, with the span ids of the roots of their attempts in their order."""
        self._requests = self._attempts() if load == "attempts" else self._plain()

    def next(self) -> Request:
        """Return a request that was never sent."""
        return next(self._requests)

    def closing(self) -> list[Request]:
        """Return requests that end what is undecided: all of it is to come, or to be dropped, after them."""
        requests = [self._of([self._part(trace, last=True)]) for trace in self._open]
        if self._load == "linked" and self._resting:
            requests += [self._of([self._rescuer(trace)]) for trace in self._resting]
        self._open, self._resting = [], []
        return requests

    def _plain(self) -> Iterator[Request]:
        while True:
            parts = [self._some_part() for _ in range(self._rng.choice((1, 1, 2, 3)))]
            yield self._of(parts)

    def _some_part(self) -> tuple[Trace, list[dict[str, Any]]]:
        if self._load == "plain":
            return self._part(self._trace(marked=True, parts=1), last=True)
        if self._load == "linked" and self._resting and self._rng.random() < 0.4:
            return self._rescuer(self._resting.pop(0))
        if self._decided and self._rng.random() < 0.1:
            return self._part(self._rng.choice(self._decided[-20:]), late=True)
        if len(self._open) < 6 and self._rng.random() < 0.6:
            self._open.append(self._trace(marked=self._rng.random() < 0.5, parts=self._rng.randint(1, 4)))
        if not self._open:
            return self._some_part()
        trace = self._rng.choice(self._open)
        trace.parts -= 1
        last = trace.parts <= 0
        part = self._part(trace, last=last)
        if last:
            self._open.remove(trace)
            rests = self._load == "linked" and not trace.marked
            (self._resting if rests else self._decided).append(trace)
        return part

    def _trace(self, *, marked: bool, parts: int) -> Trace:
        trace = Trace(self._rng.randbytes(16), marked, parts)
        self.traces.append(trace)
        return trace

    def _rescuer(self, resting: Trace) -> tuple[Trace, list[dict[str, Any]]]:
        trace = self._trace(marked=True, parts=1)
        resting.rescued_by = trace
        _, spans = self._part(trace, last=True)
        spans[-1]["links"] = [{"trace_id": resting.id, "span_id": resting.sent[0]}]
        return trace, spans

    def _part(self, trace: Trace, *, last: bool = False, late: bool = False) -> tuple[Trace, list[dict[str, Any]]]:
        first = not trace.sent
        spans: list[dict[str, Any]] = []
        for _ in range(1 if late else self._rng.randint(1, self._spans)):
            begun = 1_790_000_000_000_000_000 + self._rng.randrange(10**9)
            id = self._rng.randbytes(8)
            trace.sent.append(id)
            times = {"start_time_unix_nano": begun, "end_time_unix_nano": begun + 1_000_000}
            spans.append({"trace_id": trace.id, "span_id": id, "parent_span_id": b"theroot!", "name": "step", **times})
        if trace.marked and first:
            spans[0]["attributes"] = [{"key": KEEP, "value": {"string_value": "yes"}}]
        if last:
            del spans[-1]["parent_span_id"]
            trace.root = spans[-1]["span_id"]
        return trace, spans

    def _of(self, parts: Sequence[tuple[Trace, list[dict[str, Any]]]]) -> Request:
        body = ExportTraceServiceRequest()
        scope = body.resource_spans.add().scope_spans.add()
        held: list[tuple[Trace, bytes]] = []
        for trace, spans in parts:
            for span in spans:
                scope.spans.add(**span)
                held.append((trace, span["span_id"]))
        if self._padding:
            scope.spans[0].attributes.add(key="padding").value.string_value = self._padding
        return Request(body, held)

    def _attempts(self) -> Iterator[Request]:
        """Give attempts to schedule three Pods at a time, that fail but for the last; half of these are kept."""
        turns: list[Iterator[Request]] = []
        while True:
            while len(turns) < 3:
                turns.append(self._pod())
            turn = self._rng.choice(turns)
            request = next(turn, None)
            if request is None:
                turns.remove(turn)
            else:
                yield request

    def _pod(self) -> Iterator[Request]:
        self._pods += 1
        uid = f"{self._rng.getrandbits(32):08x}-0000-4000-8000-{self._pods:012}"
        roots = self.pods[uid] = []
        attempts = self._rng.randint(2, 9)
        for number in range(1, attempts + 1):
            kept = number < attempts or self._rng.random() < 0.5
            made = MadeAttempt(
                uid=uid,
                name=f"pod-{uid}",
                number=number,
                result="Success" if number == attempts else "Unschedulable",
                start=1_790_000_000_000_000_000 + number * 1_000_000_000,
                attributes={KEEP: "yes"} if kept else {},
                stitched=False,
            )
            body = ExportTraceServiceRequest()
            trace = Trace(made.trace_id, kept, 1, root=made.root_id)
            for group in made.groups():
                scope = body.resource_spans.add().scope_spans.add()
                scope.MergeFromString(group.spans)
                for span in scope.spans:
                    # Without the scheduler's own count: the memory of podtrail is what numbers go by.
                    told = [a for a in span.attributes if a.key != "scheduler.attempts"]
                    del span.attributes[:]
                    span.attributes.extend(told)
                    trace.sent.append(span.span_id)
            if kept:
                roots.append(made.root_id)
            self.traces.append(trace)
            yield Request(body, [(trace, id) for id in trace.sent])
