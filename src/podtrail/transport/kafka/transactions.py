"""Transactions: messages, and how far their input was read, become visible together or not at all (KIP-98, KIP-447).

Errors are of three kinds. Those that pass are tried again here, within the transaction's time. `TransactionAborted`
asks for `abort`, and for the input to be read again. `ProducerFenced` asks for `start`, which leaves no doubt about
what was under way: the brokers complete or abort it before a new producer of the same id may begin.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from podtrail.transport.kafka.blocking_calls import BlockingCalls
from podtrail.transport.kafka.failures import (
    KafkaFailure,
    ProducerFenced,
    TransactionAborted,
    TransactionsUnavailable,
    error_of,
)
from podtrail.transport.kafka.message import Headers, Message, MessagePlace
from podtrail.transport.kafka.producer import AcknowledgedProducer, Outcome
from podtrail.transport.kafka.properties import Properties

T = TypeVar("T")

MOST_AT_ONCE = 128
"""Partitions in one request: with 4096 bytes of metadata each, the most there are, they fit into a broker's batch."""
_LONGEST = 60.0
"""Seconds: what Kafka has for transactions by default."""
_AGAIN = 0.1
"""Seconds between two tries of what may pass."""
_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.TRANSACTION_COORDINATOR_FENCED,
    }
)
_HARMLESS = frozenset({KafkaError._QUEUE_FULL, KafkaError.MSG_SIZE_TOO_LARGE})
"""Of a message that librdkafka has not even taken. (A broker that refuses its size is no harm to us, but to librdkafka,
which then commits nothing.)"""

_LATE = KafkaFailure("messages of the transaction were not acknowledged in time")


