"""A recording that grows: read as far as it goes, and on from there."""

import os
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from podtrail.recording import Damage, Decoder, Record, is_compressed, read_recording

_PIECE = 1 << 18
_REQUESTS = 64


class Identity(NamedTuple):
    """What stays the same when a file is renamed."""

    device: int
    inode: int


def identity(path: Path) -> Identity:
    """Return a file's identity. OSError when there is none."""
    status = path.stat()
    return Identity(status.st_dev, status.st_ino)


class Tail:
    """One file, held open, so that it is read to its end also when it is renamed or removed meanwhile."""

    def __init__(self, path: Path, *, at_end: bool) -> None:
        """Open a file. OSError when that is not possible."""
        self._path = str(path)
        self._file = path.open("rb")
        status = os.fstat(self._file.fileno())
        self.identity = Identity(status.st_dev, status.st_ino)
        self._compressed = is_compressed(self._file)
        self._file.seek(0, os.SEEK_END if at_end else os.SEEK_SET)
        self._decoder = Decoder(self._path)
        self._whole: Iterator[Record | Damage] = iter(())
        if self._compressed and not at_end:
            # Nobody appends to what is compressed: it is read as it is, once.
            self._whole = read_recording(path)

    def read(self) -> Iterator[Record | Damage]:
        """Yield what is new, about 256 KiB or 64 requests of it; nothing when nothing is."""
        if self._compressed:
            yield from islice(self._whole, _REQUESTS)
            return
        yield from self._begun_again()
        if piece := self._file.read(_PIECE):
            yield from self._decoder.feed(piece)

    def abandon(self) -> None:
        """Let go of the file."""
        self._file.close()

    def close(self) -> Iterator[Record | Damage]:
        """Yield what is left, to the end of the file, and let go of it."""
        with self._file:
            if self._compressed:
                yield from self._whole
                return
            pieces = iter(lambda: self._file.read(_PIECE), b"")
            yield from chain.from_iterable(map(self._decoder.feed, pieces))
            yield from self._decoder.finish()

    def _begun_again(self) -> Iterator[Record | Damage]:
        """Start over when the file was cut short under our hands (a rotation by copy and truncate)."""
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            yield from self._decoder.finish()
            self._decoder = Decoder(self._path)
            self._file.seek(0)
