"""Several recordings as one, in the order of arrival."""

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from operator import attrgetter
from os import PathLike

from podtrail.recording.reader import read_recording
from podtrail.recording.record import Damage, Record


def merged(paths: Iterable[str | PathLike[str]], damaged: Callable[[Damage], None]) -> Iterator[Record]:
    """Yield the requests of recordings in the order of arrival, of the recordings where that is equal.

    One request a recording is held in memory. `damaged` is told what could not be read.

    Raises:
        OSError: a file can't be read.
    """

    def one(path: str | PathLike[str]) -> Iterator[Record]:
        for record in read_recording(path):
            if isinstance(record, Damage):
                damaged(record)
            else:
                yield record

    return merge(*map(one, paths), key=attrgetter("arrival"))
