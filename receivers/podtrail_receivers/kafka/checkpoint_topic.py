"""The topic in which the state of partitions is kept: written in chunks, found again by what a commit says of it.

A checkpoint's chunks have keys of their own, by group, partition and one of three slots, in which checkpoints take
turns: the topic is compacted, and one that a commit names, or may name, is never overwritten by the next. Two would do
where each is known to be committed before the next; the third is for the last one of an owner that can't wait for that.
"""

import asyncio
import time
import zlib
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from podtrail.component import StartError
from podtrail.transport.kafka.failures import error_of
from podtrail.transport.kafka.message import Headers
from podtrail.transport.kafka.properties import UNHEARD
from podtrail_receivers.kafka.consumer_listener import Place

_CHUNK: Final = 900_000
"""Bytes: a broker takes messages of a little more than a million."""
_SLOTS: Final = range(3)
_AT_ONCE: Final = 16
"""Chunks under way."""
_PARTITIONS: Final = 16
_MOST_OFFSET: Final = 1 << 63
_SECONDS: Final = 5.0
"""For reading all checkpoints of partitions that were assigned together, and for requests to make the topic."""
_CONFIG: Final = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.2", "segment.ms": "3600000"}

_READER: Final = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 50,
}
_RIGHTS: Final = "grant it DESCRIBE, READ and WRITE, and CREATE where it is not there"
_NOTHING_THERE: Final = (
    KafkaError._PARTITION_EOF,
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
)


class Produce(Protocol):
    """Writes a message; gives partition and offset once it is acknowledged."""

    def __call__(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int = -1,
    ) -> Awaitable[tuple[int, int]]:
        """Write it."""


class Pointer(NamedTuple):
    """Where a checkpoint is, as a commit says it."""

    partition: int
    first: int
    last: int
    chunks: int
    slot: int
    checksum: int

    def __str__(self) -> str:
        return ".".join(format(number, "x") for number in self)

    @classmethod
    def parse(cls, at: str) -> Self | None:
        """Return what was written, None when it is nothing that can have been."""
        try:
            found = cls(*(int(number, 16) for number in at.split(".")))
        except (ValueError, TypeError):
            return None
        sound = found.partition >= 0 and 0 <= found.first <= found.last < _MOST_OFFSET and found.slot in _SLOTS
        return found if sound and 0 < found.chunks <= found.last - found.first + 1 else None


class CheckpointTopic:
    """Writes checkpoints and reads them again."""

    def __init__(self, properties: Mapping[str, Any], topic: str, group: str) -> None:
        """Make it.

        Args:
            properties: librdkafka's, of a client.
            topic: its name.
            group: whose checkpoints these are.
        """
        self._properties = properties
        self._topic = topic
        self._group = group
        self._partitions = 0

    async def open(self) -> None:
        """Find the topic, or make it.

        Raises:
            StartError: it is not there and can't be made.
            KafkaException: no broker answers, or the like; worth another try.
        """
        self._partitions = await asyncio.to_thread(_found_or_made, self._properties, self._topic)

    async def write(
        self, place: Place, pieces: Sequence[bytes | memoryview], needed: Collection[str], produce: Produce
    ) -> str:
        """Write a checkpoint; return where it is.

        Args:
            place: the partition whose state it is.
            pieces: the state.
            needed: where those are, two at most, that commits name or may name now.
            produce: writes a message; goes on when this is cancelled, lest a transaction comes to nothing: what is in
                no place that a commit names nobody reads.
        """
        taken = {pointer.slot for at in needed if (pointer := Pointer.parse(at)) is not None}
        slot = next(slot for slot in _SLOTS if slot not in taken)
        partition = zlib.crc32(self._prefix(place)) % self._partitions
        whole = b"".join(pieces)
        chunks = [whole[at : at + _CHUNK] for at in range(0, len(whole), _CHUNK)] or [b""]
        offsets: list[int] = []
        for at in range(0, len(chunks), _AT_ONCE):
            some = enumerate(chunks[at : at + _AT_ONCE], at)
            written = [
                asyncio.shield(produce(self._topic, chunk, key=self._key(place, slot, n), partition=partition))
                for n, chunk in some
            ]
            offsets += [offset for _, offset in await asyncio.gather(*written)]
        return str(Pointer(partition, min(offsets), max(offsets), len(chunks), slot, zlib.crc32(whole)))

    async def read(self, wanted: Mapping[Place, str]) -> Mapping[Place, bytes | None]:
        """Return checkpoints by partition; None for what is not where it should be, or not whole.

        Raises:
            KafkaException: no broker answers, or the like; worth another try.
        """
        pointers = {place: Pointer.parse(at) for place, at in wanted.items()}
        found = {
            place: pointer
            for place, pointer in pointers.items()
            if pointer is not None and pointer.partition < self._partitions
        }
        if not found:
            return dict.fromkeys(wanted)
        chunks = await asyncio.to_thread(self._fetch, found)
        return {place: self._whole(place, found[place], chunks) if place in found else None for place in wanted}

    def _whole(self, place: Place, pointer: Pointer, chunks: Mapping[tuple[int, bytes], bytes]) -> bytes | None:
        keys = [(pointer.partition, self._key(place, pointer.slot, n)) for n in range(pointer.chunks)]
        if any(key not in chunks for key in keys):
            return None
        whole = b"".join([chunks[key] for key in keys])
        return whole if zlib.crc32(whole) == pointer.checksum else None

    def _fetch(self, wanted: Mapping[Place, Pointer]) -> Mapping[tuple[int, bytes], bytes]:
        """Return all chunks that pointers lead to, by partition and key; side by side what is in several partitions."""
        lines: dict[int, list[tuple[Place, Pointer]]] = {}
        for place, pointer in wanted.items():
            lines.setdefault(pointer.partition, []).append((place, pointer))
        reader = Consumer({**self._properties, **_READER, "group.id": f"{self._group}-checkpoints"}, logger=UNHEARD)
        deadline = time.monotonic() + _SECONDS
        chunks: dict[tuple[int, bytes], bytes] = {}
        try:
            while any(lines.values()):
                at_once = {partition: line.pop() for partition, line in lines.items() if line}
                reader.assign([TopicPartition(self._topic, n, pointer.first) for n, (_, pointer) in at_once.items()])
                for message in _until(reader, {n: pointer.last for n, (_, pointer) in at_once.items()}, deadline):
                    partition, key, value = message.partition(), message.key(), message.value()
                    if partition is None or key is None or value is None:
                        continue
                    place, pointer = at_once[partition]
                    if key.startswith(self._prefix(place) + f"/{pointer.slot}/".encode()):
                        chunks[partition, key] = value
        finally:
            reader.close()
        return chunks

    def _prefix(self, place: Place) -> bytes:
        return f"{self._group}/{place[0]}/{place[1]}".encode()

    def _key(self, place: Place, slot: int, chunk: int) -> bytes:
        return self._prefix(place) + f"/{slot}/{chunk}".encode()


