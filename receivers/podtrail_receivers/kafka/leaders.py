"""Which partitions have a leader. Those without can't be read: their brokers are away, or the disks of these full."""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from podtrail.transport.kafka.properties import UNHEARD

_REQUEST_SECONDS: Final = 10.0
"""What a group that shares out partitions waits for."""
_LOOKING_SECONDS: Final = 2.0
"""What fetching waits for."""
_AGAIN_SECONDS: Final = 2.0
_USUAL_SECONDS: Final = 10.0
_SINGLY: Final = 8
"""Topics that are asked for one by one; for more, all that the cluster has are asked for at once."""


class LeaderWatch:
    """Looks now and then whether the partitions of a consumer have a leader; all of it in the consumer's thread.

    It has a client of its own. `Consumer.list_topics` in a callback has the consumer forget that its thread is in one:
    the next callback of the same `consume`, for an error of a broker say, then aborts the process (confluent-kafka
    2.16.1); and another thread would wait until that `consume` returns.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        """Make it, with librdkafka's properties of a client."""
        self._properties = {**properties, "allow.auto.create.topics": False}
        self._client: AdminClient | None = None
        """The client of its own, between `open` and `close`."""
        self._due = time.monotonic() + _USUAL_SECONDS

    def open(self) -> None:
        """Make the client."""
        self._client = AdminClient(self._properties, logger=UNHEARD)

    @property
    def client(self) -> AdminClient | None:
        """The client, which any thread may use; None: it is not open."""
        return self._client

    @property
    def due(self) -> bool:
        """Whether it is time to look again."""
        return time.monotonic() >= self._due

    def look(self, partitions: Collection[TopicPartition]) -> "Found | None":
        """Return what there is; None: no broker says."""
        try:
            found = self.find(partitions, _LOOKING_SECONDS)
        except KafkaException:  # what is wrong with brokers is told by those who read from them
            self._due = time.monotonic() + _USUAL_SECONDS
            return None
        self._due = time.monotonic() + (_AGAIN_SECONDS if found.leaderless else _USUAL_SECONDS)
        return found

    def soon(self) -> None:
        """Look again soon: there is one without."""
        self._due = time.monotonic() + _AGAIN_SECONDS

    def find(self, partitions: Collection[TopicPartition], seconds: float = _REQUEST_SECONDS) -> "Found":
        """Return which of these partitions have no leader now; a request may take so many `seconds`.

        Raises:
            KafkaException: no broker says.
        """
        topics = {each.topic for each in partitions}
        led: set[tuple[str, int]] = set()
        brokers = 0
        assert self._client is not None, "it is open"
        for asked in [{"topic": topic} for topic in sorted(topics)] if len(topics) <= _SINGLY else [{}]:
            known = self._client.list_topics(timeout=seconds, **asked)
            brokers = len(known.brokers)
            for name in topics & known.topics.keys():
                led.update((name, number) for number, each in known.topics[name].partitions.items() if each.leader >= 0)
        return Found(brokers, [each for each in partitions if (each.topic, each.partition) not in led])

    def close(self) -> None:
        """Let go of the client."""
        self._client = None


class Found(NamedTuple):
    """What brokers say of themselves."""

    brokers: int
    """How many there are; 0: not asked."""
    leaderless: Sequence[TopicPartition]
