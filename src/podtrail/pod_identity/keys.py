"""A key for each trace by the Pod that it is about, so that what concerns one Pod goes one way.

The key is the Pod's `namespace/name`, told apart by cluster, for that is what all say: schedulers and kubelets name it
beside its uid, the API server in paths, and a runtime's ids lead to it once a sandbox or container was seen made. Pods
that come back under their name (StatefulSets) share it, which joins more than it must and parts nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from podtrail.otlp import Group, SpanView, split
from podtrail.pod_identity.clues import CLUE_MARK, PodClues, read_clues
from podtrail.pod_identity.directory import PodDirectory, SpanSource
from podtrail.recent import Reason, Recent, first

_MOST_PODS: Final = 16_384
_MOST_TRACES: Final = 65_536
_MOST_BYTES: Final = 48 << 20
_BUDGET_PARTS: Final = 8
_KEY_BYTES: Final = 590
"""What the key of a trace takes, as measured with the longest names."""
_PARTS: Final = 8
_TTL: Final = 3_600_000_000_000
"""An hour, nanoseconds."""

_Told = list[tuple[PodClues, SpanSource]]


def most_bytes_of_keys(budget: int) -> int:
    """Return the bytes that keys may take of a memory budget (`Context.memory_budget`)."""
    return min(_MOST_BYTES, budget // _BUDGET_PARTS) if budget else _MOST_BYTES


class PodKeys:
    """The keys of traces, batch by batch. Bounded in number, bytes and age; told the time.

    A trace keeps the key that it first left with, be it none, as long as it is remembered: what comes later of it
    follows, also where only that names the Pod.
    """

    def __init__(
        self, *, with_root: bool = False, most_traces: int = _MOST_TRACES, most_bytes: int = _MOST_BYTES
    ) -> None:
        """Make it without knowledge.

        Args:
            with_root: whether a trace goes by its Pod only if its root is among the first that come of it. Of others
                a part may be elsewhere, with somebody who can't know the Pod.
            most_traces: of how many traces the key is remembered.
            most_bytes: bytes that all it knows may take, by an upper estimate.
        """
        self._with_root = with_root
        self._most_bytes = most_bytes
        self._directory = PodDirectory(_MOST_PODS, _TTL, lambda _what, _why: None)
        self._keys: Recent[bytes, bytes | None] = Recent(most_traces, _TTL, _forgotten)
        self._now = 0
        self.known_too_late = 0
        """How many traces had left without a key before something came of them that names a Pod."""

    def keys(self, groups: Sequence[Group], now: int) -> Mapping[bytes, bytes | None]:
        """Return the key of each trace of a batch that came at `now` (Unix nanoseconds); None where no Pod is known."""
        self._now = max(self._now, now)
        self._expire(self._now)
        told = self._learn(groups)
        found: dict[bytes, bytes | None] = {}
        for trace_id in dict.fromkeys(group.trace_id for group in groups):
            clues = told.get(trace_id)
            key = self._key(clues) if clues else None
            if trace_id in self._keys:
                before = self._keys.get(trace_id)
                self.known_too_late += key is not None and before is None
                key = before
            elif key is not None and self._with_root and not _has_root(groups, trace_id, clues or ()):
                key = None
            self._keys.put(trace_id, key, self._now)
            found[trace_id] = key
        while self.size() > self._most_bytes:
            self._directory.shrink(_PARTS)
            self._keys.shrink(_PARTS)
        return found

    def size(self) -> int:
        """Return an upper estimate of the bytes that it takes."""
        return self._directory.size() + len(self._keys) * _KEY_BYTES

    def forget(self, idle: int) -> int | None:
        """Forget what is too old so many nanoseconds after the last batch.

        Returns:
            In how many nanoseconds more is too old; None if nothing is known.
        """
        now = self._now + idle
        self._expire(now)
        due = first((self._directory.deadline(), self._keys.deadline()))
        return None if due is None else due - now

    def _expire(self, now: int) -> None:
        self._directory.expire(now)
        self._keys.expire(now)

    def _learn(self, groups: Iterable[Group]) -> Mapping[bytes, _Told]:
        told: defaultdict[bytes, _Told] = defaultdict(list)
        for group in groups:
            if not CLUE_MARK.search(group.spans):
                continue
            source = self._directory.source(group.resource)
            for raw in split(group.spans):
                clues = read_clues(SpanView(raw)) if CLUE_MARK.search(raw) else None
                if clues is not None:
                    clues = clues.within(source.cluster)
                    self._directory.learn(clues, source, self._now)
                    told[group.trace_id].append((clues, source))
        return told

    def _key(self, told: _Told) -> bytes | None:
        """Return the key of a trace by the best that its spans tell: a uid, an id made for a Pod, a name."""
        directory = self._directory
        for clues, _ in told:
            if clues.uid:
                return (clues.place or directory.place_of(clues.uid) or clues.uid).encode()
        for clues, source in told:
            identity = directory.identify(clues, source) if clues.container_id or clues.sandbox_id else None
            if identity is not None and identity.uid:
                return (directory.place_of(identity.uid) or identity.uid).encode()
        for clues, _ in told:
            place, _action = directory.place_named(clues)
            if place:
                return place.encode()
        return None


def _forgotten(_trace_id: bytes, _key: bytes | None, _reason: Reason) -> None:
    """Do nothing: what comes of the trace later gets a key of its own."""


def _has_root(groups: Iterable[Group], trace_id: bytes, told: Iterable[tuple[PodClues, SpanSource]]) -> bool:
    return any(clues.root for clues, _ in told) or any(
        not SpanView(raw).parent_span_id for group in groups if group.trace_id == trace_id for raw in split(group.spans)
    )
