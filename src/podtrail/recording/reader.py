"""Reading a recording from a file, in bounded memory."""

import errno
from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path

from podtrail.recording.compressed import Gap, pieces
from podtrail.recording.decoder import RecordingDecoder, is_recording_name
from podtrail.recording.record import Damage, Record


def read_recording(path: str | PathLike[str]) -> Iterator[Record | Damage]:
    """Yield the requests of a recording in their order, and where it is damaged; what is behind damage is read on.

    A folder, as a store on disk is one, is read as one recording: its files in the order of their names.

    OTLP JSON lines or length-prefixed protobuf, plain, gzip or zstd: the content says which, and where that is unclear
    the name. One request (at most 64 MiB) is held in memory at a time. A request arrives at the time that it carries,
    else at the latest end of its spans, and never before the one ahead of it.

    Raises:
        OSError: the file can't be read, or is a pipe or a terminal; a folder holds no recordings.
    """
    if Path(path).is_dir():
        yield from _read_folder(path)
        return
    decoder = RecordingDecoder(fspath(path))
    with Path(path).open("rb") as file:
        if not file.seekable():
            raise OSError(errno.ESPIPE, "a recording is read from a file, not from a pipe or terminal", fspath(path))
        for piece in pieces(file, fspath(path)):
            yield from decoder.gap(piece.reason) if isinstance(piece, Gap) else decoder.feed(piece)
    yield from decoder.finish()


def recording_files(path: str | PathLike[str]) -> Sequence[Path]:
    """Return the file that a recording is, or those of a folder.

    Raises:
        FileNotFoundError: the folder holds no recordings; OSError: it can't be read.
    """
    folder = Path(path)
    if not folder.is_dir():
        return [folder]
    found = [file for file in sorted(folder.iterdir()) if is_recording_name(file.name)]
    if not found:
        raise FileNotFoundError(errno.ENOENT, "there is no recording in this folder", fspath(path))
    return found


def _read_folder(path: str | PathLike[str]) -> Iterator[Record | Damage]:
    latest = 0
    for file in recording_files(path):
        for found in read_recording(file):
            if isinstance(found, Record):
                behind = latest - found.arrival
                latest = max(latest, found.arrival)
                if behind > 0:
                    found = replace(found, arrival=latest, put_off=found.put_off + behind if found.timed else 0)
            yield found
