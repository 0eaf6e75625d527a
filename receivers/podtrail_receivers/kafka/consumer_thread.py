"""librdkafka's consumer, driven in one thread: what it fetches and what happens to its partitions goes to the loop."""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from podtrail.component.partitions import Commit
from podtrail.transport.kafka.failures import error_of
from podtrail.transport.kafka.properties import UNHEARD
from podtrail_receivers.kafka.consumer_listener import Fetched, Listener, Place
from podtrail_receivers.kafka.leaders import LeaderWatch
from podtrail_receivers.kafka.messages_at_once import MessagesAtOnce
from podtrail_receivers.kafka.rebalances import Rebalances, offsets_of, uncommitted
from podtrail_receivers.kafka.unread import UnreadWatch
from podtrail_receivers.kafka.unreadable_batches import is_unreadable

_WAIT_SECONDS: Final = 0.05
"""Longest wait for messages: what the loop wants done in the thread waits as long."""
_TAKING_SECONDS: Final = 1.0
"""How often a wait for a busy loop looks whether all is to stop; rebalances want the loop, too."""
_REQUEST_SECONDS: Final = 10.0
_LEAST_LEAVING_SECONDS: Final = 0.5
_LEAVING_SECONDS: Final = 4.5
"""How long to wait for brokers to answer a member that leaves: librdkafka itself waits for as long as they hang."""

T = TypeVar("T")


