"""The reorder window: groups that are held until late ones have had their time, by when they are due."""

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from podtrail.otlp import Group, raw_span_reader
from podtrail.pod_identity import PodClues

_SPAN_BYTES = 250
_CLUES_BYTES = 900
"""What a held span, and what it says of its Pod, take beside its own bytes, at most, as measured."""

_read_ids = raw_span_reader(("span_id",))


class Held(NamedTuple):
    """A group that is held, ordered by when it is due, then by when it came; times in Unix nanoseconds."""

    due: int
    order: int
    arrived: int
    group: Group
    clues: Mapping[bytes, PodClues]
    """What its spans say of their Pods, by span id."""
    creating: Mapping[bytes, str]
    """The audit ids of its requests that are to create something, by span id."""


class SavedHeld(NamedTuple):
    """A held group in a saved state."""

    due: int
    order: int
    arrived: int
    group: Group
    clues: tuple[PodClues, ...]
    creating: tuple[tuple[bytes, str], ...]


class SavedWindow(NamedTuple):
    """What is held, in a saved state."""

    held: tuple[SavedHeld, ...]
    order: int


class ReorderWindow:
    """Held groups; what is due first comes out first."""

    def __init__(self) -> None:
        self._heap: list[Held] = []
        self._keys: Counter[bytes] = Counter()
        self._order = 0
        self.spans = 0
        self.size = 0
        """Bytes that the held spans take."""

    def __len__(self) -> int:
        return len(self._heap)

    def put(
        self,
        group: Group,
        arrived: int,
        due: int,
        clues: Mapping[bytes, PodClues],
        creating: Mapping[bytes, str],
    ) -> None:
        """Take a group in, with what its spans say."""
        self._order += 1
        self._hold(Held(due, self._order, arrived, group, clues, creating))

    def _hold(self, held: Held) -> None:
        group, clues = held.group, held.clues
        heappush(self._heap, held)
        self._keys.update(_keys_of(group))
        self.spans += group.span_count
        self.size += len(group.spans) + group.span_count * _SPAN_BYTES + len(clues) * _CLUES_BYTES

    def take(self) -> Held:
        """Take out what is due first.

        Raises:
            IndexError: nothing is inside.
        """
        held = heappop(self._heap)
        group = held.group
        for key in _keys_of(group):
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]
        self.spans -= group.span_count
        self.size -= len(group.spans) + group.span_count * _SPAN_BYTES + len(held.clues) * _CLUES_BYTES
        return held

    def due(self) -> int | None:
        """Return when the next is due."""
        return self._heap[0].due if self._heap else None

    def oldest(self) -> int | None:
        """Return the earliest arrival inside."""
        return min((held.arrived for held in self._heap), default=None)

    def holds(self, span: bytes) -> bool:
        """Say whether the span with this trace and span id (24 bytes) is inside."""
        return span in self._keys

    def saved(self) -> "SavedWindow":
        """Return what is held."""
        held = [
            SavedHeld(
                one.due, one.order, one.arrived, one.group, tuple(one.clues.values()), tuple(one.creating.items())
            )
            for one in self._heap
        ]
        return SavedWindow(tuple(held), self._order)

    def restore(self, saved: "SavedWindow") -> None:
        """Hold what was held."""
        for one in saved.held:
            clues = {clue.span_id: clue for clue in one.clues}
            self._hold(Held(one.due, one.order, one.arrived, one.group, clues, dict(one.creating)))
        self._order = saved.order

    def move_in(self, other: "ReorderWindow") -> None:
        """Take in all that another holds, with its arrivals and deadlines, and leave that one empty."""
        while other:
            held = other.take()
            self.put(held.group, held.arrived, held.due, held.clues, held.creating)


def _keys_of(group: Group) -> Iterable[bytes]:
    return [group.trace_id + span.span_id for span in _read_ids(group.spans)]
