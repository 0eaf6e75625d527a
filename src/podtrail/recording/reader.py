"""Reading a recording from a file, in bounded memory."""

import errno
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path

from podtrail.recording.compressed import Gap, pieces
from podtrail.recording.decoder import RecordingDecoder
from podtrail.recording.record import Damage, Record


def read_recording(path: str | PathLike[str]) -> Iterator[Record | Damage]:
    """Yield the requests of a recording in their order, and where it is damaged; what is behind damage is read on.

    OTLP JSON lines or length-prefixed protobuf, plain, gzip or zstd: the content says which, and where that is unclear
    the name. One request (at most 64 MiB) is held in memory at a time. A request arrives at the time that it carries,
    else at the latest end of its spans, and never before the one ahead of it.

    Raises:
        OSError: the file can't be read, or is a pipe or a terminal.
    """
    decoder = RecordingDecoder(fspath(path))
    with Path(path).open("rb") as file:
        if not file.seekable():
            raise OSError(errno.ESPIPE, "a recording is read from a file, not from a pipe or terminal", fspath(path))
        for piece in pieces(file, fspath(path)):
            yield from decoder.gap(piece.reason) if isinstance(piece, Gap) else decoder.feed(piece)
    yield from decoder.finish()
