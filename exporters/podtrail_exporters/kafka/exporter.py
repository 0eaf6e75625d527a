"""Delivers batches to Kafka: what became of each message is awaited, and what failed is told as one."""

import asyncio
from collections import Counter as Counts
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Final, Protocol, Self

from confluent_kafka import KafkaError

from podtrail.component import Context, Permanent, ReadAgain, Retryable, StartError
from podtrail.config.types import MILLISECOND, SECOND
from podtrail.expiry import ExpiryTimer
from podtrail.otlp import Batch
from podtrail.transport.kafka.failures import KafkaFailure, TransactionAborted
from podtrail.transport.kafka.message import Message
from podtrail.transport.kafka.producer import AcknowledgedProducer, Outcome
from podtrail.transport.kafka.properties import Properties, client_properties
from podtrail_exporters.kafka.config import Config
from podtrail_exporters.kafka.messages import MessageMaker, Parcel

_MARGIN: Final = 1500
"""Milliseconds by which the client gives up before a try ends, at most half of its time: so it can say why, and nothing
is under way that is tried again. It looks once a second."""
_LONGEST_CLOSING: Final = 2.0
"""Seconds that what is under way gets at the end."""
_LARGEST_OF_OTHERS: Final = 1_000_000
"""Bytes: what else is produced in the same transactions."""
_TOPIC_APPEARS: Final = 1000
"""Milliseconds for which a topic that is not there may just be being created."""
_PARTITIONERS: Final = {"sarama_compat": "fnv1a_random", "murmur2": "murmur2_random"}


class Producing(Protocol):
    """Who takes messages: a producer of the exporter's own, or one in transactions."""

    def produce_all(self, messages: Sequence[Message]) -> Awaitable[Sequence[Outcome]]:
        """Produce messages in their order; return the outcome of each."""


class ProducingInTransactions(Producing, Protocol):
    """Who takes messages, and makes them visible together with how far their input was read."""

    def produce_as(self, properties: Properties) -> None:
        """Have messages made and sent as these properties of librdkafka's say."""