class Transactions:
    """A producer in transactions, one after the other; used by one task at a time but for `produce`."""

    def __init__(
        self, client: Mapping[str, str | int | float | bool], transactional_id: str, *, timeout: float = 10.0
    ) -> None:
        """Make ready.

        Args:
            client: librdkafka's properties of the client.
            transactional_id: who begins with the id of another fences it.
            timeout: seconds after which the brokers abort a transaction, and that a call may take.
        """
        self._client: Properties = {"linger.ms": 5, **client}
        self._own: Properties = {
            "acks": "all",
            "enable.idempotence": True,
            "transactional.id": transactional_id,
            **_timeouts(timeout),
        }
        self._producing = AcknowledgedProducer({**self._client, **self._own})
        self._anew = False
        """Whether the next transaction has to be another producer's, which is told something else."""
        self.timeout = timeout
        """Seconds after which the brokers abort a transaction, and that a call may take."""
        self._open = False
        self._trouble: KafkaFailure | None = None
        """What went wrong first with a message of the transaction that is open."""
        self._doomed = False
        """Whether it can't be committed any more."""
        self._calls: BlockingCalls | None = None

    @property
    def open(self) -> bool:
        """Whether a transaction is open, and may be produced in."""
        return self._open

    def produce_as(self, properties: Properties) -> None:
        """Have messages made and sent as these properties of librdkafka's say, from the next transaction on."""
        self._producing.properties = {**self._client, **properties, **self._own}
        self._anew = self._producing.handle is not None

    def allow_longer(self) -> None:
        """Let transactions last twice as long after the next `start`: one that is too short would be for ever."""
        self.timeout = max(self.timeout, min(2 * self.timeout, _LONGEST))
        self._own.update(_timeouts(self.timeout))
        self._producing.properties.update(_timeouts(self.timeout))

    async def start(self) -> None:
        """Begin with a new producer; one of the same id that came before can commit nothing any more.

        Raises:
            TransactionsUnavailable: no broker answers; call it again.
            KafkaFailure: never to succeed: forbidden, or a property that librdkafka refuses.
        """
        await self.close()
        self._anew = False
        self._calls = BlockingCalls("kafka-transactions")
        await self._producing.start()
        try:
            await self._do(lambda producer, seconds: producer.init_transactions(seconds))
        except TransactionAborted as failure:
            trouble = self._producing.trouble
            await self.close()
            raise TransactionsUnavailable(
                f"the brokers let nobody begin a transaction: {trouble or failure.reason}"
            ) from failure

    async def begin(self) -> None:
        """Open a transaction.

        Raises:
            TransactionAborted: the one before was not ended.
            ProducerFenced: another has the place.
            TransactionsUnavailable: no broker answers.
            KafkaFailure: never to succeed: forbidden, or a property that librdkafka refuses.
        """
        if self._anew:
            await self.start()
        await self._do(lambda producer, _: producer.begin_transaction())
        self._open, self._trouble, self._doomed = True, None, False

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int = -1,
    ) -> "asyncio.Future[MessagePlace]":
        """Produce one message; the future has its place, or fails with `KafkaFailure`.

        Raises:
            TransactionAborted: no transaction is open, or nothing can come of it.
        """
        self._check_open()
        made = self._producing.produce(topic, value, key, headers, partition)
        made.add_done_callback(self._look_at_one)
        return made

    async def produce_all(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """Produce messages in their order; return the outcome of each.

        Of a message of which it is not known whether it was delivered, or that can't be, the transaction dies: produced
        again it might be there twice.

        Raises:
            TransactionAborted: no transaction is open, or nothing can come of it.
        """
        self._check_open()
        try:
            outcomes = await self._producing.produce_all(messages)
        except asyncio.CancelledError:
            self._look_at(_LATE)
            raise
        for outcome in outcomes:
            if isinstance(outcome, KafkaFailure):
                self._look_at(outcome)
        self._check_open()
        return outcomes

    async def commit(self, offsets: Sequence[TopicPartition], group: object) -> None:
        """Make what was produced visible, and commit how far the input was read, as one.

        Args:
            offsets: of the input, with their metadata.
            group: the consumer's `consumer_group_metadata()`.

        Raises:
            TransactionAborted: nothing of it is visible; call `abort`.
            ProducerFenced: whether it is visible `start` will decide.
        """
        self._check_open()

        for at in range(0, len(offsets), MOST_AT_ONCE):
            some = list(offsets[at : at + MOST_AT_ONCE])
            await self._do(partial(_offset, some, group))
        await self._do(lambda producer, seconds: producer.commit_transaction(seconds))
        self._open = False

    async def abort(self) -> None:
        """Give the transaction up; futures under way fail with `TransactionAborted`.

        Raises:
            ProducerFenced: it can't even be aborted: call `start`.
        """
        if not self._open:
            return
        self._open = False
        try:
            await self._do(lambda producer, seconds: producer.abort_transaction(seconds))
        except ProducerFenced:
            raise
        except TransactionAborted as failure:
            raise ProducerFenced(failure.reason, failure.code) from failure

    async def close(self) -> None:
        """End; a transaction that is open is left for the brokers to abort."""
        self._open = False
        await self._producing.close()
        if self._calls is not None:
            self._calls.end()
            self._calls = None

    def _check_open(self) -> None:
        if not self._open:
            raise TransactionAborted("there is no transaction to produce in", KafkaError._STATE)
        if self._doomed and self._trouble is not None:
            raise TransactionAborted(self._trouble.reason, self._trouble.code)

    def _look_at_one(self, made: "asyncio.Future[MessagePlace]") -> None:
        if made.cancelled():
            self._look_at(_LATE)
        elif isinstance(failure := made.exception(), KafkaFailure):
            self._look_at(failure)

    def _look_at(self, failure: KafkaFailure) -> None:
        if self._open:
            self._trouble = self._trouble or failure
            self._doomed = self._doomed or failure.code not in _HARMLESS

    async def _do(self, call: Callable[[Producer, float], Any]) -> None:
        """Have librdkafka do what may take a while.

        Raises:
            TransactionAborted: it came to nothing.
            ProducerFenced: the producer can't go on.
        """
        producer, calls = self._producing.handle, self._calls
        if producer is None or calls is None:
            raise ProducerFenced("the producer is not started")
        try:  # another may be under way still, whose caller has gone
            await calls.make(partial(_within, call, producer, self.timeout), 2 * self.timeout)
        except TimeoutError:
            raise ProducerFenced("what became of the transaction is unknown: librdkafka does not answer") from None
        except KafkaException as exception:
            raise _meaning(error_of(exception), self._trouble) from exception


def _timeouts(seconds: float) -> Properties:
    milliseconds = int(seconds * 1000)
    return {"transaction.timeout.ms": milliseconds, "message.timeout.ms": milliseconds}


def _offset(offsets: list[TopicPartition], group: object, producer: Producer, seconds: float) -> None:
    producer.send_offsets_to_transaction(offsets, group, seconds)


def _within(call: Callable[[Producer, float], Any], producer: Producer, timeout: float) -> None:
    """Call, and again while what went wrong may pass."""
    until = time.monotonic() + timeout
    while True:
        try:
            call(producer, max(until - time.monotonic(), _AGAIN))
        except KafkaException as exception:
            if not error_of(exception).retriable() or time.monotonic() >= until:
                raise
            time.sleep(_AGAIN)
        else:
            return


def _meaning(error: KafkaError, trouble: KafkaFailure | None) -> KafkaFailure:
    """Return what an error of a transaction asks for; `trouble`: what had happened to a message of it."""
    if error.fatal() or error.code() in _FENCED:
        return ProducerFenced(f"the transactional producer can't go on: {error.str()}", error.code())
    if error.txn_requires_abort():
        if trouble is not None:
            return TransactionAborted(trouble.reason, trouble.code)
        return TransactionAborted(f"the transaction must be aborted: {error.str()}", error.code())
    # Timed out, or out of order: whether the brokers did it nobody knows here; who begins anew is told.
    return ProducerFenced(f"what became of the transaction is unknown: {error.str()}", error.code())
