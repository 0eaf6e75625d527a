"""Consume, decide, produce and commit as one transaction, then the next: `exactly_once`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Final

from confluent_kafka import TopicPartition

from podtrail.component.partitions import Commit
from podtrail.transport.kafka.failures import KafkaFailure, TransactionAborted
from podtrail.transport.kafka.transactions import Transactions
from podtrail_receivers.kafka.assigned_partition import AssignedPartition
from podtrail_receivers.kafka.consumer_listener import Place
from podtrail_receivers.kafka.keeping import Keeping, KeptAside

_SECOND: Final = 1_000_000_000


class TransactionCycle(Keeping):
    """Has the pipelines work within a transaction, and ends it with what partitions say may be committed.

    What fails, or is lost to another member, ends all of it: the transaction is aborted, and the membership begins anew
    with what was committed last.
    """

    def __init__(
        self,
        owned: Mapping[Place, AssignedPartition],
        aside: KeptAside,
        transactions: Transactions,
        group: Callable[[], Awaitable[object]],
        changed: Callable[[], Awaitable[Collection[str]]],
        *,
        interval: int,
    ) -> None:
        """Make it.

        Args:
            owned: the partitions that this member has.
            aside: keeps checkpoints and what can't be read; writes in the transaction.
            transactions: one after the other.
            group: returns who this member is, as its group knows it.
            changed: returns which topics are not those any more that partitions were opened with.
            interval: nanoseconds that a transaction lasts.
        """
        super().__init__(owned, aside)
        self._transactions = transactions
        self._group = group
        self._changed = changed
        self._interval = interval / _SECOND
        self._working = 0
        self._nobody_works = asyncio.Event()
        self._nobody_works.set()
        self._may_work = asyncio.Event()
        self._may_work.set()
        self._turn = asyncio.Lock()
        self._ending = asyncio.Lock()
        self._last: dict[Place, Commit] = {}
        self._read: dict[Place, int | None] = {}
        """How far partitions were read when their last transaction was committed."""
        self._unkept: set[Place] = set()
        """Partitions of which no checkpoint could be written here: they try it themselves, less often."""
        self._failure: KafkaFailure | None = None
        self._failed = asyncio.Event()

    @property
    def bite(self) -> int:
        """Bytes that are handed over at once: few, for a transaction can only end when all of it is."""
        return 64 << 10

    @property
    def failed(self) -> bool:
        """Whether nothing more can be committed in this membership."""
        return self._failure is not None

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Hold a transaction open.

        Raises:
            KafkaFailure: none can be.
        """
        while not self._may_work.is_set():
            await self._may_work.wait()
        self._working += 1
        self._nobody_works.clear()
        try:
            await self._begin()
            yield
        finally:
            self._working -= 1
            if not self._working:
                self._nobody_works.set()

    async def commit_first(self, place: Place, commit: Commit) -> None:
        """Return at once: what follows from it is in the same transaction."""

    async def run(self) -> None:
        """End the transaction, again and again.

        Raises:
            KafkaFailure: it can't be; all that it was about is read again.
        """
        while self._failure is None:
            try:
                async with asyncio.timeout(self._interval):
                    await self._failed.wait()
            except TimeoutError:
                await self._end()
        raise self._failure

    async def last_commits(self, places: Collection[Place]) -> Mapping[Place, Commit]:  # noqa: ARG002 - it is of all
        """End the transaction, which commits for all partitions; nothing is left for the consumer to commit."""
        if self._failure is None:
            await self._end()
        return {}

    async def abandon(self) -> None:
        """Give the transaction up: partitions that it is about are somebody else's."""
        self._fail(TransactionAborted("partitions were lost to another member while a transaction was open"))
        await self.settle()

    async def settle(self) -> None:
        """After a failure: return when nothing of the transaction is under way, so that none of it is in the next."""
        if self._failure is None:
            return
        async with self._turn:
            try:
                await self._transactions.abort()
            except KafkaFailure:  # it will be started anew, which leaves no doubt
                await self._transactions.close()
        await asyncio.gather(*[owned.partition.delivered() for owned in self._owned.values()])

    def begin(self, place: Place, checkpoint: str | None) -> None:
        """Note where the checkpoint is that a partition was opened with, and how far it was read then."""
        super().begin(place, checkpoint)
        self._read[place] = self._owned[place].partition.position

    def forget(self, places: Collection[Place]) -> None:
        """Forget partitions: they are no longer this member's."""
        super().forget(places)
        for place in places:
            self._last.pop(place, None)
            self._read.pop(place, None)
            self._unkept.discard(place)

    async def _begin(self) -> None:
        async with self._turn:
            if self._failure is not None:
                raise self._failure
            if not self._transactions.open:
                try:
                    await self._transactions.begin()
                except KafkaFailure as failure:
                    self._fail(failure)
                    raise

    async def _end(self) -> None:
        """Commit what was done, when nobody is at it."""
        async with self._ending:
            self._may_work.clear()
            try:
                await self._nobody_works.wait()
                if self._failure is None and self._transactions.open:
                    await self._commit()
            except KafkaFailure as failure:
                self._fail(failure)
            finally:
                self._may_work.set()

    async def _commit(self) -> None:
        owned = dict(self._owned)
        try:
            async with asyncio.timeout(self._transactions.timeout):
                await asyncio.gather(*[each.partition.delivered() for each in owned.values()])
        except TimeoutError:
            raise TransactionAborted("a transaction was not delivered in time") from None
        await self._keep_due()
        if owned != self._owned:  # what they have written would be seen without how far it was read
            raise TransactionAborted("partitions were given up before their transaction had ended")
        new = {place: owned.partition.commit() for place, owned in self._owned.items()}
        offsets = [
            TopicPartition(*place, commit.offset, commit.metadata)
            for place, commit in new.items()
            if commit != self._last.get(place)
        ]
        if changed := await self._changed():
            self._check_unread(changed)
        group = await self._group()
        async with self._turn:
            await self._transactions.commit(offsets, group)
        self._last = dict(new)
        self._read = {place: owned.partition.position for place, owned in self._owned.items()}
        self._named.update(self.named(new))

    def _check_unread(self, changed: Collection[str]) -> None:
        """Refuse what this transaction has of topics made anew: they are read again, from their beginning.

        Raises:
            TransactionAborted: there is something.
        """
        read = {
            place: owned.partition
            for place, owned in self._owned.items()
            if place[0] in changed and owned.partition.position != self._read.get(place)
        }
        if not read:
            return
        lost = {place: (self._read.get(place) or 0) - partition.commit().offset for place, partition in read.items()}
        for place, records in lost.items():
            self._aside.gone(place, max(0, records))
        which, records = f"topic {', '.join(changed)} was made anew", sum(lost.values())
        raise TransactionAborted(f"{which}: {records} records of the one before were still needed and are gone")

    async def _keep_due(self) -> None:
        """Write checkpoints that are due: what leaves in this transaction may be known by them alone.

        Of what is committed without, the next owner knows nothing if it is configured otherwise, and delivers it again.
        """
        due = [
            place
            for place, owned in self._owned.items()
            if place not in self._unkept and owned.partition.checkpoint_due()
        ]
        written = await asyncio.gather(*[self.write_checkpoint(place, self._owned[place].partition) for place in due])
        self._unkept.update(place for place, done in zip(due, written, strict=True) if not done)

    def _fail(self, failure: KafkaFailure) -> None:
        if self._failure is None:
            self._transactions.allow_longer()
            self._failure = failure
            self._failed.set()
