"""Commits of a group's offsets: at intervals, all partitions in one request, one request at a time."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Final

from confluent_kafka import KafkaError

from podtrail.component.partitions import Commit, Partition
from podtrail.transport.kafka.transactions import MOST_AT_ONCE
from podtrail_receivers.kafka.assigned_partition import AssignedPartition
from podtrail_receivers.kafka.consumer_listener import Place
from podtrail_receivers.kafka.keeping import Keeping, KeptAside

_SECOND: Final = 1_000_000_000
_LAST_SECONDS: Final = 1.0
"""For commits before the group is left: a rebalance that goes on is over by then, as a rule."""
_AGAIN_SECONDS: Final = 0.2
"""Shortest time between two requests, when a mark waits or there is no interval."""


class Commits(Keeping):
    """Commits what partitions say may be committed, and marks before anything follows from them."""

    def __init__(
        self,
        owned: Mapping[Place, AssignedPartition],
        aside: KeptAside,
        send: Callable[[Mapping[Place, Commit]], Awaitable[Mapping[Place, KafkaError]]],
        failed: Callable[[Place, KafkaError], None],
        interval: int,
    ) -> None:
        """Make it.

        Args:
            owned: the partitions that this member has.
            aside: keeps checkpoints and what can't be read.
            send: commits; returns what was not, and why.
            failed: is told of each partition whose commit failed; it is committed again.
            interval: nanoseconds between two commits; 0: as soon as there is something new.
        """
        super().__init__(owned, aside)
        self._send = send
        self._failed = failed
        self._interval = interval / _SECOND or _AGAIN_SECONDS
        self._marks: dict[Place, tuple[Commit, asyncio.Future[None]]] = {}
        self._marked = asyncio.Event()
        self._last: dict[Place, Commit] = {}
        self._sending = asyncio.Lock()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Return what is held while the pipelines are given something: nothing."""
        yield

    async def commit_first(self, place: Place, commit: Commit) -> None:
        """Return when this is committed; it is tried until it is, or until whoever waits is cancelled."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._marks[place] = (commit, done)
        self._marked.set()
        try:
            await done
        finally:
            self._marks.pop(place, None)

    async def run(self) -> None:
        """Commit, again and again."""
        while True:
            await self._until_due()
            await self._commit()
            await asyncio.sleep(_AGAIN_SECONDS)

    async def keep_checkpoint(self, place: Place, partition: Partition) -> bool:
        """Write a checkpoint and commit where it is: the next may take the room of the one before this."""
        if not await self.write_checkpoint(place, partition):
            return False
        await self.commit_first(place, partition.commit())
        return True

    async def last_commits(self, places: Collection[Place]) -> Mapping[Place, Commit]:
        """Return what the consumer is to commit of partitions that will be somebody else's."""
        return {place: self._owned[place].partition.commit() for place in places}

    async def commit_last(self, commits: Mapping[Place, Commit]) -> Mapping[Place, Commit]:
        """Commit, again where a rebalance refuses it; return what could not be committed."""
        left = dict(commits)
        try:
            async with asyncio.timeout(_LAST_SECONDS), self._sending:
                while left:
                    some = dict(itertools.islice(left.items(), MOST_AT_ONCE))
                    failed = await self._send(some)
                    for place in some.keys() - failed.keys():
                        del left[place]
                    for place, error in failed.items():
                        self._failed(place, error)
                    if failed:
                        await asyncio.sleep(_AGAIN_SECONDS)
        except TimeoutError:  # whoever leaves the group tries it once more
            pass
        return left

    async def abandon(self) -> None:
        """Do nothing: the group refuses what would be committed of partitions that are somebody else's."""

    async def settle(self) -> None:
        """Do nothing: what is under way is delivered, and by the next owner again."""

    def forget(self, places: Collection[Place]) -> None:
        """Forget partitions: they are no longer this member's."""
        super().forget(places)
        for place in places:
            self._last.pop(place, None)

    async def _commit(self) -> None:
        async with self._sending:
            new = {place: commit for place in self._owned if (commit := self._new(place)) is not None}
            if not new:
                return
            whose = {place: self._owned[place] for place in new}
            marks = {place: self._marks[place][1] for place in new if place in self._marks}
            named = self.named(new)
            places = list(new)
            failed: dict[Place, KafkaError] = {}
            for at in range(0, len(places), MOST_AT_ONCE):
                some = [place for place in places[at : at + MOST_AT_ONCE] if self._owned.get(place) is whose[place]]
                failed |= await self._send({place: new[place] for place in some})
            for place, commit in new.items():
                if (error := failed.get(place)) is not None:
                    self._failed(place, error)
                elif self._owned.get(place) is whose[place]:
                    self._last[place] = commit
                    if place in named:
                        self._named[place] = named[place]
                    if (done := marks.get(place)) is not None and not done.done():
                        done.set_result(None)

    def _new(self, place: Place) -> Commit | None:
        owned = self._owned.get(place)
        if owned is None:
            return None
        if place in self._marks:
            return self._marks[place][0]
        commit = owned.partition.commit()
        return None if commit == self._last.get(place) else commit

    async def _until_due(self) -> None:
        try:
            async with asyncio.timeout(self._interval):
                await self._marked.wait()
        except TimeoutError:
            pass
        self._marked.clear()
