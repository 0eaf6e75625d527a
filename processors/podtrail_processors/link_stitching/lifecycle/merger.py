"""`mode: merge`: spans of traces that are about one Pod are moved into the trace of its life.

A trace moves as a whole or not at all: once its first spans have left, those that come later go the same way, but for
those that turn out to be another Pod's. One that may be about several Pods, or whose Pod nobody told in time, stays as
it is.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from podtrail.component import Context
from podtrail.otlp import Group, SpanFields, Value, frame, raw_span_reader, split
from podtrail.otlp.byte_search import LINK_MARK
from podtrail.otlp.moving import move_span, relink_span
from podtrail.pod_identity import PodClues, PodDirectory, SpanSource
from podtrail.recent import Reason, Recent
from podtrail_processors.link_stitching.lifecycle.ids import root_id_of, trace_id_of

TRACE: Final = "podtrail.original.trace_id"
SPAN: Final = "podtrail.original.span_id"
PARENT: Final = "podtrail.original.parent_span_id"
"""The ids that a span came with; that of its parent where it has another one now."""

_MOST_CLUES: Final = 64
_MOST_IDS: Final = 300_000
_MOST_IDS_OF_TRACE: Final = 20_000
_TRACE_BYTES, _ID_BYTES = 700, 110
_HAS_REMOTE, _IS_REMOTE = 0x100, 0x200
_SERVER, _CONSUMER = 2, 5

_read = raw_span_reader(("span_id", "parent_span_id", "kind", "flags"))


@dataclass(slots=True)
class _SeenTrace:
    """What is remembered of a trace."""

    ids: set[bytes] = field(default_factory=set)
    clues: list[tuple[PodClues, SpanSource]] = field(default_factory=list)
    """Until it is decided."""
    uid: str | None = None
    """The Pod whose life it is moved to; "" when it stays, None while that is open."""


SavedTraces = tuple[
    tuple[bytes, int, tuple[tuple[bytes, ...], tuple[tuple[PodClues, SpanSource], ...], str | None]], ...
]
"""Traces in a saved state, each with when it was last told: its ids, its clues, the Pod."""


class Merger:
    """Decides of each trace whether it moves, and moves its spans."""

    def __init__(self, directory: PodDirectory, most_traces: int, ttl: int, context: Context) -> None:
        """Remember so many traces; `ttl` in nanoseconds."""
        self._directory = directory
        self._labels = (context.id,)
        self._traces: Recent[bytes, _SeenTrace] = Recent(most_traces, ttl, self._forgotten)
        self._ids = 0
        self._spans = context.metrics.counter(
            "otelcol_processor_link_stitching_merged",
            "Spans that left with `mode: merge`, `moved` into a Pod's life, or `stayed` as they came.",
            ("processor", "done"),
        )
        self._lost = context.metrics.counter(
            "otelcol_processor_link_stitching_merge_forgotten",
            "Traces of which merging no longer remembers whether they moved, by why.",
            ("processor", "reason"),
        )

    def size(self) -> int:
        """Return an estimate of the bytes that all entries take."""
        return len(self._traces) * _TRACE_BYTES + self._ids * _ID_BYTES

    def learn(self, group: Group, clues: Iterable[PodClues], now: int) -> None:
        """Learn from a group that comes in, whose spans say this of their Pods."""
        trace = self._traces.get(group.trace_id) or _SeenTrace()
        self._traces.put(group.trace_id, trace, now)
        before = len(trace.ids)
        if before < _MOST_IDS_OF_TRACE:
            trace.ids.update([span.span_id for span in _read(group.spans)][: _MOST_IDS_OF_TRACE - before])
        self._ids += len(trace.ids) - before
        if trace.uid is None:
            source = self._directory.source(group.resource)
            trace.clues += [(one, source) for one in clues][: _MOST_CLUES - len(trace.clues)]
        while self._ids > _MOST_IDS and len(self._traces) > 1:
            self._traces.forget_oldest()

    def expire(self, now: int) -> None:
        """Forget what is too old."""
        self._traces.expire(now)

    def deadline(self) -> int | None:
        """Return when the first trace is too old; None if there is none."""
        return self._traces.deadline()

    def shrink(self, parts: int) -> None:
        """Forget the oldest of so many equal parts."""
        self._traces.shrink(parts)

    def saved(self) -> "SavedTraces":
        """Return all traces that are remembered."""
        return tuple(
            [
                (trace_id, seen, (tuple(sorted(trace.ids)), tuple(trace.clues), trace.uid))
                for trace_id, trace, seen in self._traces.dated()
            ]
        )

    def restore(self, saved: "SavedTraces") -> None:
        """Remember traces that were saved."""
        self._ids = sum(len(ids) for _, _, (ids, _, _) in saved)
        self._traces.restore(
            [(trace_id, seen, _SeenTrace(set(ids), [*clues], uid)) for trace_id, seen, (ids, clues, uid) in saved]
        )

    def move_in(self, other: "Merger") -> None:
        """Take what another remembers; meant for an empty memory."""
        self._ids = other._ids
        self._traces.move_in(other._traces)

    def moved_to(self, trace_id: bytes) -> bytes:
        """Return the trace that the spans of a trace are moved to; b"" where they stay."""
        trace = self._traces.get(trace_id)
        uid = self._decide(trace_id, trace) if trace else ""
        return trace_id_of(uid) if uid else b""

    def _decide(self, trace_id: bytes, trace: _SeenTrace) -> str:
        if trace.uid is None:
            whole = self._directory.uid_of_trace(trace_id)
            pods = {whole} if whole else {told for clues, source in trace.clues for told in self._told(clues, source)}
            uid = pods.pop() if len(pods) == 1 else ""
            # What is a life's already was merged before.
            trace.uid = uid if uid and trace_id_of(uid) != trace_id else ""
            trace.clues.clear()
        return trace.uid

    def _told(self, clues: PodClues, source: SpanSource) -> Iterable[str]:
        """Yield the Pod that a span is about, as far as it is known that it is about one: "" for which."""
        identity = self._directory.identify(clues, source)
        return [identity.uid] if identity else []

    def merged(self, group: Group, clues: Iterable[PodClues], *, complete: bool = False) -> Group:
        """Return a group as it leaves; `complete` where a parent that was not seen will not come."""
        trace = self._traces.get(group.trace_id)
        uid = self._decide(group.trace_id, trace) if trace else ""
        if trace is None or not uid:
            self._spans.add(group.span_count, *self._labels, "stayed")
            return self.relinked(group)
        if self._is_of_another(group, clues, uid):
            self._spans.add(group.span_count, *self._labels, "another_pod")
            return self.relinked(group)
        self._spans.add(group.span_count, *self._labels, "moved")
        moved = frame(self._moved(group, trace, uid, complete=complete))
        return group._replace(trace_id=trace_id_of(uid), spans=moved)

    def _is_of_another(self, group: Group, clues: Iterable[PodClues], uid: str) -> bool:
        """Say whether a group turns out to be about another Pod than that to whose life its trace moves."""
        if self._directory.uid_of_trace(group.trace_id) == uid:
            return False
        source = self._directory.source(group.resource)
        told = {of for one in clues for of in self._told(one, source) if of}
        return bool(told) and uid not in told

    def _moved(self, group: Group, trace: _SeenTrace, uid: str, *, complete: bool) -> Iterator[bytes]:
        target, root = trace_id_of(uid), root_id_of(uid)
        for raw, span in zip(split(group.spans), _read(group.spans), strict=True):
            parent = span.parent_span_id
            attributes: dict[str, Value] = {TRACE: group.trace_id.hex(), SPAN: span.span_id.hex()}
            above = parent
            if not any(parent):
                above = root
            elif parent not in trace.ids and (complete or _is_remote(span)):
                attributes[PARENT] = parent.hex()
                above = root
            yield move_span(raw, target, above, attributes, self.moved_to)

    def relinked(self, group: Group) -> Group:
        """Return a group that stays, with links that lead to where their targets were moved."""
        if LINK_MARK.search(group.spans) is None:
            return group
        spans = [relink_span(raw, self.moved_to) for raw in split(group.spans)]
        return group._replace(spans=frame(spans))

    def _forgotten(self, _trace: bytes, trace: _SeenTrace, reason: Reason) -> None:
        self._ids -= len(trace.ids)
        self._lost.add(1, *self._labels, reason)


def _is_remote(span: SpanFields) -> bool:
    """Say whether a span's parent is another process's: only its own can be relied on to come as well."""
    if span.flags & _HAS_REMOTE:
        return bool(span.flags & _IS_REMOTE)
    return span.kind in (_SERVER, _CONSUMER)