class ConsumerThread:
    """The thread. `start` it, `stop` it; once each."""

    def __init__(
        self,
        properties: Mapping[str, Any],
        topics: Sequence[str],
        listener: Listener,
        unread: UnreadWatch | None = None,
        *,
        cooperative: bool,
    ) -> None:
        """Make it.

        Args:
            properties: librdkafka's.
            topics: what is subscribed to; regular expressions begin with `^`.
            listener: is told what comes and what happens.
            unread: says of which partitions nobody takes care, if somebody has to look.
            cooperative: whether a rebalance moves single partitions.
        """
        self._properties = {**properties, "error_cb": self._on_error, "on_commit": self._on_commit}
        self._topics = list(topics)
        self._listener = listener
        self._leaders = LeaderWatch(properties)
        self._at_once = MessagesAtOnce()
        self._rebalances = Rebalances(listener, self._leaders, self._at_once, cooperative=cooperative)
        self._loop = asyncio.get_running_loop()
        self._calls: deque[tuple[Callable[[Consumer], Any], Future[Any] | None]] = deque()
        self._stopping = threading.Event()
        self._taken = threading.Event()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._consumer: Consumer | None = None
        self._unread = unread
        self._joining_anew = False
        """Whether it leaves the group, to join it again when it has no partition any more."""
        self._broken: BaseException | None = None
        """What a callback of librdkafka's has ended with."""
        self._committed: asyncio.Future[Mapping[Place, KafkaError]] | None = None
        """What became of the commit that is under way."""

    def start(self) -> Awaitable[None]:
        """Start it; return what ends when it ends, with the error that ended it."""
        self._consumer = Consumer(self._properties, logger=UNHEARD)
        self._leaders.open()
        threading.Thread(target=self._run, name="kafka consumer", daemon=True).start()
        return asyncio.shield(self._ended)

    @property
    def admin(self) -> AdminClient | None:
        """A client that asks brokers without the thread; None: the thread has ended."""
        return self._leaders.client

    async def stop(self, seconds: float = 0.0) -> None:
        """Have it leave the group, in order: its partitions are revoked on the way; brokers that hang are let be.

        Args:
            seconds: how long it takes already to stop.
        """
        self._stopping.set()
        await asyncio.wait([self._ended], timeout=max(_LEAST_LEAVING_SECONDS, _LEAVING_SECONDS - seconds))

    async def call(self, work: Callable[[Consumer], T]) -> T:
        """Have work done with the consumer, in the thread, between two fetches."""
        future: Future[T] = Future()
        self._calls.append((work, future))
        return await asyncio.wrap_future(future)

    async def begin_anew(self, place: Place) -> int:
        """Have a partition read from where it begins now; return that offset."""

        def assign(consumer: Consumer) -> int:
            marks = consumer.get_watermark_offsets(TopicPartition(*place), _REQUEST_SECONDS)
            if marks is None:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "nobody says where it begins"))
            self._rebalances.read_from(consumer, TopicPartition(*place, marks[0]))
            return marks[0]

        return await self.call(assign)

    async def read_from(self, place: Place, offset: int) -> None:
        """Have a partition, if it is assigned still, read from another offset on."""

        def read_from(consumer: Consumer) -> None:
            if _still(consumer, [place]):
                self._rebalances.read_from(consumer, TopicPartition(*place, offset))

        await self.call(read_from)

    def join_anew(self) -> None:
        """Leave the group, in order, and join it again."""
        self._post(self._leave)

    def pause(self, places: Sequence[Place]) -> None:
        """Have no more fetched of partitions."""

        def pause(consumer: Consumer) -> None:
            consumer.pause(_still(consumer, places))
            self._at_once.pause(places)

        self._post(pause)

    def resume(self, places: Sequence[Place]) -> None:
        """Have partitions fetched on."""

        def resume(consumer: Consumer) -> None:
            consumer.resume(_still(consumer, places))
            self._at_once.resume(places)

        self._post(resume)

    def _post(self, work: Callable[[Consumer], None]) -> None:
        """Have work done with the consumer, in the thread; whether it fails is told as an error of the consumer."""
        self._calls.append((work, None))

    async def commit(self, commits: Mapping[Place, Commit]) -> Mapping[Place, KafkaError]:
        """Commit what is still this member's; return what was not, and why. Fetching goes on; one at a time."""
        rebalances = self._rebalances
        rebalances.to_commit = dict(commits)
        self._committed = self._loop.create_future()

        def send(consumer: Consumer) -> bool:
            if rebalances.to_commit:
                consumer.commit(offsets=offsets_of(rebalances.to_commit), asynchronous=True)
            return bool(rebalances.to_commit)

        try:
            sent = await self.call(send)
        except KafkaException as error:
            return dict.fromkeys(commits, error_of(error))
        return await self._committed if sent else {}

    async def group(self) -> object:
        """Return who this member is, for the transaction that commits for it."""
        asked = self._rebalances.ask_for_member()
        if asked is None:
            return self._rebalances.member
        self._post(self._rebalances.tell_member)
        return await asyncio.wrap_future(asked)

    def _run(self) -> None:
        assert self._consumer is not None
        error: BaseException | None = None
        try:
            try:
                self._consume(self._consumer)
            finally:
                self._consumer.close()
                self._leaders.close()
        except BaseException as caught:  # noqa: BLE001 - whoever waits for the thread is told
            error = caught
        finally:
            self._let_go(error)

    def _let_go(self, error: BaseException | None) -> None:
        """Tell that it ended. Who waits for an answer still is not told: it ends with the membership, by this error."""
        if not self._loop.is_closed():  # it is when brokers hung for longer than this process lived
            self._loop.call_soon_threadsafe(self._end, error)

    def _end(self, error: BaseException | None) -> None:
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)

    def _consume(self, consumer: Consumer) -> None:
        self._subscribe(consumer)
        while not self._stopping.is_set():
            while self._calls:
                self._answer(consumer, *self._calls.popleft())
            messages = consumer.consume(self._at_once.number, _WAIT_SECONDS)
            if self._broken is not None:
                raise self._broken
            if messages:
                self._hand_over(consumer, messages)
            self._rebalances.look_for_leaders(consumer)
            self._look_for_unread(consumer)

    def _subscribe(self, consumer: Consumer) -> None:
        consumer.subscribe(
            self._topics,
            on_assign=self._keeping_errors(self._rebalances.assign),
            on_revoke=self._keeping_errors(self._rebalances.revoke),
            on_lost=self._keeping_errors(self._rebalances.lose),
        )

    def _look_for_unread(self, consumer: Consumer) -> None:
        """Leave the group, and join it again, where that is needed for partitions of which nobody takes care."""
        if self._joining_anew:
            if not consumer.assignment():
                self._joining_anew = False
                self._subscribe(consumer)
        elif self._unread is not None and (client := self._leaders.client) is not None:
            if not (places := self._unread.look(client, consumer.memberid())):
                return
            self._loop.call_soon_threadsafe(self._listener.left_unread, places)
            self._leave(consumer)

    def _leave(self, consumer: Consumer) -> None:
        if not self._joining_anew:
            self._joining_anew = True
            consumer.unsubscribe()

    def _keeping_errors(
        self, callback: Callable[[Consumer, list[TopicPartition]], None]
    ) -> Callable[[Consumer, list[TopicPartition]], None]:
        """Return a callback that keeps what it raises: on its way through librdkafka that would lose its type."""

        def guarded(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            try:
                callback(consumer, partitions)
            except BaseException as error:  # noqa: BLE001 - raised again once librdkafka has returned
                self._broken = error

        return guarded

    def _answer(self, consumer: Consumer, work: Callable[[Consumer], Any], future: Future[Any] | None) -> None:
        if future is not None and not future.set_running_or_notify_cancel():
            return
        try:
            result = work(consumer)
        except KafkaException as error:
            if future is None:
                self._loop.call_soon_threadsafe(self._listener.failed, error_of(error), None)
            else:
                future.set_exception(error)
        else:
            if future is not None:
                future.set_result(result)

    def _hand_over(self, consumer: Consumer, messages: Sequence[Message]) -> None:
        by_place: dict[Place, list[Message]] = {}
        ends: dict[Place, int | None] = {}
        for message in messages:
            error, place = message.error(), _place(message)
            if error is None:
                by_place.setdefault(place, []).append(message)
                ends.pop(place, None)
            elif error.code() == KafkaError._PARTITION_EOF:
                by_place.setdefault(place, [])
                ends[place] = message.offset()
            elif is_unreadable(error) and (offset := message.offset()) is not None:
                self._loop.call_soon_threadsafe(self._listener.unreadable, error, place, offset)
            else:
                self._loop.call_soon_threadsafe(self._listener.failed, error, place)
        found = {place: Fetched(of_one, _high(consumer, place), ends.get(place)) for place, of_one in by_place.items()}
        self._at_once.saw(by_place)
        if found:
            self._taken.clear()
            self._loop.call_soon_threadsafe(self._give, found)
            while not (self._taken.wait(_TAKING_SECONDS) or self._stopping.is_set()):
                pass  # before more is fetched, what is too much is paused, however long the loop is busy

    def _give(self, found: Mapping[Place, Fetched]) -> None:
        self._listener.fetched(found)
        self._taken.set()

    def _on_error(self, error: KafkaError) -> None:
        self._loop.call_soon_threadsafe(self._listener.failed, error, None)

    def _on_commit(self, error: KafkaError | None, partitions: Sequence[TopicPartition]) -> None:
        """Note what became of the commit that is under way."""
        self._loop.call_soon_threadsafe(self._end_commit, uncommitted(error, partitions))

    def _end_commit(self, uncommitted: Mapping[Place, KafkaError]) -> None:
        if self._committed is not None and not self._committed.done():
            self._committed.set_result(uncommitted)


def _still(consumer: Consumer, places: Sequence[Place]) -> list[TopicPartition]:
    """Return those of these partitions that are assigned still."""
    assigned = {(each.topic, each.partition) for each in consumer.assignment()}
    return [TopicPartition(*place) for place in places if place in assigned]


def _place(message: Message) -> Place:
    topic, partition = message.topic(), message.partition()
    return topic or "", -1 if partition is None else partition


def _high(consumer: Consumer, place: Place) -> int:
    marks = consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
    return -1 if marks is None else marks[1]
