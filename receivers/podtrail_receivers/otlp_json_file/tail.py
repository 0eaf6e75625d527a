"""A recording that grows: read as far as it goes, and on from there."""

from collections.abc import Iterator
from itertools import chain, islice

from podtrail.recording import Damage, Record, RecordingDecoder, is_compressed, read_recording
from podtrail_receivers.files.tail import Tail

_REQUESTS = 64


class RecordingTail:
    """What a recording says, while it is written."""

    def __init__(self, tail: Tail) -> None:
        self.tail = tail
        self._path = str(tail.path)
        at = tail.file.tell()
        tail.file.seek(0)
        self._compressed = is_compressed(tail.file)
        tail.file.seek(at)
        self._decoder = RecordingDecoder(self._path)
        self._whole: Iterator[Record | Damage] = iter(())
        if self._compressed and not at:
            # Nobody appends to what is compressed: it is read as it is, once.
            self._whole = read_recording(tail.path)

    def read(self) -> Iterator[Record | Damage]:
        """Yield what is new, about 256 KiB or 64 requests of it; nothing when nothing is."""
        if self._compressed:
            yield from islice(self._whole, _REQUESTS)
            return
        if self.tail.begins_again():
            yield from self._decoder.finish()
            self._decoder = RecordingDecoder(self._path)
        if piece := self.tail.read():
            yield from self._decoder.feed(piece)

    def close(self) -> Iterator[Record | Damage]:
        """Yield what is left, to the end of the file, and let go of it."""
        with self.tail.file:
            if self._compressed:
                yield from self._whole
                return
            yield from chain.from_iterable(map(self._decoder.feed, iter(self.tail.read, b"")))
            yield from self._decoder.finish()
