"""The Collector's consistent hash ring: who has the same backends sends the same trace to the same of them.

Source: `consistent_hashing.go` of contrib's loadbalancingexporter as it is since v0.157 (older ones differ in every
number). A circle of 131,071 positions. Each backend has 200 points on it, at the CRC-32 (IEEE) of its name and four
bytes that count. A point whose position is taken goes to the next free one, but not past the tenth. A key belongs to
the first point at or behind the position of its own CRC-32.
"""

from array import array
from collections.abc import Collection
from struct import Struct
from zlib import crc32

POSITIONS = 131_071
_POINTS = 200
"""Of each backend."""
_PROBES = 10
_COUNT = Struct("<I")


class Ring:
    """Which backend each position of the circle belongs to."""

    def __init__(self, backends: Collection[str]) -> None:
        """Part the circle among backends, as the resolver named them."""
        self.backends = tuple(sorted(backends))
        points = self._points()
        owners = array("H")
        for position in sorted(points):
            owners.extend([points[position]] * (position + 1 - len(owners)))
        if points:
            owners.extend([points[min(points)]] * (POSITIONS - len(owners)))
        self.owners = owners
        """By position, an index into `backends`."""

    def backend(self, key: int) -> str:
        """Return the backend of a key, a CRC-32."""
        return self.backends[self.owners[key % POSITIONS]]

    def _points(self) -> dict[int, int]:
        """Return the index of a backend at each position where there is a point."""
        candidates: list[tuple[int, int, int]] = []
        for index, backend in enumerate(self.backends):
            name = crc32(backend.encode())
            hashes = [crc32(_COUNT.pack(number), name) for number in range(_POINTS)]
            candidates += [(value % POSITIONS, value, index) for value in hashes]
        points: dict[int, int] = {}
        for position, _, index in sorted(candidates):
            for at in range(position, position + _PROBES):
                if at % POSITIONS not in points:
                    points[at % POSITIONS] = index
                    break
        return points
