"""A disk in memory that loses power: what was not forced onto it may be there afterwards, or not, in any combination.

After "All File Systems Are Not Created Equal" (ALICE, OSDI 2014): unsynced writes are dropped or kept page by page, in
any order, also the length of the file; names that were made, changed or removed since the folder was synced likewise.
A failed fsync marks pages as clean that never reach the disk, as Linux does.
"""

import errno
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

Choose = Callable[[], bool]
"""Whether the next thing that was not synced survives."""
PAGE = 512
"""Bytes that reach a disk together."""


@dataclass
class Inode:
    """A file's content: as the system has it, and as the disk has it."""

    content: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Offset and page that was written; or length and None, to which the file was cut."""

    def write(self, offset: int, data: bytes) -> None:
        _put(self.content, offset, data)
        while data:
            size = PAGE - offset % PAGE
            self.unsynced.append((offset, data[:size]))
            offset, data = offset + size, data[size:]

    def truncate(self, size: int) -> None:
        _cut(self.content, size)
        self.unsynced.append((size, None))

    def sync(self) -> None:
        self.durable = bytes(self.content)
        self.unsynced.clear()

    def after_power_loss(self, choose: Choose) -> Self:
        left = bytearray(self.durable)
        for offset, page in self.unsynced:
            if not choose():
                continue
            if page is None:
                _cut(left, offset)
            else:
                _put(left, offset, page)
        return type(self)(left, bytes(left))


def _put(content: bytearray, offset: int, data: bytes) -> None:
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def _cut(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


class PowerLossDisk:
    """Files of one or more folders, none below another but as a folder."""

    def __init__(self) -> None:
        self.names_now: dict[Path, Inode] = {}
        self._names_durable: dict[Path, Inode] = {}
        self._unsynced_names: list[tuple[Path, Inode | None, Path | None]] = []
        """A name, what it means from then on (None: nothing), and a name that goes with it."""
        self._handles: dict[int, Inode] = {}
        self._next = 1

    def after_power_loss(self, rng: random.Random, share: float) -> "PowerLossDisk":
        """Return what stands on the disk when the power is back; `share`: of what was not synced, that survives."""

        def choose() -> bool:
            return rng.random() < share

        durable = dict(self._names_durable)
        for name, inode, goes in self._unsynced_names:
            if choose():
                _rename(durable, name, inode, goes)
        disk = PowerLossDisk()
        made: dict[int, Inode] = {}
        for name, inode in durable.items():
            disk.names_now[name] = made.setdefault(id(inode), inode.after_power_loss(choose))
        disk._names_durable = dict(disk.names_now)
        return disk

    def make_folder(self, path: Path, mode: int) -> None:
        return

    def names(self, folder: Path) -> Sequence[str]:
        return sorted(path.name for path in self.names_now if path.parent == folder)

    def open(self, path: Path, *, create: bool) -> int:
        if path not in self.names_now:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
            self._name(path, Inode(), None)
        handle, self._next = self._next, self._next + 1
        self._handles[handle] = self.names_now[path]
        return handle

    def size(self, handle: int) -> int:
        return len(self._handles[handle].content)

    def read(self, handle: int, offset: int, size: int) -> bytes:
        return bytes(self._handles[handle].content[offset : offset + size])

    def write(self, handle: int, offset: int, pieces: Sequence[bytes | memoryview]) -> None:
        self._handles[handle].write(offset, b"".join(pieces))

    def truncate(self, handle: int, size: int) -> None:
        self._handles[handle].truncate(size)

    def sync(self, handle: int) -> None:
        self._handles[handle].sync()

    def fail_to_sync(self, handle: int) -> None:
        """Say that nothing is dirty any more, though nothing was written."""
        self._handles[handle].unsynced.clear()

    def close(self, handle: int) -> None:
        del self._handles[handle]

    def rename(self, old: Path, new: Path) -> None:
        self._name(new, self.names_now[old], old)

    def unlink(self, path: Path) -> None:
        if path not in self.names_now:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        self._name(path, None, None)

    def sync_folder(self, folder: Path) -> None:
        for name, inode, goes in self._unsynced_names:
            if name.parent == folder:
                _rename(self._names_durable, name, inode, goes)
        self._unsynced_names = [change for change in self._unsynced_names if change[0].parent != folder]

    def _name(self, name: Path, inode: Inode | None, goes: Path | None) -> None:
        _rename(self.names_now, name, inode, goes)
        self._unsynced_names.append((name, inode, goes))


def _rename(names: dict[Path, Inode], name: Path, inode: Inode | None, goes: Path | None) -> None:
    if goes is not None:
        names.pop(goes, None)
    if inode is None:
        names.pop(name, None)
    else:
        names[name] = inode
