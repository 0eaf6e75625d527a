"""A trace while it is held: its spans as chunks of bytes, and where headers change."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from podtrail.otlp import Decision, Group
from podtrail_processors.evidence.evidence import Header
from podtrail_processors.evidence.sizes import Size
from podtrail_processors.probability import ALWAYS

TRACE_WEIGHT = 390
"""About what a trace takes in memory beside its spans, bytes."""
CHUNK_WEIGHT = 40
"""About what a chunk takes beside its own bytes."""
TURN_WEIGHT = 160
"""About what another header takes beside its own bytes."""


class FinalDecision(NamedTuple):
    """What became of a trace that is remembered for its late spans."""

    decision: Decision
    at: int | None
    """When it was decided, Unix nanoseconds; None when not by its policies."""
    threshold: int = ALWAYS
    """At which it was kept."""


UNMEASURED = Size()
FORGOTTEN = FinalDecision("not_sampled", None)
"""The state of a trace that nobody asks for any more, while a queue still holds it."""


class _Turn(NamedTuple):
    """Another header from here on."""

    header: Header
    chunks: int
    spans: int


SavedTrace = tuple[
    bytes,
    tuple[bytes, bytes],
    int,
    int,
    int,
    tuple[bytes, ...],
    int,
    int,
    FinalDecision | None,
    tuple[int, int],
    tuple[_Turn, ...] | None,
]
"""A trace in a saved state: id, header, arrival, due, last, chunks, spans, weight, state, size, turns.

A plain tuple, for there may be a hundred thousand.
"""


class TraceTable:
    """The traces of a saved state, each once, in place of which others save its number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._traces: list[HeldTrace] = []

    def number(self, trace: "HeldTrace") -> int:
        """Return the number of a trace."""
        number = self._numbers.setdefault(id(trace), len(self._traces))
        if number == len(self._traces):
            self._traces.append(trace)
        return number

    def numbers(self, traces: "Iterable[HeldTrace]") -> tuple[int, ...]:
        """Return the numbers of several traces."""
        return tuple(map(self.number, traces))

    def saved(self) -> tuple["SavedTrace", ...]:
        """Return all traces in the order of their numbers."""
        return tuple([trace.saved() for trace in self._traces])


class HeldTrace:
    """A trace: its chunks in order of arrival. Small, for there are many: no object a span, none a header."""

    __slots__ = (
        "_turns",
        "arrived",
        "chunks",
        "due",
        "header",
        "last",
        "size",
        "span_count",
        "state",
        "trace_id",
        "weight",
    )

    def __init__(self, trace_id: bytes, header: Header, arrived: int, due: int, now: int) -> None:
        self.trace_id = trace_id
        self.arrived = arrived
        """Arrival of its first span, as its batch had it."""
        self.due = due
        self.last = now
        """When its last span came in, if somebody keeps watch of that."""
        self.chunks: list[bytes] = []
        self.span_count = 0
        self.weight = TRACE_WEIGHT
        """About what it takes in memory without its headers, bytes."""
        self.header = header
        """The header of the last chunk."""
        self.state: FinalDecision | None = None
        """None while it is undecided."""
        self.size = UNMEASURED
        """As the Collector measures it, if somebody asked."""
        self._turns: list[_Turn] | None = None

    def saved(self) -> "SavedTrace":
        """Return the trace for a saved state."""
        turns = self._turns
        return (
            self.trace_id,
            self.header,
            self.arrived,
            self.due,
            self.last,
            tuple(self.chunks),
            self.span_count,
            self.weight,
            self.state,
            self.size,
            None if turns is None else tuple(turns),
        )

    @classmethod
    def restored(cls, saved: "SavedTrace", intern: Callable[[bytes, bytes], Header]) -> "HeldTrace":
        """Return a trace as it was saved; equal headers become one object by `intern`."""
        trace_id, header, arrived, due, last, chunks, spans, weight, state, size, turns = saved
        trace = cls(trace_id, intern(*header), arrived, due, last)
        trace.chunks = [*chunks]
        trace.span_count, trace.weight = spans, weight
        if size != UNMEASURED:
            trace.size = Size(*size)
        if state is not None:
            trace.state = FORGOTTEN if state == FORGOTTEN else state
        if turns is not None:
            trace._turns = [turn._replace(header=intern(*turn.header)) for turn in turns]
        return trace

    def turn_to(self, header: Header) -> None:
        """Put what is added from here on under another header."""
        if self._turns is None:
            self._turns = [_Turn(self.header, 0, 0)]
        self._turns.append(_Turn(header, len(self.chunks), self.span_count))
        self.header = header
        self.weight += TURN_WEIGHT

    def headers(self) -> Sequence[Header]:
        """Return its headers in order of arrival."""
        return (self.header,) if self._turns is None else [turn.header for turn in self._turns]

    def counts(self) -> Sequence[int]:
        """Return how many spans came under each of its headers."""
        if self._turns is None:
            return (self.span_count,)
        return [after - before for before, after in pairwise([*(turn.spans for turn in self._turns), self.span_count])]

    def groups(self, joined: bytes) -> Sequence[Group]:
        """Return its spans as groups. `joined`: its chunks put together."""
        if self._turns is None:
            return (Group(self.header.resource, self.header.scope, self.trace_id, joined, self.span_count),)
        groups: list[Group] = []
        end = _Turn(self.header, len(self.chunks), self.span_count)
        at = 0
        for turn, following in zip(self._turns, chain(self._turns[1:], [end]), strict=True):
            last = at + sum(map(len, self.chunks[turn.chunks : following.chunks]))
            spans = following.spans - turn.spans
            groups.append(Group(turn.header.resource, turn.header.scope, self.trace_id, joined[at:last], spans))
            at = last
        return groups

    def close(self, state: FinalDecision) -> None:
        """Let go of its spans."""
        self.state = state
        self.chunks = []
        self._turns = None
