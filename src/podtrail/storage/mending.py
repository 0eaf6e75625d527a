"""Mending a segment: what can't be read is copied aside, then goes, so that the next start finds nothing wrong."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from podtrail.storage.aside import copy_aside
from podtrail.storage.disk import Disk
from podtrail.storage.instruments import StorageDamage
from podtrail.storage.layout import SEGMENT, TEMPORARY
from podtrail.storage.segment import LostBytes, SegmentContent


def mend_segment(disk: Disk, path: Path, content: SegmentContent) -> tuple[int, Sequence[StorageDamage]]:
    """Take out of a segment what is no frame; return its size, and what was wrong.

    Where that can't be done it is left as it is, which the damages tell.
    """
    size = len(content.data)
    lost = [found for found in content.frames() if isinstance(found, LostBytes)]
    if not lost:
        return size, []
    end = lost[-1].begin if lost[-1].end == size else size
    try:
        copies = [copy_aside(disk, path, begin, content.data[begin:stop]) for begin, stop, _ in lost]
        if end == lost[0].begin:
            _cut(disk, path, end)
        else:
            end = _write_anew(disk, path, content)
    except OSError as error:
        left = f", and can't be moved aside ({error.strerror})"
        return end, [_damage(path, stretch, left) for stretch in lost]
    told = [f"; they are moved to {copy.name}, all else in it is used" for copy in copies]
    return end, [_damage(path, stretch, done) for stretch, done in zip(lost, told, strict=True)]


def _cut(disk: Disk, path: Path, size: int) -> None:
    handle = disk.open(path, create=True)
    try:
        disk.truncate(handle, size)
        disk.sync(handle)
    finally:
        disk.close(handle)


def _write_anew(disk: Disk, path: Path, content: SegmentContent) -> int:
    """Put a segment without damage in place of one; return its size.

    To write padding into it would not do: where there is no room for it damage would stay, and be read otherwise when
    what is behind it has changed.
    """
    pieces = [*content.mended()]
    temporary = path.with_suffix(SEGMENT + TEMPORARY)
    handle = disk.open(temporary, create=True)
    try:
        disk.truncate(handle, 0)
        disk.write(handle, 0, pieces)
        disk.sync(handle)
    except OSError:
        disk.close(handle)
        with suppress(OSError):
            disk.unlink(temporary)
        raise
    disk.close(handle)
    disk.rename(temporary, path)
    disk.sync_folder(path.parent)
    return sum(map(len, pieces))


def _damage(path: Path, lost: LostBytes, done: str) -> StorageDamage:
    size = lost.end - lost.begin
    said = f"{path}: {size} bytes from byte {lost.begin} on " + ("were never finished" if lost.torn else "are damaged")
    return StorageDamage(path.name, "torn" if lost.torn else "damaged", size, said + done)
