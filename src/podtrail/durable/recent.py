"""Requests that came lately, so that one whose answer was lost is not taken again when it is sent again."""

import struct
from collections import OrderedDict
from typing import Final
from zlib import crc32

from podtrail.durable.records import KEY_SIZE, key_of
from podtrail.otlp import Batch

REMEMBERED: Final = 300_000_000_000
"""Nanoseconds: as long as an OpenTelemetry Collector goes on trying (`max_elapsed_time`)."""
_MOST: Final = 65_536
_TIME = struct.Struct("<Q")
_RECEIVER = struct.Struct("<I")
_SIZE = KEY_SIZE + _RECEIVER.size


def request_key(receiver: str, batch: Batch) -> bytes:
    """Return what tells a request to a receiver from every other: the same one to another receiver is another."""
    return key_of(batch) + _RECEIVER.pack(crc32(receiver.encode()))


class RecentRequests:
    """Keys of requests, by when they were taken."""

    def __init__(self) -> None:
        self._times: OrderedDict[bytes, int] = OrderedDict()

    def knows(self, key: bytes, now: int) -> bool:
        """Say whether a request was taken lately."""
        time = self._times.get(key)
        return time is not None and now - time < REMEMBERED

    def learn(self, key: bytes, now: int) -> None:
        """Remember a request that is taken at `now`, Unix nanoseconds."""
        times = self._times
        times[key] = now
        times.move_to_end(key)
        if len(times) > _MOST:
            times.popitem(last=False)
        self.expire(now)

    def expire(self, now: int) -> int | None:
        """Forget requests that are too old at `now`; return in how many nanoseconds the next is, None without any."""
        times = self._times
        while times:
            left = next(iter(times.values())) + REMEMBERED - now
            if left > 0:
                return left
            times.popitem(last=False)
        times.clear()  # the table keeps its size until then
        return None

    def go_on(self, now: int) -> None:
        """Have the time until `now`, Unix nanoseconds, not count: nobody was there whom a request could reach again."""
        if self._times:
            away = max(0, now - next(reversed(self._times.values())))
            for key in self._times:
                self._times[key] += away

    def pack(self) -> bytes:
        """Return it all, the oldest first."""
        return b"".join([key + _TIME.pack(time) for key, time in self._times.items()])

    def unpack(self, packed: bytes) -> None:
        """Remember what was packed.

        Raises:
            ValueError: it is cut off.
        """
        size = _SIZE + _TIME.size
        if len(packed) % size:
            raise ValueError("what it remembers of requests is cut off")
        for at in range(0, len(packed), size):
            (time,) = _TIME.unpack_from(packed, at + _SIZE)
            self._times[packed[at : at + _SIZE]] = time
