"""Opening a folder: what can be read is kept, what can't is moved aside and told. Nothing here prevents a start."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import NamedTuple

from podtrail.otlp.stored import Entry
from podtrail.storage.aside import set_aside
from podtrail.storage.disk import Disk
from podtrail.storage.instruments import StorageDamage
from podtrail.storage.layout import (
    FIRST_SEGMENT,
    LEFT_ALONE,
    SEGMENT,
    STATE,
    TEMPORARY,
    number_of,
    numbers,
    segment_path,
    state_path,
)
from podtrail.storage.mending import mend_segment
from podtrail.storage.segment import VERSION, Frame, Position, SegmentContent
from podtrail.storage.states import wrong_in_state

_MOST_MISSING = 100
"""Segments that are told of one by one."""
_BEYOND = 10**15
"""A number that no podtrail reaches."""
_TOO_LARGE = 1 << 30
"""Bytes of a file that can't be a segment, and is not read: it may not fit into memory."""


class Opened(NamedTuple):
    """What was found in a folder."""

    sizes: dict[int, int]
    """Of the segments that are there."""
    next: int
    """The number of the first segment that this run may write."""
    damages: list[StorageDamage]


def open_folder(folder: Path, disk: Disk, mode: int, *, fsync: bool) -> Opened:
    """Make a folder where it is missing, read all of it and mend it.

    Raises:
        OSError: the folder can't be made, or its names can't be read.
    """
    in_the_way = []
    try:
        disk.make_folder(folder, mode)
    except (FileExistsError, NotADirectoryError):  # the Collector has a file of that name
        in_the_way.append(set_aside(disk, folder, "foreign", "is no folder", 0))
        disk.make_folder(folder, mode)
    names = disk.names(folder)
    if fsync and not names:  # it may be new
        disk.sync_folder(folder.parent)
    segments, states = numbers(names, SEGMENT), numbers(names, STATE)
    damages = [*in_the_way, *_foreign(folder, names)]
    for number in [number for number in states if number >= _BEYOND]:
        damages.append(set_aside(disk, state_path(folder, number), "foreign", "is no state of podtrail's", 0))
        states.remove(number)
    segments = _within_reach(folder, disk, segments, states)
    damages += _missing(folder, segments, states)
    sizes = {}
    for number in segments:
        size, found = _open_segment(disk, segment_path(folder, number))
        damages += found
        if size is not None:
            sizes[number] = size
    for number in states:
        path = state_path(folder, number)
        if wrong := wrong_in_state(path, disk):
            damages.append(set_aside(disk, path, wrong.reason, wrong.told, wrong.size))
    for name in names:
        if name.endswith(TEMPORARY):
            with suppress(OSError):
                disk.unlink(folder / name)
    return Opened(sizes, max([*(number + 1 for number in segments), *states, FIRST_SEGMENT]), damages)


def _within_reach(folder: Path, disk: Disk, segments: Sequence[int], states: Sequence[int]) -> list[int]:
    """Return the numbers of segments; those that only somebody else can have named get the next ones.

    New segments would have numbers with more digits than any that is read again.
    """
    found = [number for number in segments if number < _BEYOND]
    for number in segments[len(found) :]:
        reachable = max([*found[-1:], *states[-1:], FIRST_SEGMENT]) + 1
        with suppress(OSError):  # where nothing can be renamed, nothing can be written
            disk.rename(segment_path(folder, number), segment_path(folder, reachable))
            found.append(reachable)
    return found


def read_segment(folder: Path, disk: Disk, number: int) -> Iterator[tuple[Position, Entry]]:
    """Yield the entries of a segment; damage in it is passed over.

    Raises:
        OSError: it can't be read.
    """
    content = SegmentContent(_bytes_of(disk, segment_path(folder, number)))
    for frame in content.frames():
        if isinstance(frame, Frame) and (entry := content.entry(frame)):
            yield Position(number, frame.begin), entry


def read_entry(folder: Path, disk: Disk, position: Position) -> Entry | None:
    """Return the entry at a position, None when there is none that can be read.

    Raises:
        OSError: the segment can't be read.
    """
    handle = disk.open(segment_path(folder, position.segment), create=False)
    try:
        head = disk.read(handle, position.offset, 4)
        content = SegmentContent(head + disk.read(handle, position.offset + len(head), int.from_bytes(head, "big")))
    finally:
        disk.close(handle)
    frame = content.frame_at(0)
    return content.entry(frame) if frame else None


def _bytes_of(disk: Disk, path: Path) -> bytes:
    handle = disk.open(path, create=False)
    try:
        return disk.read(handle, 0, disk.size(handle))
    finally:
        disk.close(handle)


def _size_of(disk: Disk, path: Path) -> int:
    handle = disk.open(path, create=False)
    try:
        return disk.size(handle)
    finally:
        disk.close(handle)


def _foreign(folder: Path, names: Iterable[str]) -> Iterator[StorageDamage]:
    """Tell of files that are none of a journal's; they are left as they are."""
    for name in names:
        ours = number_of(name, SEGMENT) is not None or number_of(name, STATE) is not None
        if not ours and not name.endswith(LEFT_ALONE):
            yield StorageDamage(name, "foreign", 0, f"{folder / name} is no file of podtrail's; it is left alone")


def _missing(folder: Path, segments: Sequence[int], states: Sequence[int]) -> Iterator[StorageDamage]:
    """Tell of segments that must have been there: those between others, and from the newest state on."""
    if not segments:
        return
    before = (min(segments[0], states[-1]) if states else segments[0]) - 1
    # A number may be any: a file that somebody else named leaves a gap of millions.
    gaps = (range(low + 1, high) for low, high in pairwise([before, *segments]))
    for number in islice(chain.from_iterable(gaps), _MOST_MISSING):
        path = segment_path(folder, number)
        yield StorageDamage(path.name, "missing", 0, f"{path} is missing; what it held is lost")


def _open_segment(disk: Disk, path: Path) -> tuple[int | None, Sequence[StorageDamage]]:
    """Mend a segment; return its size, None when it can't be used, and what was wrong."""
    try:
        size = _size_of(disk, path)
        if size > _TOO_LARGE:
            return None, [set_aside(disk, path, "foreign", f"is no segment, of {size} bytes", size)]
        data = _bytes_of(disk, path)
        if not data:
            disk.unlink(path)
            return None, [StorageDamage(path.name, "torn", 0, f"{path} is empty; what it held, if anything, is lost")]
    except OSError as error:
        return None, [set_aside(disk, path, "unreadable", f"can't be read ({error.strerror})", 0)]
    content = SegmentContent(data)
    version = content.version()
    if version is not None and version > VERSION:
        told = f"was written by a newer podtrail, in format {version}; this one reads formats up to {VERSION}"
        return None, [set_aside(disk, path, "version", told, len(data))]
    if content.mark is None and any(data):
        return None, [set_aside(disk, path, "foreign", "holds nothing that podtrail can read", len(data))]
    kept, damages = mend_segment(disk, path, content)
    if not kept:
        with suppress(OSError):  # else the next start reports an empty segment once more
            disk.unlink(path)
        return None, damages
    return kept, damages
