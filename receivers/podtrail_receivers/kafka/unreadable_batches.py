"""Batches of records that librdkafka can't read, and would fetch for ever: damaged, or too large once expanded."""

import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from podtrail.transport.kafka.properties import UNHEARD
from podtrail_receivers.kafka.consumer_listener import Place

_UNREADABLE: Final = frozenset({KafkaError._BAD_COMPRESSION, KafkaError._NOT_IMPLEMENTED})
"""Errors of a whole batch, however often it is fetched; the second: compressed in an unknown way."""
_SECONDS: Final = 30.0
"""For one look."""
_WAIT_SECONDS: Final = 0.5


def is_unreadable(error: KafkaError) -> bool:
    """Return whether an error is of a whole batch. One that claims to expand to more than there is memory is, too."""
    too_large = error.code() == KafkaError._CRIT_SYS_RESOURCE and "Decompression" in error.str()
    return too_large or error.code() in _UNREADABLE


def next_readable(properties: Mapping[str, Any], place: Place, offset: int) -> int:
    """Return the offset behind a batch that can't be read, or its own if it can. It blocks: the place is tried out.

    Args:
        properties: librdkafka's of the consumer.
        place: the partition.
        offset: of the first record of the batch, as librdkafka's error has it.

    Raises:
        KafkaException: brokers don't answer.
    """
    consumer = Consumer({**properties, "fetch.wait.max.ms": 10}, logger=UNHEARD)
    try:
        if not _is_within(consumer, place, offset, offset):
            return offset
        within, behind = offset, offset + 1
        while _is_within(consumer, place, offset, behind):
            within, behind = behind, behind + 2 * (behind - offset)
        while behind - within > 1:
            middle = (within + behind) // 2
            if _is_within(consumer, place, offset, middle):
                within = middle
            else:
                behind = middle
    finally:
        consumer.close()
    return behind


def _is_within(consumer: Consumer, place: Place, batch: int, offset: int) -> bool:
    """Say whether an offset is one of the batch that begins at another."""
    consumer.assign([TopicPartition(*place, offset)])
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        for message in consumer.consume(1, _WAIT_SECONDS):
            error = message.error()
            if error is not None and is_unreadable(error):
                return message.offset() == batch
            if error is None or error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
                return False
    raise KafkaException(
        KafkaError(KafkaError._TIMED_OUT, "a batch that can't be read could not be passed over in time")
    )
