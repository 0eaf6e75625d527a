"""Which topics are read: one that was deleted and made anew has the name of the old one, and another id (KIP-516).

librdkafka goes on with the new one where it was in the old one.
"""

import asyncio
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from typing import Final

from confluent_kafka import KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._topic import TopicDescription

_REQUEST_SECONDS: Final = 10.0
_NONE: Final = str(Uuid(0, 0))
"""Of brokers before Kafka 2.8."""


class TopicIds:
    """Asks brokers for the ids of topics, and remembers those that partitions were opened with."""

    def __init__(self) -> None:
        self._opened: dict[str, str] = {}
        self._made_anew: set[str] = set()

    async def open(self, client: AdminClient | None, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of these topics as far as brokers say them, and remember them."""
        found = await _ask(client, topics)
        for topic, id in found.items():
            if self._opened.get(topic, id) != id:
                self._made_anew.add(topic)
            self._opened[topic] = id
        return found

    def is_made_anew(self, topic: str) -> bool:
        """Say whether there was another topic of this name before."""
        return topic in self._made_anew

    async def changed(self, client: AdminClient | None, topics: Collection[str]) -> Collection[str]:
        """Return those of these topics that are not the ones any more that were opened."""
        found = await _ask(client, topics)
        return sorted(topic for topic, id in found.items() if self._opened.get(topic, id) != id)


async def _ask(client: AdminClient | None, topics: Collection[str]) -> Mapping[str, str]:
    if client is None or not topics:
        return {}
    asked: Mapping[str, Future[TopicDescription]] = client.describe_topics(
        TopicCollection(sorted(topics)), request_timeout=_REQUEST_SECONDS
    )
    found: dict[str, str] = {}
    for topic, answer in asked.items():
        try:
            id = str((await asyncio.wrap_future(answer)).topic_id)
        except KafkaException:  # it is not there, or no broker answers: those who read from it tell that
            continue
        if id != _NONE:
            found[topic] = id
    return found
