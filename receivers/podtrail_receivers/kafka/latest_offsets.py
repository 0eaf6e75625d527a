"""The ends of partitions as brokers have them now: asked for in one request for all that ask meanwhile."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Final

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo, OffsetSpec

from podtrail_receivers.kafka.consumer_listener import Place

_REQUEST_SECONDS: Final = 10.0
_APART_SECONDS: Final = 0.1
"""Shortest time between two requests: partitions that are idle together ask together."""


class LatestOffsets:
    """Asks brokers for the last stable offsets, without the consumer's thread."""

    def __init__(self, client: Callable[[], AdminClient | None]) -> None:
        """Make it. `client`: returns what asks them; None: nobody can be asked any more."""
        self._client = client
        self._wanted: set[Place] = set()
        self._next: asyncio.Task[Mapping[Place, int]] | None = None
        """The request that takes what is wanted now."""
        self._asking = asyncio.Lock()
        self._tasks: set[asyncio.Task[Mapping[Place, int]]] = set()

    async def of(self, place: Place) -> int | None:
        """Return a partition's end by a request that began after this call; None: no broker says."""
        self._wanted.add(place)
        if self._next is None:
            self._next = asyncio.create_task(self._ask(), name="kafka latest offsets")
            self._tasks.add(self._next)
            self._next.add_done_callback(self._tasks.discard)
        return (await asyncio.shield(self._next)).get(place)

    def close(self) -> None:
        """Ask no more."""
        for task in self._tasks:
            task.cancel()

    async def _ask(self) -> Mapping[Place, int]:
        async with self._asking:
            wanted, self._wanted, self._next = self._wanted, set(), None
            client = self._client()
            if client is None:
                return {}
            spec = {TopicPartition(*place): OffsetSpec.latest() for place in wanted}  # type: ignore[no-untyped-call]
            asked: Mapping[TopicPartition, Future[ListOffsetsResultInfo]] = client.list_offsets(
                spec, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_REQUEST_SECONDS
            )
            found: dict[Place, int] = {}
            for partition, answer in asked.items():
                try:
                    found[partition.topic, partition.partition] = (await asyncio.wrap_future(answer)).offset
                except KafkaException:  # what is wrong with brokers is told by those who read from them
                    continue
            await asyncio.sleep(_APART_SECONDS)
            return found
