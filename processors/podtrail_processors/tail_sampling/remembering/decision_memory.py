"""`decision_memory`: the decisions on millions of traces, in a few bytes each.

What is remembered is a fingerprint of the id, so what is wrong with it is wrong in one direction: a new trace may be
taken for one that was decided, never one that is remembered for a new one. Of 32 bits where traces were kept: about one
new trace in 33 million is kept though nobody asked for it. Of 40 bits where they were not, for there a mistake costs
more: about one new trace in 8 billion is not kept. About one id in a thousand is forgotten earlier than promised.
"""

import mmap
from array import array
from hashlib import blake2b
from typing import NamedTuple

from podtrail.component import Counter, Metrics
from podtrail.otlp import Decision
from podtrail.state import StateError
from podtrail_processors.tail_sampling.config.sampler import DecisionMemoryConfig as Settings

_BUCKET = 128
"""Places in a bucket; the one that was written first is written over."""
_MEAN = 94
"""Ids that a bucket gets of as many as are promised, on average: 3.5 standard deviations fewer than it has places."""
_KEPT, _OTHER = 4, 5
"""Bytes of fingerprints."""
_HASH = 4
"""Bytes of the number by which buckets are found."""
_FLAG = 1
_PAGE = 4096
_MOST_OLDER = 3
"""So many sizes before the last one are remembered."""
_DECISIONS: tuple[Decision, ...] = ("not_sampled", "dropped", "sampled")


class SavedTable(NamedTuple):
    """A table in a saved state: pages by their place, and the next place of each bucket."""

    promised: int
    width: int
    pages: tuple[tuple[int, bytes], ...]
    following: tuple[int, ...]


class SavedDecisions(NamedTuple):
    """A memory in a saved state."""

    key: bytes
    kept: SavedTable | None
    others: SavedTable | None
    older: tuple["SavedDecisions", ...]
    older_for: int
    is_shared: bool