class KafkaExporter:
    """Makes messages of batches and has them delivered."""

    def __init__(self, config: Config, context: Context) -> None:
        """Make ready; nothing is connected before it is entered."""
        self._config = config
        self._log = context.log
        self._maker = MessageMaker(config, context.memory_budget)
        self._came = 0.0
        self._expiry = ExpiryTimer(self._forget)
        self._own: AcknowledgedProducer | None = None
        self._producing: Producing | None = None
        counter, labels = context.metrics.counter, ("exporter", "topic", "outcome")
        self._id = context.id
        self._records = counter("otelcol_kafka_exporter_records", "Messages, by what became of them.", labels)
        self._bytes = counter(
            "otelcol_kafka_exporter_bytes_uncompressed", "Bytes of messages before compression.", labels
        )
        context.metrics.gauge(
            "podtrail_kafka_exporter_known_too_late_total",
            "Traces that had left by their id before something came of them that names a Pod.",
            ("exporter",),
        ).read_from(lambda: self._maker.known_too_late, context.id)

    def produce_within(self, transactions: ProducingInTransactions) -> None:
        """Produce in the transactions of another instead of with a producer of its own; called before it is entered."""
        transactions.produce_as(_shape(self._config))
        self._producing = transactions

    async def __aenter__(self) -> Self:
        if self._producing is None:
            self._own = AcknowledgedProducer(_properties(self._config))
            try:
                await self._own.start()
            except KafkaFailure as failure:
                raise StartError(f"librdkafka refuses this configuration: {failure}") from failure
            self._producing = self._own
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._expiry.cancel()
        if self._own is not None:
            await self._own.close(_LONGEST_CLOSING)
            self._producing = self._own = None

    async def send(self, batch: Batch) -> int:
        """Deliver a batch; return how many of its spans no topic takes.

        Raises:
            Retryable: brokers that don't answer, that let nobody in, or that are not ready.
            Permanent: no message of it can ever be delivered.
        """
        parcels, too_large = self._maker.parcels(batch)
        self._came = asyncio.get_running_loop().time()
        self._expiry.arm()
        if too_large:
            most = self._config.producer.max_message_bytes
            self._log.warning("%d spans are too large for a message of %d bytes each: rejected", too_large, most)
        delivered, failed = await self._deliver(parcels)
        refused = [(parcel, failure) for parcel, failure in failed if not failure.retriable]
        again = [(parcel, failure) for parcel, failure in failed if failure.retriable]
        if refused and not again and not delivered:
            raise Permanent(_told(refused))
        rejected = sum(parcel.span_count for parcel, _ in refused)
        if refused:
            self._log.warning("%d spans are rejected: %s", rejected, _told(refused))
        if again:
            rest = replace(batch, groups=[group for parcel, _ in again for group in parcel.groups], verdicts=())
            raise Retryable(_told(again), rest=rest, rejected=rejected + too_large)
        return rejected + too_large

    def _forget(self) -> float | None:
        """Forget Pods that are too old; return in how many seconds there are more of them."""
        due = self._maker.forget(int((asyncio.get_running_loop().time() - self._came) * SECOND))
        return None if due is None else due / SECOND

    async def _deliver(self, parcels: Sequence[Parcel]) -> tuple[int, list[tuple[Parcel, KafkaFailure]]]:
        """Have parcels delivered; return how many were, and which were not.

        Raises:
            ReadAgain: nothing comes of the transaction that they belong to.
        """
        if self._own is not None and self._own.failed_for_good:
            await self._own.restart()
        outcomes = await self._produce(parcels)
        failed = [
            (parcel, outcome)
            for parcel, outcome in zip(parcels, outcomes, strict=True)
            if isinstance(outcome, KafkaFailure)
        ]
        if self._own is None or len(parcels) == 1:
            return len(parcels) - len(failed), failed
        # Brokers judge the size of all that came together: whose own it was is seen when each comes alone.
        large = [(parcel, failure) for parcel, failure in failed if failure.code == KafkaError.MSG_SIZE_TOO_LARGE]
        others = [(parcel, failure) for parcel, failure in failed if failure.code != KafkaError.MSG_SIZE_TOO_LARGE]
        for parcel, _ in large:
            (outcome,) = await self._produce([parcel])
            if isinstance(outcome, KafkaFailure):
                others.append((parcel, outcome))
        return len(parcels) - len(others), others

    async def _produce(self, parcels: Sequence[Parcel]) -> Sequence[Outcome]:
        """Produce parcels; return the outcome of each.

        Raises:
            ReadAgain: nothing comes of the transaction that they belong to.
            Retryable: the time for it is over.
        """
        assert self._producing is not None
        try:
            outcomes = await self._producing.produce_all([parcel.message for parcel in parcels])
        except TransactionAborted as failure:
            raise ReadAgain(str(failure)) from failure
        except asyncio.CancelledError:
            if self._own is None or not self._own.trouble:
                raise
            # The time of the try is up: whoever set it is told why rather than that it is.
            raise Retryable(f"topic {parcels[0].message.topic} acknowledged nothing: {self._own.trouble}") from None
        counts: Counts[tuple[str, str]] = Counts()
        sizes: Counts[tuple[str, str]] = Counts()
        for (message, _), outcome in zip(parcels, outcomes, strict=True):
            label = message.topic, "failure" if isinstance(outcome, KafkaFailure) else "success"
            counts[label] += 1
            sizes[label] += message.size
        for (topic, outcome_label), number in counts.items():
            self._records.add(number, self._id, topic, outcome_label)
            self._bytes.add(sizes[topic, outcome_label], self._id, topic, outcome_label)
        return outcomes


def _told(failed: Sequence[tuple[Parcel, KafkaFailure]]) -> str:
    """Return what became of messages, in one line."""
    reasons = list(dict.fromkeys(failure.reason for _, failure in failed))
    more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"


def _properties(config: Config) -> Properties:
    """Return librdkafka's properties of the exporter's own producer.

    Raises:
        StartError: a file that `tls` names can't be read.
    """
    timeout = config.timeout // MILLISECOND
    acks = -1 if config.producer.required_acks == "all" else config.producer.required_acks
    return {
        **client_properties(config),
        **_shape(config),
        "acks": acks,
        # With all acknowledging, brokers know a repeated message; else one request at a time keeps the order.
        **({"enable.idempotence": True} if acks == -1 else {"max.in.flight.requests.per.connection": 1}),
        "message.max.bytes": config.producer.max_message_bytes,
        "message.timeout.ms": timeout - min(_MARGIN, timeout // 2),
        "request.timeout.ms": min(timeout, 30_000) or 30_000,
    }


def _shape(config: Config) -> Properties:
    """Return librdkafka's properties of how messages are sent, whoever produces them."""
    producer = config.producer
    level = producer.compression_params.level
    hashed = config.record_partitioner.sticky_key
    by_hash = _PARTITIONERS["sarama_compat" if hashed is None else hashed.hasher]
    return {
        "allow.auto.create.topics": producer.allow_auto_topic_creation,
        "batch.num.messages": producer.flush_max_messages or 1_000_000,
        "compression.type": producer.compression,
        **({} if level is None else {"compression.level": level}),
        "linger.ms": producer.linger / MILLISECOND,
        "message.max.bytes": max(producer.max_message_bytes, _LARGEST_OF_OTHERS),
        "partitioner": by_hash if config.record_partitioner.round_robin is None else "random",
        "topic.metadata.propagation.max.ms": _TOPIC_APPEARS,
    }
