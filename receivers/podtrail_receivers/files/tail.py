"""A file that grows: read as far as it goes, and on from there."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

from podtrail_receivers.files.matching import matching

_PIECE = 1 << 18


class FileIdentity(NamedTuple):
    """What stays the same when a file is renamed."""

    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "FileIdentity":
        """Return the identity of the file at `path`.

        Raises:
            OSError: there is none.
        """
        status = path.stat()
        return cls(status.st_dev, status.st_ino)


class Tail:
    """One file, held open, so that it is read to its end also when it is renamed or removed meanwhile."""

    def __init__(self, path: Path, *, at_end: bool) -> None:
        """Open a file.

        Raises:
            OSError: it can't be opened.
        """
        self.path = path
        self.file = path.open("rb")
        status = os.fstat(self.file.fileno())
        self.identity = FileIdentity(status.st_dev, status.st_ino)
        self.file.seek(0, os.SEEK_END if at_end else os.SEEK_SET)

    def begins_again(self) -> bool:
        """Say whether the file was cut short under our hands (a rotation by copy and truncate); if so, start over."""
        if os.fstat(self.file.fileno()).st_size >= self.file.tell():
            return False
        self.file.seek(0)
        return True

    def read(self) -> bytes:
        """Return what is new, at most 256 KiB of it."""
        return self.file.read(_PIECE)

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()


def _written(path: Path) -> int:
    """Return when a file was last written, so that of a rotated one the older parts are read first."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


class HasTail(Protocol):
    """Whatever reads a file through a tail."""

    @property
    def tail(self) -> Tail:
        """The file."""
        ...


Reader = TypeVar("Reader", bound=HasTail)


class Following(Generic[Reader]):
    """The files that patterns mean, each with its reader, as they come and go."""

    def __init__(
        self,
        include: Iterable[str],
        exclude: Iterable[str],
        open_file: Callable[[Tail], Reader],
        unreadable: Callable[[Path, OSError], None],
    ) -> None:
        """`open_file` makes the reader of a file; `unreadable` is told of those that can't be opened, at each look."""
        self._include = tuple(include)
        self._exclude = tuple(exclude)
        self._open_file = open_file
        self._unreadable = unreadable
        self.readers: dict[FileIdentity, Reader] = {}
        self._abandoned = False

    def look(self, *, at_end: bool) -> list[Reader]:
        """Open the files that are new; take out and return the readers of those that are no longer there."""
        there: set[FileIdentity] = set()
        for path in sorted(matching(self._include, self._exclude), key=_written):
            try:
                there.add(self._known(path, at_end=at_end))
            except OSError as error:
                self._unreadable(path, error)
        return [self.readers.pop(found) for found in [*self.readers] if found not in there]

    def _known(self, path: Path, *, at_end: bool) -> FileIdentity:
        """Return which file a path names, opened if it is new."""
        found = FileIdentity.of(path)
        if found in self.readers:
            return found
        tail = Tail(path, at_end=at_end)
        # The file may have been renamed since, or all may have been abandoned while a thread looked.
        if tail.identity in self.readers or self._abandoned:
            tail.close()
        else:
            self.readers[tail.identity] = self._open_file(tail)
        return tail.identity

    def abandon(self) -> None:
        """Let go of all files, for good."""
        self._abandoned = True
        for reader in self.readers.values():
            reader.tail.close()
        self.readers.clear()