def _found_or_made(properties: Mapping[str, Any], topic: str) -> int:
    """Return how many partitions the topic has.

    Raises:
        StartError: it is not there and can't be made.
    """
    heard: list[KafkaError] = []
    told: Mapping[str, Any] = {"error_cb": heard.append}
    admin = AdminClient({**properties, **told}, logger=UNHEARD)
    try:
        partitions = _found(admin, topic)
    except KafkaException:
        admin.poll(0)
        told_more = [error for error in heard if error.code() not in _UNREACHABLE]
        if telling := told_more or [error for error in heard if error.code() == KafkaError._TRANSPORT]:
            raise KafkaException(telling[-1]) from None  # "refused" rather than that the time is over
        raise
    if partitions is not None:
        return partitions
    new = NewTopic(topic, num_partitions=_PARTITIONS, config=_CONFIG)
    try:
        admin.create_topics([new], operation_timeout=_SECONDS, request_timeout=_SECONDS)[topic].result()
    except KafkaException as failed:
        error = error_of(failed)
        if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:  # another member was quicker
            return _found(admin, topic) or _PARTITIONS
        if error.retriable() or error.code() in _UNREACHABLE:
            raise
        raise StartError(
            f"checkpoints::topic: {topic} is not there and can't be made: {error.str()}; make it with "
            "cleanup.policy=compact, or set checkpoints::enabled: false"
        ) from failed
    return _PARTITIONS


def _found(admin: AdminClient, topic: str) -> int | None:
    """Return how many partitions a topic has, None when it is not there; asked so that nobody makes it for that."""
    described = admin.describe_topics(TopicCollection([topic]), request_timeout=_SECONDS)[topic]
    try:
        return len(described.result().partitions)
    except KafkaException as failed:
        code = error_of(failed).code()
        if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise KafkaException(KafkaError(code, f"topic {topic} of checkpoints: {_RIGHTS}")) from failed
        raise


_UNREACHABLE: Final = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


def _until(reader: Consumer, lasts: dict[int, int], deadline: float) -> Iterator[Message]:
    """Yield messages of each partition up to an offset, or to what there is.

    Raises:
        KafkaException: they don't come.
    """
    while lasts:
        if time.monotonic() > deadline:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "checkpoints could not be read in time"))
        for message in reader.consume(_AT_ONCE, 0.1):
            error, partition, offset = message.error(), message.partition(), message.offset()
            if partition is None or offset is None:
                continue
            if error is None:
                if offset <= lasts.get(partition, -1):
                    yield message
                if offset >= lasts.get(partition, -1):
                    lasts.pop(partition, None)
            elif error.code() in _NOTHING_THERE:
                lasts.pop(partition, None)
            elif not error.retriable():
                raise KafkaException(error)
