"""A partition while this member has it: what was fetched waits here for the pipelines, and its time passes."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from confluent_kafka import Message

from podtrail.component.partitions import Commit, Partition
from podtrail_receivers.kafka.consumer_listener import Fetched, Place
from podtrail_receivers.kafka.reading import MessageReader, Poisoned

_OVERHEAD: Final = 256
"""Bytes that a message takes besides its value."""
_CHECKPOINT_AGAIN_SECONDS: Final = 10.0
_SECOND: Final = 1_000_000_000


class Keeper(Protocol):
    """What a partition needs of those that commit for it."""

    @property
    def bite(self) -> int:
        """Bytes that are read and handed over at once; then other partitions have their turn."""

    def working(self) -> AbstractAsyncContextManager[None]:
        """Return what is held while the pipelines are given something."""

    async def commit_first(self, place: Place, commit: Commit) -> None:
        """Return when this is committed, or is sure to be together with all that follows from it."""

    async def set_aside(self, place: Place, poisoned: Sequence[Poisoned]) -> None:
        """Return when messages that can't be read are told, counted and, if asked for, copied."""

    async def keep_checkpoint(self, place: Place, partition: Partition) -> bool:
        """Write a checkpoint; return whether there is one now."""


class AssignedPartition:
    """One partition: fetched, read, handed over in order; idle, its time goes on by the clock on the wall."""

    def __init__(
        self,
        place: Place,
        partition: Partition,
        read: MessageReader,
        keeper: Keeper,
        idle_timeout: int,
        latest: Callable[[Place], Awaitable[int | None]],
        drained: Callable[["AssignedPartition"], None],
    ) -> None:
        """Make it.

        Args:
            place: which one it is.
            partition: what the pipelines keep of it.
            read: reads messages.
            keeper: commits.
            idle_timeout: how many nanoseconds its time may stay behind the wall clock once its end is reached; 0: any.
            latest: asks the brokers for the offset of the end, after it was called; None: no broker says.
            drained: is told when less waits here than before.
        """
        self.place = place
        self.partition = partition
        self.high = -1
        """The offset of what is written to it next, as far as known."""
        self.buffered = 0
        """Bytes that wait here."""
        self._read = read
        self._keeper = keeper
        self._idle_timeout = idle_timeout
        self._latest = latest
        self._drained = drained
        self._waiting: deque[Message] = deque()
        self.end: int | None = None
        """The offset of the end of the partition, if that is right behind what waits."""
        self._fetched = 0
        self._came = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._waits_for_others = False
        """Whether nothing is being handed over: it waits for a commit or for a checkpoint to be written."""
        self._no_checkpoint_before = 0.0
        """Of the loop's time, after one that could not be written."""
        self._next = 0.0
        """Before when, of the loop's time, the clock on the wall moves it no further."""

    @property
    def next(self) -> int:
        """The offset behind all that was fetched; 0: nothing is known."""
        return self._fetched or self.partition.position or 0

    def start(self, ended: Callable[[asyncio.Task[None]], None]) -> None:
        """Begin; `ended` is called when it ends by itself, which is by an error."""
        self._task = asyncio.create_task(self._run(), name=f"kafka {self.place[0]}[{self.place[1]}]")
        self._task.add_done_callback(ended)

    async def stop(self, patience: float) -> None:
        """End: what is being handed over gets `patience` seconds, the rest is for the next owner."""
        if self._task is None:
            return
        self._forget()
        if not self._task.done():
            self._stopping = True
            self._came.set()
            await asyncio.wait([self._task], timeout=0 if self._waits_for_others else patience)
            self._task.cancel()
            await asyncio.wait([self._task])

    def add(self, found: Fetched) -> None:
        """Take what was fetched."""
        self.high = max(self.high, found.high)
        if found.messages:
            self._waiting.extend(found.messages)
            self._fetched = (found.messages[-1].offset() or 0) + 1
            self.buffered += sum([_size(message) for message in found.messages])
        self.end = found.end
        self._came.set()

    def _forget(self) -> None:
        self._waiting.clear()
        self.buffered = 0

    async def _run(self) -> None:
        while not self._stopping:
            self._came.clear()
            if self._waiting:
                await self._hand_over()
            elif (seconds := self._until_idle()) is None or seconds > 0:
                await self._something_comes(seconds)
            else:
                await self._pass_time()
            await self._keep_checkpoint()

    async def _keep_checkpoint(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._no_checkpoint_before or not self.partition.checkpoint_due():
            return
        async with self._keeper.working():
            self._waits_for_others = True
            if not await self._keeper.keep_checkpoint(self.place, self.partition):
                self._no_checkpoint_before = loop.time() + _CHECKPOINT_AGAIN_SECONDS
            self._waits_for_others = False

    async def _something_comes(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._came.wait()
        except TimeoutError:
            pass

    async def _hand_over(self) -> None:
        messages = self._bite()
        records, poisoned = await self._read(messages)
        async with self._keeper.working():
            if poisoned:
                await self._keeper.set_aside(self.place, poisoned)
            await self.partition.take(records)
        await asyncio.sleep(0)

    def _bite(self) -> Sequence[Message]:
        bite: list[Message] = []
        size = 0
        while self._waiting and size < self._keeper.bite:
            message = self._waiting.popleft()
            bite.append(message)
            size += _size(message)
        self.buffered -= size
        self._drained(self)
        return bite

    def _until_idle(self) -> float | None:
        """Return the seconds until the clock on the wall is to move the partition's time; None: not before a record."""
        if not self._idle_timeout or self.end is None:
            return None
        due = self.partition.due()
        if due is None:
            return None
        by_clock = (due + self._idle_timeout - time.time_ns()) / _SECOND
        return max(by_clock, self._next - asyncio.get_running_loop().time())

    async def _pass_time(self) -> None:
        """Let time pass until before the brokers were asked for the end, if nothing has come behind what was read.

        What was fetched last says nothing of now: this process may have been stopped since, or a broker silent.
        """
        now = time.time_ns() - self._idle_timeout
        self._waits_for_others = True
        latest = await self._latest(self.place)
        self._waits_for_others = False
        self._next = asyncio.get_running_loop().time() + 1.0
        if latest is None or self.end is None or latest > self.end or self._waiting:
            return
        async with self._keeper.working():
            self._waits_for_others = True
            await self._keeper.commit_first(self.place, self.partition.mark(now))
            self._waits_for_others = False
            await self.partition.pass_time(now)


def _size(message: Message) -> int:
    return len(message) + _OVERHEAD
