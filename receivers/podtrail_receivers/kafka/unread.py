"""Partitions that nobody in the group has, though it has shared them out.

With a cooperative strategy a partition moves in two rebalances: its owner gives it up and then calls for the second. A
member known by name (`group_instance_id`) that dies in between comes back to what the first one has left it, without a
rebalance (KIP-345): nobody calls for the second, the partition is nobody's, and the brokers see nothing wrong in that.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Final

from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

from podtrail_receivers.kafka.consumer_listener import Place

_REQUEST_SECONDS: Final = 2.0
_LOOKING_SECONDS: Final = 10.0
_UNANSWERED_SECONDS: Final = 60.0
"""Until the next look where a broker hangs: fetching waits for each."""
_LEAST_LOOKS: Final = 3
"""How many it takes to do something: between the two rebalances partitions are nobody's, for seconds."""
_MOST_LOOKS: Final = 96


class UnreadWatch:
    """Looks now and then for partitions that are nobody's; all of it in the consumer's thread."""

    def __init__(self, group: str, reads: Callable[[str], bool]) -> None:
        """Make it. `reads`: says whether a topic is one that the group reads."""
        self._group = group
        self._reads = reads
        self._due = time.monotonic() + _LOOKING_SECONDS
        self._chosen = ""
        """Which of the members is to do something."""
        self._looks = 0
        """How many have found something, one after the other, with the same one chosen."""
        self._needed = _LEAST_LOOKS
        """Twice as many each time that it was done in vain."""

    def look(self, client: AdminClient, member: str) -> Sequence[Place]:
        """Return what has been nobody's for a while, if this member is the one that is to join again because of it."""
        if time.monotonic() < self._due:
            return ()
        try:
            found = self._find(client)
        except (KafkaException, FutureTimeoutError):  # what is wrong with brokers is told by those who read from them
            self._looks = 0
            self._due = time.monotonic() + _UNANSWERED_SECONDS
            return ()
        self._due = time.monotonic() + _LOOKING_SECONDS
        if found is None:
            self._looks = 0
            return ()
        unread, chosen = found
        if not unread:
            self._looks, self._needed = 0, _LEAST_LOOKS
            return ()
        self._looks = self._looks + 1 if chosen == self._chosen else 1
        self._chosen = chosen
        if self._looks < self._needed or member != chosen:
            return ()
        self._looks, self._needed = 0, min(2 * self._needed, _MOST_LOOKS)
        return unread

    def _find(self, client: AdminClient) -> tuple[Sequence[Place], str] | None:
        """Return what is nobody's, and the first member that is known by name; None while the group shares out.

        Raises:
            KafkaException: no broker says.
            TimeoutError: nor that none does.
        """
        asked = client.describe_consumer_groups([self._group], request_timeout=_REQUEST_SECONDS)[self._group]
        group = asked.result(2 * _REQUEST_SECONDS)
        if group.state != ConsumerGroupState.STABLE:
            return None
        taken = {
            (each.topic, each.partition) for member in group.members for each in member.assignment.topic_partitions
        }
        known = client.list_topics(timeout=_REQUEST_SECONDS).topics
        there = {(name, number) for name in filter(self._reads, known) for number in known[name].partitions}
        named = [member.member_id for member in group.members if member.group_instance_id]
        return sorted(there - taken), min(named, default="")
