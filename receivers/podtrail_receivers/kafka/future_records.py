"""Records whose time is ahead of the clock: their partition's time goes there and no further until the clock is there.

They can't be judged by the clock: whoever reads them again, later, must decide the same. So they are told and counted.
"""

from collections.abc import Sequence
from typing import Final

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from podtrail_receivers.kafka.complaints import Complaints
from podtrail_receivers.kafka.consumer_listener import Place, named
from podtrail_receivers.kafka.instruments import KafkaInstruments

_MILLISECOND: Final = 1_000_000
_TOLERANCE_MS: Final = 60_000
"""By how much clocks may differ without a word."""


class FutureRecords:
    """Looks at what is fetched."""

    def __init__(self, complaints: Complaints, instruments: KafkaInstruments) -> None:
        """Say it in `complaints`, count it in `instruments`."""
        self._complaints = complaints
        self._instruments = instruments
        self._furthest: dict[Place, tuple[int, int | None]] = {}
        """The latest time, Unix milliseconds, of those that were ahead, and its record's offset."""

    def opened(self, place: Place, time: int, now_ms: int) -> None:
        """Tell of a partition whose time is ahead when it is opened, by what its last owner has read or committed.

        Args:
            place: the partition.
            time: its time, Unix nanoseconds.
            now_ms: the clock on the wall, Unix milliseconds.
        """
        time_ms = time // _MILLISECOND
        if time_ms > now_ms + _TOLERANCE_MS:
            self._furthest[place] = time_ms, None
            self.look(place, (), now_ms)

    def look(self, place: Place, messages: Sequence[Message], now_ms: int) -> None:
        """Tell of a partition while the time of what was read of it is ahead.

        Args:
            place: the partition.
            messages: what was fetched of it.
            now_ms: the clock on the wall, Unix milliseconds.
        """
        latest = now_ms + _TOLERANCE_MS
        ahead = [(time, message.offset()) for message in messages if (time := _time(message)) > latest]
        if ahead:
            self._instruments.ahead(place, len(ahead))
            self._furthest[place] = max((self._furthest.get(place, ahead[0]), *ahead), key=lambda each: each[0])
        if place not in self._furthest:
            return
        time, offset = self._furthest[place]
        if time <= latest:
            del self._furthest[place]
            return
        where = named(place)
        what = (
            f"{where} offset {offset}" if offset is not None else f"the time of {where}, as its last owner has left it,"
        )
        self._complaints.say(
            f"{what} is {(time - now_ms) / 1000:.0f} s ahead of the clock: traces that come behind it "
            "are not decided before the clock is there; mend its producer's clock, and set "
            "message.timestamp.type=LogAppendTime on the topic",
            f"{where} ahead",
        )


def _time(message: Message) -> int:
    kind, milliseconds = message.timestamp()
    return 0 if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds
