"""The file layer: everything that a store does to a disk, and nothing else, so that a test can stand in between."""

import errno
import os
import resource
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

_MOST_PIECES = 1024
"""Of one vectored write: IOV_MAX of Linux."""


class Disk(Protocol):
    """What a store needs of a file system. Every method raises OSError; a handle is whatever `open` returned."""

    def make_folder(self, path: Path, mode: int) -> None:
        """Make a folder and those above it that are missing; one that is there is left as it is."""

    def names(self, folder: Path) -> Sequence[str]:
        """Return the names of the files in a folder, sorted."""

    def open(self, path: Path, *, create: bool) -> int:
        """Open a file to read and, with `create`, make it and write to it; one that is there is never emptied."""

    def size(self, handle: int) -> int:
        """Return the length of a file."""

    def read(self, handle: int, offset: int, size: int) -> bytes:
        """Return the bytes there, fewer only where the file ends."""

    def write(self, handle: int, offset: int, pieces: Sequence[bytes | memoryview]) -> None:
        """Write all of the pieces, one behind the other; on an error part of it may have been written."""

    def truncate(self, handle: int, size: int) -> None:
        """Cut a file."""

    def sync(self, handle: int) -> None:
        """Force a file onto the disk."""

    def close(self, handle: int) -> None:
        """Close a file."""

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, in place of a file that has it."""

    def unlink(self, path: Path) -> None:
        """Remove a file."""

    def sync_folder(self, folder: Path) -> None:
        """Force the names in a folder onto the disk."""


def largest_file() -> int:
    """Return how many bytes a file of this process may have (RLIMIT_FSIZE)."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


class SystemDisk:
    """The file system as it is. Files are 0600."""

    def make_folder(self, path: Path, mode: int) -> None:
        """Make a folder and those above it that are missing, all with this mode.

        Raises:
            NotADirectoryError: something else stands there.
        """
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=mode, exist_ok=True)
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))

    def names(self, folder: Path) -> Sequence[str]:
        """Return the names in a folder, sorted."""
        return sorted(os.listdir(folder))

    def open(self, path: Path, *, create: bool) -> int:
        """Open a file.

        Raises:
            OSError: it can't be opened, or is no regular file.
        """
        flags = os.O_RDWR | os.O_CREAT if create else os.O_RDONLY
        handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return handle

    def size(self, handle: int) -> int:
        """Return the length of a file."""
        return os.fstat(handle).st_size

    def read(self, handle: int, offset: int, size: int) -> bytes:
        """Return the bytes there."""
        pieces = []
        while size > 0 and (piece := os.pread(handle, size, offset)):
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def write(self, handle: int, offset: int, pieces: Sequence[bytes | memoryview]) -> None:
        """Write all of the pieces."""
        for first in range(0, len(pieces), _MOST_PIECES):
            some = pieces[first : first + _MOST_PIECES]
            size = sum(map(len, some))
            written = os.pwritev(handle, some, offset)
            if written < size:
                rest = memoryview(b"".join(some))[written:]
                while rest:
                    rest = rest[os.pwrite(handle, rest, offset + size - len(rest)) :]
            offset += size

    def truncate(self, handle: int, size: int) -> None:
        """Cut a file."""
        os.ftruncate(handle, size)

    def sync(self, handle: int) -> None:
        """Force a file onto the disk: what stands in it and its length."""
        os.fdatasync(handle)

    def close(self, handle: int) -> None:
        """Close a file."""
        os.close(handle)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name."""
        old.rename(new)

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def sync_folder(self, folder: Path) -> None:
        """Force the names in a folder onto the disk."""
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
