"""Saved states: `N.state` is a client's state as of the beginning of segment N, pieces with checksums."""

import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from podtrail.storage.disk import Disk
from podtrail.storage.instruments import StorageDamage
from podtrail.storage.layout import STATE, TEMPORARY, numbers, state_path
from podtrail.storage.segment import VERSION

_MAGIC = b"podtrail state %d\n" % VERSION
_HEAD = re.compile(rb"podtrail state (\d{1,9})\n")
_PIECE = struct.Struct(">II")
"""Length of a piece and its checksum; a length of 0 ends the state, with the checksum of all checksums."""
_WRITTEN_AT_ONCE = 1 << 20


def save_state(folder: Path, disk: Disk, segment: int, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a state, force it onto the disk, then remove older ones.

    Raises:
        OSError: that failed, and the older ones are still there.
    """
    path = state_path(folder, segment)
    temporary = path.with_suffix(STATE + TEMPORARY)
    handle = disk.open(temporary, create=True)
    try:
        disk.truncate(handle, 0)
        _write(disk, handle, pieces)
        disk.sync(handle)
    except BaseException:
        disk.close(handle)
        with suppress(OSError):
            disk.unlink(temporary)
        raise
    disk.close(handle)
    disk.rename(temporary, path)
    disk.sync_folder(folder)
    for older in numbers(disk.names(folder), STATE):
        if older < segment:
            disk.unlink(state_path(folder, older))


def remove_states(folder: Path, disk: Disk) -> None:
    """Remove all states."""
    for number in numbers(disk.names(folder), STATE):
        disk.unlink(state_path(folder, number))
    disk.sync_folder(folder)


def saved_states(folder: Path, disk: Disk) -> Iterator[tuple[int, bytes]]:
    """Yield the states that are whole, the newest first.

    Raises:
        OSError: one can't be read.
    """
    for number in reversed(numbers(disk.names(folder), STATE)):
        pieces = _pieces(_bytes_of(disk, state_path(folder, number)))
        if pieces is not None:
            yield number, b"".join(pieces)


def _write(disk: Disk, handle: int, pieces: Iterable[bytes | memoryview]) -> None:
    block: list[bytes | memoryview] = [_MAGIC]
    at, held, total = 0, len(_MAGIC), 0
    for piece in pieces:
        if not piece:
            continue
        check = crc32(piece)
        total = crc32(check.to_bytes(4, "big"), total)
        block += (_PIECE.pack(len(piece), check), piece)
        held += _PIECE.size + len(piece)
        if held >= _WRITTEN_AT_ONCE:
            disk.write(handle, at, block)
            at, block, held = at + held, [], 0
    disk.write(handle, at, [*block, _PIECE.pack(0, total)])


def wrong_in_state(path: Path, disk: Disk) -> StorageDamage | None:
    """Return why a state can't be used, None when it can."""
    try:
        data = _bytes_of(disk, path)
    except OSError as error:
        return StorageDamage(path.name, "unreadable", 0, f"can't be read ({error.strerror})")
    if _pieces(data) is not None:
        return None
    version = _HEAD.match(data)
    if version and int(version[1]) > VERSION:
        told = f"was written by a newer podtrail, in format {int(version[1])}; this one reads formats up to {VERSION}"
        return StorageDamage(path.name, "version", len(data), told)
    return StorageDamage(path.name, "damaged", len(data), "is damaged")


def _bytes_of(disk: Disk, path: Path) -> bytes:
    handle = disk.open(path, create=False)
    try:
        return disk.read(handle, 0, disk.size(handle))
    finally:
        disk.close(handle)


def _pieces(content: bytes) -> list[memoryview] | None:
    """Return the pieces of a state, None when it is damaged or of another version."""
    data = memoryview(content)
    if data[: len(_MAGIC)] != _MAGIC:
        return None
    at, total = len(_MAGIC), 0
    pieces: list[memoryview] = []
    while at + _PIECE.size <= len(data):
        length, check = _PIECE.unpack_from(data, at)
        at += _PIECE.size
        if length == 0:
            return pieces if check == total and at == len(data) else None
        piece = data[at : at + length]
        if len(piece) < length or crc32(piece) != check:
            return None
        total = crc32(check.to_bytes(4, "big"), total)
        pieces.append(piece)
        at += length
    return None