class Table:
    """Keys of one width in buckets, each written round and round."""

    def __init__(self, promised: int, width: int) -> None:
        """Make room for `promised` keys and half as many again."""
        self.promised = promised
        self._width = width
        self._empty = bytes(width)
        self._buckets = -(-promised // _MEAN)
        # Pages of the system's: zeros cost nothing until something is written over them.
        size = self._buckets * _BUCKET * width
        self._places = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._next = array("H", bytes(2 * self._buckets))

    def saved(self) -> "SavedTable":
        """Return what stands in it."""
        places = self._places
        pages = [(at, page) for at in range(0, len(places), _PAGE) if (page := places[at : at + _PAGE]).strip(b"\0")]
        return SavedTable(self.promised, self._width, tuple(pages), tuple(self._next))

    @classmethod
    def restored(cls, saved: "SavedTable", width: int) -> "Table":
        """Return the table that was saved.

        Raises:
            StateError: it is damaged.
        """
        buckets = -(-saved.promised // _MEAN)
        # As many buckets as there are numbers: what is written says how much memory it takes.
        if saved.width != width or saved.promised <= 0 or len(saved.following) != buckets:
            raise StateError("it is damaged: a table of decisions has another size")
        table = cls(saved.promised, width)
        size = len(table._places)
        for at, page in saved.pages:
            if at < 0 or at + len(page) > size:
                raise StateError("it is damaged: a page of decisions is out of place")
            table._places[at : at + len(page)] = page
        if min(saved.following) < 0 or max(saved.following) >= _BUCKET:
            raise StateError("it is damaged: a bucket of decisions has no such place")
        table._next = array("H", saved.following)
        return table

    def find(self, hash32: int, key: bytes) -> int:
        """Return where a key (or what begins with it) stands in its bucket; -1 when it does not."""
        width = self._width
        start = (hash32 * self._buckets >> 32) * _BUCKET * width
        end = start + _BUCKET * width
        at = self._places.find(key, start, end)
        while at >= 0 and at % width:
            at = self._places.find(key, at + 1, end)
        return at

    def put(self, hash32: int, key: bytes) -> bool:
        """Write a key in its bucket; return whether that was over another, the oldest."""
        bucket = hash32 * self._buckets >> 32
        place = self._next[bucket]
        self._next[bucket] = (place + 1) % _BUCKET
        at = (bucket * _BUCKET + place) * self._width
        overwrites = self._places[at : at + self._width] != self._empty
        self._places[at : at + self._width] = key
        return overwrites

    def byte(self, at: int) -> int:
        """Return a byte of what stands in the table."""
        return self._places[at]

    def set_byte(self, at: int, value: int) -> None:
        """Change a byte of what stands in the table."""
        self._places[at] = value

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self._places) + 2 * len(self._next)


class DecisionMemory:
    """Remembers decisions by trace id, at least as many as promised, the oldest go first.

    Where a predecessor's memory has another size, it is asked beside this one until as much has come in as it held.
    Looking a trace up takes a few microseconds, once for each part of a trace that is not held.
    """

    def __init__(self, settings: Settings, key: bytes, metrics: Metrics) -> None:
        """Make an empty memory. `key`: 16 bytes at random, so that nobody can choose ids to fit."""
        self._forgotten = metrics.counter(
            "otelcol_processor_tail_sampling_decisions_forgotten",
            "Decisions that decision_memory forgot to make room for others.",
            ("decision",),
        )
        self._key = key
        self._kept = Table(settings.kept, _KEPT) if settings.kept else None
        self._others = Table(settings.not_kept, _OTHER + _FLAG) if settings.not_kept else None
        self._older: list[DecisionMemory] = []
        self._older_for = 0
        self._is_shared = False
        self._settings = settings

    def put(self, trace_id: bytes, decision: Decision) -> bool:
        """Remember a decision; return whether there is a table for it."""
        bucket, kept, other = self._hash(trace_id)
        if self._older:
            self._older_for -= 1
            if self._older_for <= 0:
                self._older.clear()
        if decision == "sampled":
            if self._kept is not None and self._kept.find(bucket, kept) < 0 and self._kept.put(bucket, kept):
                self._forgotten.add(1, "sampled")
            return self._kept is not None
        flag = bytes([_DECISIONS.index(decision)])
        if self._others is not None and self._others.find(bucket, other) < 0 and self._others.put(bucket, other + flag):
            self._forgotten.add(1, "not_sampled")
        return self._others is not None

    def get(self, trace_id: bytes) -> Decision | None:
        """Return the decision on a trace, None when none is remembered."""
        bucket, kept, other = self._hash(trace_id)
        if self._kept is not None and self._kept.find(bucket, kept) >= 0:
            return "sampled"
        if self._others is not None and (at := self._others.find(bucket, other)) >= 0:
            return _DECISIONS[self._others.byte(at + _OTHER)]
        for memory in self._older:
            if (decision := memory.get(trace_id)) is not None:
                return decision
        return None

    def change(self, trace_id: bytes) -> None:
        """Remember a trace as kept that is remembered as not kept."""
        for memory in (self, *self._older):
            bucket, _, other = memory._hash(trace_id)
            if memory._others is not None and (at := memory._others.find(bucket, other)) >= 0:
                memory._others.set_byte(at + _OTHER, _DECISIONS.index("sampled"))

    def take_over(self, other: "DecisionMemory") -> None:
        """Go on with the tables of another; ask them beside these ones where they have another size."""
        if other._settings == self._settings and not other._is_shared:
            self._key, self._kept, self._others = other._key, other._kept, other._others
            self._older, self._older_for = other._older, other._older_for
        else:
            self._older += [other, *other._older[:_MOST_OLDER]]
            self._older_for += other.promised
            other._older = []
        other._is_shared = True

    def saved(self) -> SavedDecisions:
        """Return all that is remembered."""
        kept, others = (table.saved() if table else None for table in (self._kept, self._others))
        older = tuple([one.saved() for one in self._older])
        return SavedDecisions(self._key, kept, others, older, self._older_for, self._is_shared)

    def restore(self, saved: SavedDecisions) -> None:
        """Remember what was saved.

        Raises:
            StateError: it is damaged.
        """
        kept = Table.restored(saved.kept, _KEPT) if saved.kept else None
        others = Table.restored(saved.others, _OTHER + _FLAG) if saved.others else None
        older: list[DecisionMemory] = []
        for one in saved.older[: _MOST_OLDER + 1]:
            promised = [table.promised if table else 0 for table in (one.kept, one.others)]
            settings = Settings.model_construct(kept=promised[0], not_kept=promised[1])
            older.append(DecisionMemory._bare(settings, self._forgotten))
            older[-1].restore(one._replace(older=()))
        self._key, self._kept, self._others, self._older = saved.key, kept, others, older
        self._older_for, self._is_shared = saved.older_for, saved.is_shared

    @classmethod
    def _bare(cls, settings: Settings, forgotten: Counter) -> "DecisionMemory":
        """Return a memory whose tables are still to be restored."""
        made = cls.__new__(cls)
        made._settings, made._forgotten = settings, forgotten
        return made

    @property
    def promised(self) -> int:
        """How many decisions it remembers at least, all in all."""
        return self._settings.kept + self._settings.not_kept

    @property
    def size(self) -> int:
        """The bytes of its tables."""
        tables = [table for memory in (self, *self._older) for table in (memory._kept, memory._others)]
        return sum(table.size for table in tables if table is not None)

    def _hash(self, trace_id: bytes) -> tuple[int, bytes, bytes]:
        """Return the number by which its buckets are found, and its fingerprints.

        One of all zeros, of four billion, is found in an empty place as well: a full table mistakes more than that.
        """
        digest = blake2b(trace_id, digest_size=_HASH + _KEPT + _OTHER, key=self._key).digest()
        return int.from_bytes(digest[:_HASH], "big"), digest[_HASH : _HASH + _KEPT], digest[_HASH + _KEPT :]
