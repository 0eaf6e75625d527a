"""A file that grows: read as far as it goes, and on from there."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

from podtrail_receivers.files.matching import matching

_PIECE = 1 << 18
MARK = 1000
"""Bytes at either end by which a file is known, as many as in the Collector."""


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


class ReadMark(NamedTuple):
    """What a file held in front of a position, as far as it tells the file from others."""

    position: int
    first: bytes
    """The file's first bytes, at most `MARK` of them."""
    last: bytes
    """The bytes in front of the position, at most `MARK` of them."""

    @classmethod
    def of(cls, handle: int, position: int) -> "ReadMark":
        """Return what an open file holds in front of a position."""
        length = min(position, MARK)
        return cls(position, os.pread(handle, length, 0), os.pread(handle, length, position - length))

    def is_in(self, handle: int) -> bool:
        """Return whether an open file holds the same in front of the position."""
        return self == self.of(handle, self.position)


class Tail:
    """One file, held open, so that it is read to its end also when it is renamed or removed meanwhile."""

    def __init__(self, path: Path, *, at_end: bool) -> None:
        """Open a file.

        Raises:
            OSError: it can't be opened.
        """
        self.path = path
        self.file = path.open("rb", buffering=0)
        self._handle = self.file.fileno()
        status = os.fstat(self._handle)
        self.identity = FileIdentity(status.st_dev, status.st_ino)
        self._before: tuple[ReadMark, int] | None = None
        """`mark` and `complete` from before the file was last written anew: a copy of it may still appear."""
        self.go_to(status.st_size if at_end else 0)

    def go_to(self, position: int) -> None:
        """Read on from a position, in bytes from the file's beginning."""
        self.file.seek(position)
        self.mark = ReadMark.of(self._handle, position)
        self.complete = position
        """Where the last item ends that was read whole: a line, unless the reader says otherwise."""

    def begins_again(self) -> bool:
        """Start over if the file was cut short or written anew in place; return whether it was.

        A rotation by copy and truncate leaves a file that may have grown beyond the position already. So the bytes in
        front of it are compared with those that were read: the first 1,000, by which the Collector knows a file, and
        the last 1,000, because many files begin with the same resource.
        """
        if self.mark.is_in(self._handle):
            return False
        self._before = self.mark, self.complete
        self.go_to(0)
        return True

    def read(self, size: int = _PIECE) -> bytes:
        """Return the next bytes, at most `size`."""
        begin = self.file.tell()
        piece = self.file.read(size) or b""
        position, first, last = self.mark
        if new := piece[position - begin :]:  # less than the piece only behind `back_to`
            if line := piece.rfind(b"\n") + 1:
                self.complete = begin + line
            self.mark = ReadMark(position + len(new), (first + new[:MARK])[:MARK], (last + new[-MARK:])[-MARK:])
        return piece

    def back_to(self, position: int) -> None:
        """Read bytes again; all that was read still counts for `begins_again`."""
        self.file.seek(position)

    def goes_on_in(self, copy: "Tail") -> bool:
        """Read on in a copy of this file after the last item that was read whole here; return whether it is one."""
        read = [(self.mark, self.complete), *([self._before] if self._before else [])]
        for mark, complete in read:
            if mark.position >= MARK and mark.is_in(copy._handle):
                copy.go_to(complete)
                return True
        return False

    def close(self) -> None:
        """Close the file."""
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
        """`open_file` makes the reader of a file; `unreadable` gets those that can't be opened, once a reason."""
        self._include = tuple(include)
        self._exclude = tuple(exclude)
        self._open_file = open_file
        self._unreadable = unreadable
        self._failing: dict[Path, int | None] = {}
        self.readers: dict[FileIdentity, Reader] = {}
        self._abandoned = False

    def look(self, *, at_end: bool) -> list[Reader]:
        """Open the files that are new; take out and return the readers of those that are no longer there."""
        there: set[FileIdentity] = set()
        before, self._failing = self._failing, {}
        for path in sorted(matching(self._include, self._exclude), key=_written):
            try:
                there.add(self._known(path, at_end=at_end))
            except OSError as error:
                self._failing[path] = error.errno
                if path not in before or before[path] != error.errno:
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
            return tail.identity
        any(reader.tail.goes_on_in(tail) for reader in self.readers.values())
        self.readers[tail.identity] = self._open_file(tail)
        return tail.identity

    def abandon(self) -> None:
        """Let go of all files, for good."""
        self._abandoned = True
        for reader in self.readers.values():
            reader.tail.close()
        self.readers.clear()
