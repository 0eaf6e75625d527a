"""A producer on the event loop: what became of each message is awaited, and told in batches.

librdkafka is asked for delivery reports in a thread of its own; those of one round go to the loop together.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from threading import Thread

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as Report

from podtrail.transport.kafka.failures import KafkaFailure, TransactionAborted, error_of, spoken, undelivered
from podtrail.transport.kafka.message import Headers, Message, MessagePlace
from podtrail.transport.kafka.properties import UNHEARD, Properties

_POLL = 0.1
"""Seconds after which the thread looks whether it is to end."""
_NO_LIMIT = 300.0
"""Seconds that librdkafka tries where it is not told for how long."""

Outcome = MessagePlace | KafkaFailure


class _Delivery:
    """Messages produced together, until the last one is reported."""

    __slots__ = ("done", "messages", "outcomes", "waiting")

    def __init__(self, messages: Sequence[Message], done: "asyncio.Future[Sequence[Outcome]]") -> None:
        self.messages = messages
        self.outcomes: list[Outcome] = [KafkaFailure("was never reported")] * len(messages)
        self.waiting = len(messages)
        self.done = done


_Told = tuple[_Delivery, int, KafkaError | None, int, int]


class AcknowledgedProducer:
    """Produces, and says of each message where it stands or why it does not.

    Open it with `start`; everything else is called on the event loop.
    """

    def __init__(self, properties: Mapping[str, str | int | float | bool]) -> None:
        """Make ready to produce with librdkafka's properties."""
        self.properties: Properties = dict(properties)
        """What it is started with, from the next start on."""
        self._seconds = float(properties.get("message.timeout.ms", 1000 * _NO_LIMIT)) / 1000
        self._producer: Producer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._ending = False
        self._told: deque[_Told] = deque()
        self._trouble = ""
        self._fatal = False

    @property
    def trouble(self) -> str:
        """The last that was heard of the brokers since something was delivered; "" where all is well."""
        return self._trouble

    @property
    def handle(self) -> Producer | None:
        """Librdkafka's producer, for what is not about messages; None where it is not started."""
        return self._producer

    @property
    def waiting(self) -> int:
        """How many messages wait for room, brokers or acknowledgement."""
        return 0 if self._producer is None else len(self._producer)

    async def start(self) -> None:
        """Begin to produce; connections are made in the background.

        Raises:
            KafkaFailure: librdkafka refuses a property.
        """
        self._loop = asyncio.get_running_loop()
        self._ending = self._fatal = False
        self._told.clear()
        try:
            self._producer = Producer({**self.properties, "error_cb": self._heard, "logger": UNHEARD})
        except KafkaException as exception:
            raise KafkaFailure(error_of(exception).str(), retriable=False) from exception
        self._thread = Thread(target=self._poll, args=(self._producer,), name="kafka-producer", daemon=True)
        self._thread.start()

    async def close(self, seconds: float = 0.0) -> None:
        """Wait so many seconds for what is under way, then end; what is left fails."""
        producer, thread = self._producer, self._thread
        if producer is None or thread is None:
            return
        if seconds > 0 and len(producer):
            await asyncio.to_thread(producer.flush, seconds)
        handles = [producer]
        del producer
        self._producer = self._thread = None
        await asyncio.to_thread(self._end, handles, thread)
        self._settle()

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int = -1,
    ) -> "asyncio.Future[MessagePlace]":
        """Produce one message; the future has its place, or fails with `KafkaFailure`."""
        done: asyncio.Future[MessagePlace] = asyncio.get_running_loop().create_future()
        told = self.produce_all([Message(topic, value, key, headers, partition)])

        def settle(outcomes: "asyncio.Future[Sequence[Outcome]]") -> None:
            if done.done():
                return
            (outcome,) = outcomes.result()
            if isinstance(outcome, KafkaFailure):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)

        told.add_done_callback(settle)
        return done

    def produce_all(self, messages: Sequence[Message]) -> "asyncio.Future[Sequence[Outcome]]":
        """Produce messages in their order; the future has the outcome of each, in that order."""
        done: asyncio.Future[Sequence[Outcome]] = asyncio.get_running_loop().create_future()
        delivery = _Delivery(messages, done)
        for at, (topic, value, key, headers, partition) in enumerate(messages):
            try:
                if self._producer is None:
                    raise BufferError("the producer is closed")
                self._producer.produce(
                    topic, value, key, partition, on_delivery=partial(self._report, delivery, at), headers=headers
                )
            except KafkaException as exception:
                self._settle_one(delivery, at, undelivered_at_once(exception, messages[at], self._seconds))
            except BufferError as full:
                self._settle_one(delivery, at, KafkaFailure(f"{messages[at].topic}: {full}", KafkaError._QUEUE_FULL))
        if not messages:
            done.set_result(())
        return done

    @property
    def failed_for_good(self) -> bool:
        """Whether librdkafka has lost what it needs to go on: `restart` it."""
        return self._fatal

    async def restart(self) -> None:
        """Begin anew; what is under way fails.

        Raises:
            KafkaFailure: librdkafka refuses a property.
        """
        await self.close()
        await self.start()

    def _heard(self, error: KafkaError) -> None:
        """Note what is told of brokers; called in the thread that polls."""
        self._fatal = self._fatal or error.fatal()
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self._trouble:
            self._trouble = spoken(error)

    def _report(self, delivery: _Delivery, at: int, error: KafkaError | None, report: Report) -> None:
        """Note what became of a message; called in the thread that polls, once each."""
        offset = report.offset()
        self._told.append((delivery, at, error, report.partition() or 0, -1 if offset is None else offset))

    def _poll(self, producer: Producer) -> None:
        assert self._loop is not None
        while not self._ending:
            try:
                producer.poll(_POLL)
            except KafkaException as exception:  # what is fatal
                self._heard(error_of(exception))
            if self._told:
                try:
                    self._loop.call_soon_threadsafe(self._settle)
                except RuntimeError:  # the loop is closed: nobody waits any more
                    return

    def _end(self, handles: list[Producer], thread: Thread) -> None:
        """Let go of the producer; librdkafka ends with the last reference to it, and a transaction with the brokers."""
        handles[0].purge()
        self._ending = True
        thread.join()
        handles[0].flush(_POLL)  # brings the reports of what was purged
        handles.clear()

    def _settle(self) -> None:
        """Tell those who wait what was reported."""
        while self._told:  # filled by another thread meanwhile
            delivery, at, error, partition, offset = self._told.popleft()
            if error is None:
                self._trouble = ""
                self._settle_one(delivery, at, MessagePlace(partition, offset))
            else:
                message = delivery.messages[at]
                failure = undelivered(error, message.topic, message.size, self._seconds, self._trouble)
                self._settle_one(delivery, at, failure)

    def _settle_one(self, delivery: _Delivery, at: int, outcome: Outcome) -> None:
        delivery.outcomes[at] = outcome
        delivery.waiting -= 1
        if delivery.waiting == 0 and not delivery.done.done():
            delivery.done.set_result(delivery.outcomes)


def undelivered_at_once(exception: KafkaException, message: Message, seconds: float) -> KafkaFailure:
    """Return why librdkafka did not even take a message."""
    error = error_of(exception)
    if error.code() == KafkaError._STATE:
        return TransactionAborted("there is no transaction to produce in", error.code())
    return undelivered(error, message.topic, message.size, seconds, "")
