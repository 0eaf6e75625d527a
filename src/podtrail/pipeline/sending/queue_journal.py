"""A persistent queue's journal: what is offered is written, its end is noted, what has ended is forgotten.

    offered ──> add ──> flush: on disk ──> read again, if it was not kept in memory ──> ended, or left in part

Segments are forgotten from the oldest on, up to the first in which something waits.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from podtrail.otlp import Batch, MalformedRequest
from podtrail.pipeline.sending.batching import cut, without_first
from podtrail.pipeline.sending.pending import Offered, Stored
from podtrail.pipeline.sending.recovery import FoundBatches
from podtrail.pipeline.sending.stored_batch import parts, read_batch, write_batch, write_ended
from podtrail.storage import Journal, Position, StorageError, UnreadableEntry

_AGAIN = 1.0
"""Seconds until it is asked again whether a failing disk has taken what was added."""
_WORTH_A_CUT = 16 << 20
"""Bytes that are removed at once when nothing waits any more."""
_IDLE = 5.0
"""Seconds without anything that waits after which everything is removed, however little it is."""
_STRAGGLING = 4
"""Segments of batches that have ended, kept by an earlier one that has not, for each segment that is needed."""
_LONGEST_CLOSE = 3.0
"""Seconds that a disk gets at the end."""


class QueueJournal:
    """What a queue has on disk."""

    def __init__(self, journal: Journal, found: FoundBatches) -> None:
        """Keep a queue's batches in `journal`, in which `found` was found."""
        self._last = found.next_number - 1
        self.written = self._last
        """All batches with numbers up to it are on disk, or have ended."""
        self.closed = False
        self._journal = journal
        self._live = Counter(stored.position.segment for stored, _, _ in found)
        """By segment, the batches in it without an end."""
        self._forgotten = 0
        self._waiting: deque[tuple[int, Offered]] = deque()
        """Whose `done` is to be called once they are on disk, by their numbers."""
        self._ended: list[int] = []
        self._left: dict[int, int] = {}
        self._noting: asyncio.Handle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._moving: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._newest = 0
        """The segment that was written to last."""
        self._more = False
        """Whether something was added since the last write began."""
        self.forget()

    @property
    def failing(self) -> str | None:
        """Why nothing can be written now; None while it can."""
        return self._journal.failing

    @staticmethod
    def pieces(batch: Batch) -> Iterator[Batch]:
        """Yield a batch in the pieces in which it is stored, each small enough to be one."""
        for part in parts(batch):
            yield from cut(part)

    def add(self, offered: Offered, size: int) -> None:
        """Have a batch written, soon; `size`: what it takes of the queue's capacity, in bytes."""
        assert offered.batch is not None
        self._last += 1
        offered.stored = Stored(self._last, self._put(self._last, offered.batch, size))
        if offered.done is not None:
            self._waiting.append((self._last, offered))
            self._write_soon()

    async def flush(self) -> None:
        """Return when all that was added is on disk.

        Raises:
            StorageError: it can't be.
        """
        through = self._last
        if through > self.written:
            await self._journal.flush()
            self._wrote(through)

    async def fetch(self, offered: Offered) -> Batch:
        """Return what is left of a batch.

        Raises:
            UnreadableEntry: it is damaged.
            StorageError: it can't be read now.
        """
        assert offered.stored is not None
        entry = await self._journal.read(offered.stored.position)
        try:
            batch = read_batch(entry)
        except MalformedRequest as error:
            raise UnreadableEntry(f"batch {offered.stored.number}: {error}") from error
        return without_first(batch, batch.span_count - offered.left)

    def ended(self, stored: Stored) -> None:
        """Note that a batch has come to its end."""
        self._ended.append(stored.number)
        self._left.pop(stored.number, None)
        self._leave(stored.position.segment)
        self._note_soon()

    def left(self, stored: Stored, spans: int) -> None:
        """Note that but the last `spans` of a batch have come to their end."""
        self._left[stored.number] = spans
        self._note_soon()

    def forget(self) -> None:
        """Remove the segments in which nothing waits, up to the first in which something does."""
        if self._live:
            self._forget(min(self._live))
        elif self._journal.size >= _WORTH_A_CUT:
            self._forget(self._journal.cut())
        elif self._idle is None and not self.closed:
            self._idle = asyncio.get_running_loop().call_later(_IDLE, self._forget_all)

    def straggling(self) -> int | None:
        """Return the oldest segment, when it keeps many that nobody needs and its batches had better be moved."""
        if self._moving is not None or self.failing or not self._live:
            return None
        oldest = min(self._live)
        return oldest if max(self._newest - oldest, 0) > _STRAGGLING * len(self._live) else None

    def move(self, straggling: Sequence[tuple[Offered, int]]) -> None:
        """Write batches once more, at the end, with their numbers and sizes; then forget where they were before."""
        left: list[int] = []
        for offered, size in straggling:
            assert offered.stored is not None
            assert offered.batch is not None
            number, before = offered.stored
            rest = without_first(offered.batch, offered.batch.span_count - offered.left)
            offered.stored = Stored(number, self._put(number, rest, size))
            left.append(before.segment)
        self._moving = asyncio.get_running_loop().create_task(self._move(left))

    async def _move(self, left: Sequence[int]) -> None:
        """Let go of places that batches have left, once they are on disk where they are now."""
        try:
            while True:
                try:
                    await self._journal.flush()
                except StorageError:  # the journal says so, and tries again by itself
                    await asyncio.sleep(_AGAIN)
                else:
                    break
            for segment in left:
                self._leave(segment)
            self.forget()
        finally:
            self._moving = None

    def _put(self, number: int, batch: Batch, size: int) -> Position:
        position = self._journal.add(write_batch(number, batch, size))
        self._live[position.segment] += 1
        self._newest = position.segment
        return position

    def _leave(self, segment: int) -> None:
        self._live[segment] -= 1
        if not self._live[segment]:
            del self._live[segment]

    def _forget_all(self) -> None:
        self._idle = None
        if not self._live:
            self._forget(self._journal.cut())

    def _forget(self, before: int) -> None:
        if before > self._forgotten:
            self._forgotten = before
            self._journal.forget(before)

    async def settle(self) -> None:
        """Write what is not written yet, as far as the disk takes it."""
        self._note()
        with suppress(StorageError, TimeoutError):  # the journal says so; what is not `written` is counted as lost
            async with asyncio.timeout(_LONGEST_CLOSE):
                await self.flush()

    async def close(self) -> None:
        """Write all that can be, and let go of the journal."""
        if self.closed:
            return
        await self.settle()
        self._forget_all()
        self.closed = True
        for handle in (self._noting, self._idle):
            if handle is not None:
                handle.cancel()
        for task in (self._writing, self._moving):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_CLOSE):
                await self._journal.close()

    def _note_soon(self) -> None:
        if self._noting is None and not self.closed:
            self._noting = asyncio.get_running_loop().call_soon(self._note)

    def _note(self) -> None:
        """Add what has ended since the last time: in one entry, however many there are."""
        self._noting = None
        if not self._ended and not self._left:
            return
        self._journal.add(write_ended(sorted(self._ended), self._left))
        self._ended, self._left = [], {}
        self._write_soon()
        self.forget()

    def _write_soon(self) -> None:
        """Have the journal write at once: what is known to have ended is not sent again after a crash."""
        self._more = True
        if self._writing is None and not self.closed:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._more:
                self._more = False
                through = self._last
                try:
                    await self._journal.flush()
                except StorageError:  # the journal says so, and tries again by itself
                    self._more = True
                    await asyncio.sleep(_AGAIN)
                else:
                    self._wrote(through)
        finally:
            self._writing = None

    def _wrote(self, through: int) -> None:
        self.written = max(self.written, through)
        while self._waiting and self._waiting[0][0] <= self.written:
            self._waiting.popleft()[1].finish()
