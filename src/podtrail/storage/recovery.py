"""Opening a folder: what can be read is kept, what can't is moved aside and told."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from podtrail.otlp.stored import Entry
from podtrail.storage.disk import Disk
from podtrail.storage.instruments import StorageDamage
from podtrail.storage.layout import ASIDE, SEGMENT, STATE, TEMPORARY, numbers, segment_path
from podtrail.storage.segment import (
    LEAST_FRAME,
    VERSION,
    Frame,
    LostBytes,
    entry_in,
    frames,
    padding_frames,
    version_of,
)
from podtrail.storage.segment_writer import Position


class Opened(NamedTuple):
    """What was found in a folder."""

    sizes: dict[int, int]
    """Of the segments that can be read."""
    next: int
    """The number of the first segment that this run may write."""
    damages: list[StorageDamage]


def open_folder(folder: Path, disk: Disk, mode: int) -> Opened:
    """Read all of a folder and mend it.

    Raises:
        OSError: the folder can't be made, or its names can't be read.
    """
    disk.make_folder(folder, mode)
    names = list(disk.names(folder))
    damages: list[StorageDamage] = []
    sizes: dict[int, int] = {}
    found = numbers(names, SEGMENT)
    for number in found:
        path = segment_path(folder, number)
        try:
            size, damage = _open_segment(disk, path)
        except OSError as error:
            size, damage = 0, [_set_aside(disk, path, "unreadable", f"can't be read ({error.strerror})")]
        damages += damage
        if size:
            sizes[number] = size
    for name in names:
        if name.endswith(TEMPORARY):
            with suppress(OSError):
                disk.unlink(folder / name)
    states = numbers(names, STATE)
    following = max([*(number + 1 for number in found), *states, 1])
    return Opened(sizes, following, damages)


def read_segment(folder: Path, disk: Disk, number: int) -> Iterator[tuple[Position, Entry]]:
    """Yield the entries of a segment; damage in it is passed over."""
    data = memoryview(_content(disk, segment_path(folder, number)))
    for frame in frames(data):
        if isinstance(frame, Frame) and (entry := entry_in(data, frame)):
            yield Position(number, frame.begin), entry


def read_entry(folder: Path, disk: Disk, position: Position) -> Entry | None:
    """Return the entry at a position, None when there is none that can be read."""
    handle = disk.open(segment_path(folder, position.segment), create=False)
    try:
        head = disk.read(handle, position.offset, 4)
        data = memoryview(head + disk.read(handle, position.offset + 4, int.from_bytes(head, "big")))
    finally:
        disk.close(handle)
    found = next(frames(data), None)
    return entry_in(data, found) if isinstance(found, Frame) and found.begin == 0 else None


def _content(disk: Disk, path: Path) -> bytes:
    handle = disk.open(path, create=False)
    try:
        return disk.read(handle, 0, disk.size(handle))
    finally:
        disk.close(handle)


def _open_segment(disk: Disk, path: Path) -> tuple[int, list[StorageDamage]]:
    """Mend a segment; return its size, 0 when there is nothing in it, and what was wrong."""
    data = memoryview(_content(disk, path))
    if not data:
        disk.unlink(path)
        return 0, []
    version = version_of(data)
    if version is not None and version > VERSION:
        told = f"was written by a newer version of podtrail, in format {version}; this one reads {VERSION}"
        return 0, [_set_aside(disk, path, "version", told, len(data))]
    found = list(frames(data))
    if not any(isinstance(frame, Frame) for frame in found):
        return 0, [_set_aside(disk, path, "foreign", "holds nothing that podtrail has written", len(data))]
    return len(data), [_mended(disk, path, data, lost) for lost in found if isinstance(lost, LostBytes)]


def _mended(disk: Disk, path: Path, data: memoryview, lost: LostBytes) -> StorageDamage:
    """Copy lost bytes into a file of their own, and put padding in their place or cut them off."""
    size = lost.end - lost.begin
    reason = "torn" if lost.torn else "damaged"
    copy = path.with_name(f"{path.name}.{lost.begin}{ASIDE}")
    what = f"{path}: {size} bytes at byte {lost.begin} are {reason}"
    try:
        handle = disk.open(copy, create=True)
        try:
            disk.write(handle, 0, [bytes(data[lost.begin : lost.end])])
            disk.sync(handle)
        finally:
            disk.close(handle)
        handle = disk.open(path, create=True)
        try:
            if lost.end == len(data):
                disk.truncate(handle, lost.begin)
            elif size >= LEAST_FRAME:
                disk.write(handle, lost.begin, list(padding_frames(size)))
            disk.sync(handle)
        finally:
            disk.close(handle)
    except OSError as error:
        return StorageDamage(path.name, reason, size, f"{what} and can't be moved aside ({error.strerror})")
    return StorageDamage(path.name, reason, size, f"{what} and moved to {copy.name}; all else in it is used")


def _set_aside(disk: Disk, path: Path, reason: str, told: str, size: int = 0) -> StorageDamage:
    """Rename a file that is of no use."""
    aside = path.with_name(path.name + ASIDE)
    try:
        disk.rename(path, aside)
    except OSError as error:
        return StorageDamage(path.name, reason, size, f"{path} {told}, and can't be moved aside ({error.strerror})")
    return StorageDamage(path.name, reason, size, f"{path} {told}; it is moved to {aside.name}")
