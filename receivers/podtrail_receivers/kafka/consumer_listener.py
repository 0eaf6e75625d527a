"""What the consumer tells: what is fetched, and what happens to its partitions."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from confluent_kafka import KafkaError, Message

from podtrail.component.partitions import Commit

Place = tuple[str, int]
"""A topic and the number of one of its partitions."""


def named(place: Place) -> str:
    """Return a partition as Kafka's own tools write it."""
    return f"{place[0]}[{place[1]}]"


class Fetched(NamedTuple):
    """What was fetched of one partition."""

    messages: Sequence[Message]
    """In the order of their offsets."""
    high: int
    """The offset that the next message gets that is written to it, as far as known; negative: unknown."""
    end: int | None
    """The offset of the end of the partition, if it was reached behind these."""


class Assigned(NamedTuple):
    """A partition that this member is given."""

    place: Place
    committed: Commit | None
    """What the group has committed."""
    first: int
    """The first offset that there still is."""
    end: int
    """The offset of what is written next."""


class Listener(Protocol):
    """Whom the thread tells; all of it runs on the loop."""

    def fetched(self, found: Mapping[Place, Fetched]) -> None:
        """Take what was fetched."""

    def failed(self, error: KafkaError, place: Place | None) -> None:
        """Note an error that librdkafka goes on after; `place`: the partition that it is about."""

    def unreadable(self, error: KafkaError, place: Place, offset: int) -> None:
        """Note a batch of records that can't be read and begins at an offset: nothing behind it is fetched."""

    def left_waiting(self) -> None:
        """Note that the group has not let this member in yet."""

    def looked(self, brokers: int, leaderless: Sequence[Place]) -> None:
        """Note how many brokers there are, and which of this member's partitions have no leader."""

    def left_unread(self, places: Sequence[Place]) -> None:
        """Note that nobody in the group has these, and that this member therefore leaves and joins again."""

    async def assigned(self, given: Sequence[Assigned]) -> Mapping[Place, int]:
        """Open partitions; return from which offset on each is read."""

    async def revoked(self, places: Sequence[Place]) -> Mapping[Place, Commit]:
        """Stop working on partitions that will be somebody else's; return what is to be committed of each."""

    async def lost(self, places: Sequence[Place]) -> None:
        """Forget partitions that are somebody else's already."""

    async def dropped(self, places: Sequence[Place]) -> None:
        """Forget partitions: their last commit is made."""
