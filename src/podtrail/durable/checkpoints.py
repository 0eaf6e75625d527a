"""Checkpoints on their way to the disk: one at a time, and what of the log each of them makes superfluous."""

import asyncio
import errno
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from podtrail.component.own_spans import own_span
from podtrail.durable.generation import Generation
from podtrail.durable.pace import CheckpointPace
from podtrail.durable.state import PipelineStates
from podtrail.pipeline.checkpoint import CheckpointError
from podtrail.storage import Journal, StorageError

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

_ROOM_AGAIN: Final = 1.0
"""Seconds until room is looked for again on a disk that takes nothing."""


class Amounts(NamedTuple):
    """How much a checkpoint is of, as far as its size and its time follow from that."""

    inside: int
    """Spans that are undecided or owed."""
    came: int
    """Spans that have ever come."""


class _Taken(NamedTuple):
    """A checkpoint that is to be saved."""

    generation: Generation
    write: Callable[[], Sequence[bytes | memoryview]]
    """Returns it in bytes, in any thread."""
    segment: int
    """That of the log which goes on from it."""
    needed: int | None
    """The first segment that something undecided or owed is in, None when that is not known."""
    before: int
    """The first that is to be kept."""


class CheckpointWriter:
    """Saves the state of a store's pipelines, then has the log forget what nobody needs any more."""

    def __init__(
        self,
        log: logging.LoggerAdapter[logging.Logger],
        written: Callable[[], None],
        tracer: "Tracer | None" = None,
    ) -> None:
        """Tell `log` of what fails; `written` is called for each checkpoint that is on disk."""
        self.saved: Generation | None = None
        """The configuration of the checkpoint on disk: by it a recovery decides."""
        self.segments: list[tuple[int, int]] = []
        """Segments of the log, and the time at which each begins."""
        self._log = log
        self._written = written
        self._tracer = tracer
        self._saving: asyncio.Task[bool] | None = None
        self._pace = CheckpointPace()
        self._room_again = 0.0
        self._has_failed = False
        """Whether the last one could not be written, which was said."""

    async def idle(self) -> None:
        """Return when none is on its way."""
        if self._saving is not None:
            await asyncio.wait({self._saving})

    def is_due(self, journal: Journal, amounts: Amounts) -> bool:
        """Say whether enough has been logged for another one."""
        return self._saving is None and self._pace.due(journal.since_cut, amounts.inside, amounts.came)

    def makes_room(self) -> bool:
        """Say whether one may be tried to make room: once a second, where the disk takes nothing."""
        now = asyncio.get_running_loop().time()
        if self._saving is not None or now < self._room_again:
            return False
        self._room_again = now + _ROOM_AGAIN
        return True

    def begin(
        self, journal: Journal, state: PipelineStates, now: int, oldest: int | None, amounts: Amounts
    ) -> "asyncio.Task[bool]":
        """Have a state saved; the task returns whether it was.

        Args:
            journal: where to.
            state: as it is now.
            now: the time that the pipelines were told last, Unix nanoseconds.
            oldest: the arrival of the oldest span that is undecided or owed, Unix nanoseconds.
            amounts: how much it is of.
        """
        self._pace.begun(amounts.inside, amounts.came)
        segment = journal.cut()
        if not self.segments or self.segments[-1][0] != segment:
            self.segments.append((segment, now))
        since = now if oldest is None else oldest
        needed = self._first_needed(since)
        # What was recorded long ago, and replayed, would keep all of it for ever.
        before = segment if needed is None or journal.size > self._pace.most_kept else needed
        taken = _Taken(state.generation, state.prepared(), segment, needed, min(segment, before))
        self._saving = asyncio.create_task(self._save(journal, taken), name="checkpoint")
        return self._saving

    def _first_needed(self, since: int) -> int | None:
        """Return the first segment that may have what arrived at a time or later, None when no segment says so.

        A segment that begins at that very time may have been begun right behind it.
        """
        before = [number for number, begins in self.segments if begins < since]
        if before:
            return max(before)
        return min((number for number, begins in self.segments if begins == since), default=None)

    async def _save(self, journal: Journal, taken: _Taken) -> bool:
        """Save a state, and forget what is before it; return whether that was done."""
        try:
            # In a thread: the event loop serves senders meanwhile.
            pieces = await journal.do(taken.write)
            size = sum(map(len, pieces))
            with own_span(self._tracer, "checkpoint", bytes=size):
                await self._save_or_make_room(journal, taken, pieces)
        except CheckpointError as error:
            self._log.error("a checkpoint can't be written, the log is kept instead: %s", error)
            # Nor will another: recovery has the log and what is configured then.
            self.saved = taken.generation
            return False
        except StorageError as error:
            level = logging.DEBUG if self._has_failed else logging.WARNING
            self._has_failed = True
            self._log.log(level, "a checkpoint can't be written, the log is kept instead: %s", error.reason)
            return False
        finally:
            self._saving = None
        self._has_failed, self.saved = False, taken.generation
        self._pace.ended(size)
        self._written()
        journal.forget(taken.before)
        self.segments = [(number, begins) for number, begins in self.segments if number >= taken.before]
        return True

    async def _save_or_make_room(self, journal: Journal, taken: _Taken, pieces: Sequence[bytes | memoryview]) -> None:
        """Save a state; where there is no room for it the one before goes first, if that may help.

        So does what the log does not need. Until the state is saved after all, a crash would cost memories, such as
        numbers of attempts, but no span.
        """
        needed, size = taken.needed, sum(map(len, pieces))
        try:
            await journal.save(taken.segment, pieces)
        except StorageError as error:
            if needed is None or not _is_full(error):
                raise
            if not self._pace.has_room_by(journal.size_before(needed), size):
                raise
            had, self.saved = self.saved is not None, None
            await journal.make_room(needed)
            try:
                await journal.save(taken.segment, pieces)
            except StorageError:
                if had:
                    self._log.warning(
                        "a checkpoint was removed to make room for the next, which can't be written either: until one "
                        "is senders are refused, and a crash costs what is remembered of decisions",
                    )
                raise


def _is_full(error: StorageError) -> bool:
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)
