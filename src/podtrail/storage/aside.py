"""What can't be used is kept beside, so that somebody can look at it; not without bounds."""

from pathlib import Path

from podtrail.storage.disk import Disk
from podtrail.storage.instruments import StorageDamage
from podtrail.storage.layout import ASIDE

_MOST_FILES = 32
"""Of a folder that are kept; older ones go."""


def copy_aside(disk: Disk, path: Path, offset: int, content: bytes) -> Path:
    """Write bytes of a file into one of their own; return where.

    Raises:
        OSError: that is not possible.
    """
    copy = path.with_name(f"{path.name}.{offset}{ASIDE}")
    handle = disk.open(copy, create=True)
    try:
        disk.truncate(handle, 0)
        disk.write(handle, 0, [content])
        disk.sync(handle)
    finally:
        disk.close(handle)
    _remove_oldest(disk, path.parent)
    return copy


def set_aside(disk: Disk, path: Path, reason: str, told: str, size: int) -> StorageDamage:
    """Rename a file that is of no use; return what is to be said of it."""
    aside = path.with_name(path.name + ASIDE)
    try:
        disk.rename(path, aside)
        _remove_oldest(disk, path.parent)
    except OSError as error:
        return StorageDamage(path.name, reason, size, f"{path} {told}, and can't be moved aside ({error.strerror})")
    return StorageDamage(path.name, reason, size, f"{path} {told}; it is moved to {aside.name}")


def _remove_oldest(disk: Disk, folder: Path) -> None:
    """Remove what was moved aside first; names begin with ever higher numbers."""
    aside = [name for name in disk.names(folder) if name.endswith(ASIDE)]
    for name in aside[: max(0, len(aside) - _MOST_FILES)]:
        disk.unlink(folder / name)
