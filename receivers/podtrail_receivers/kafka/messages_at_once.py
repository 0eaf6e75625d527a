"""How many messages are taken from librdkafka at once, so that little comes on top of what fills a share."""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from confluent_kafka import Message

from podtrail_receivers.kafka.consumer_listener import Place

_MOST: Final = 1000
MOST_BYTES: Final = 4 << 20
"""Of messages taken at once, if those of each partition are as large as its last: partitions are paused only then."""
_UNSEEN_BYTES: Final = 256 << 10
"""What a message of a partition may have of which nothing was seen: a few of what is lagging fill a share."""
_UNSEEN_SECONDS: Final = 5.0
"""For which that is taken into account: the broker of a partition may be away, and the others go on."""


class MessagesAtOnce:
    """What the messages of each partition that is fetched are like; all of it in the consumer's thread."""

    def __init__(self) -> None:
        self._sizes: dict[Place, int] = {}
        """Bytes of a message, on average of those that came last."""
        self._unseen: dict[Place, float] = {}
        """Until when, of the monotonic clock, it is waited for what they are like."""
        self._paused: set[Place] = set()

    @property
    def number(self) -> int:
        """How many to take next: any of them may be of the partition with the largest."""
        sizes = [size for place, size in self._sizes.items() if place not in self._paused]
        now = time.monotonic()
        if not sizes or any(until > now for until in self._unseen.values()):
            sizes.append(_UNSEEN_BYTES)
        return min(_MOST, max(1, MOST_BYTES // max(sizes)))

    def saw(self, taken: Mapping[Place, Sequence[Message]]) -> None:
        """Note what was taken; nothing of a partition whose end was reached."""
        for place, messages in taken.items():
            self._unseen.pop(place, None)
            if messages:
                self._sizes[place] = 1 + sum(map(len, messages)) // len(messages)

    def open(self, places: Collection[Place]) -> None:
        """Note that partitions are fetched from now on."""
        self.resume(places)
        self._unseen.update(dict.fromkeys(places, time.monotonic() + _UNSEEN_SECONDS))

    def pause(self, places: Collection[Place]) -> None:
        """Note that partitions are fetched no further."""
        self._paused.update(places)

    def resume(self, places: Collection[Place]) -> None:
        """Note that they are again."""
        self._paused.difference_update(places)

    def forget(self, places: Collection[Place]) -> None:
        """Forget partitions: they are no longer this member's."""
        self.resume(places)
        for place in places:
            self._sizes.pop(place, None)
            self._unseen.pop(place, None)
