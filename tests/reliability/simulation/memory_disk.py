"""A disk in memory that forgets at a power loss what was not synced, and fails as disks do.

What was written and not synced survives a power loss in any part (in sectors, of each write), and so do names that were
made, changed or removed in a folder that was not synced. A sync that fails leaves it open what of that is on the disk,
and another one says nothing about it any more (https://wiki.postgresql.org/wiki/Fsync_Errors).
"""

import errno
import os
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.reliability.simulation.scenario import DiskManner

_SECTOR = 512
_SURVIVES = 0.5


@dataclass(slots=True, eq=False)
class _File:
    seen: bytearray = field(default_factory=bytearray)
    """What everybody reads who asks the system."""
    synced: bytearray = field(default_factory=bytearray)
    """What is on the disk for certain."""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """What was done since: writes at an offset, and cuts to a size (None)."""


def _apply(content: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del content[at:]
        content.extend(bytes(at - len(content)))
    else:
        content.extend(bytes(max(0, at - len(content))))
        content[at : at + len(data)] = data


class MemoryDisk:
    """The disk of a story. `Disk` for a store; for the story: `turn`, `kill_after`, `lose_power`, `detach`."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(f"disk {seed}")
        self._names: dict[Path, _File] = {}
        self._synced_names: dict[Path, _File] = {}
        self._pending_names: list[tuple[Path, Path | None, _File | None]] = []
        """Since the folder was synced: a name, the one that it had before, what it stands for now (None: nothing)."""
        self._folders: set[Path] = set()
        self._handles: dict[int, _File] = {}
        self._next_handle = 3
        self._manner: DiskManner = "well"
        self._capacity = sys.maxsize
        """Bytes of all files that there is room for."""
        self._life = 0
        self._kill: tuple[int, Callable[[], None]] | None = None
        self.operations = 0

    def attach(self, life: int) -> "MountedDisk":
        """Return the disk for one life of podtrail; those before can do nothing any more."""
        self._life = life
        self._handles.clear()
        self._kill = None
        return MountedDisk(self, life)

    def turn(self, manner: DiskManner) -> None:
        """Be so from now on."""
        self._manner = manner
        self._capacity = self.size() if manner == "full" else sys.maxsize

    def kill_after(self, operations: int, kill: Callable[[], None]) -> None:
        """Call `kill` in the midst of the so many'th operation from now on, of which some part is done."""
        self._kill = (self.operations + operations, kill)

    def lose_power(self) -> None:
        """Forget what is not on the disk."""
        for name, before, file in self._pending_names:
            if self._rng.random() < _SURVIVES:
                self._name(self._synced_names, name, before, file)
        self._pending_names.clear()
        self._names = dict(self._synced_names)
        for file in {id(file): file for file in self._names.values()}.values():
            self._settle(file)
            file.seen = bytearray(file.synced)

    def has(self, ending: str) -> bool:
        """Say whether there is a file with such a name."""
        return any(name.name.endswith(ending) for name in self._names)

    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(len(file.seen) for file in self._names.values())

    def _settle(self, file: _File) -> None:
        """Have some of what is pending be on the disk, and the rest never."""
        for at, data in file.pending:
            if data is None:
                if self._rng.random() < _SURVIVES:
                    _apply(file.synced, at, None)
                continue
            for first in range(0, len(data), _SECTOR):
                if self._rng.random() < _SURVIVES:
                    _apply(file.synced, at + first, data[first : first + _SECTOR])
        file.pending.clear()

    @staticmethod
    def _name(names: dict[Path, _File], name: Path, before: Path | None, file: _File | None) -> None:
        if before is not None:
            names.pop(before, None)
        if file is None:
            names.pop(name, None)
        else:
            names[name] = file

    def begin(self, life: int, what: str, *, grows: int = 0, partial: Callable[[], None] | None = None) -> None:
        """Begin an operation by which files grow by so many bytes; raise OSError if it fails."""
        if life != self._life:
            raise OSError(errno.EIO, "this life is over")
        self.operations += 1
        if self._kill is not None and self.operations >= self._kill[0]:
            if partial is not None:
                partial()
            kill, self._kill, self._life = self._kill[1], None, -1
            kill()
            raise OSError(errno.EIO, "this life is over")
        code = self._code(what, grows)
        if code:
            if partial is not None:
                partial()
            raise OSError(code, os.strerror(code))

    def _code(self, what: str, grows: int) -> int:
        match self._manner:
            case "full" if grows and self.size() + grows > self._capacity:
                return errno.ENOSPC
            case "write fails" if what == "write":
                return errno.EIO
            case "fsync fails" if what in ("sync", "sync_folder"):
                return errno.EIO
            case "everything fails" if what != "read":
                return errno.EIO
        return 0

    def handle(self, path: Path, *, create: bool) -> int:
        """Open a file."""
        if path not in self._names:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            self._rename(path, None, _File())
        self._next_handle += 1
        self._handles[self._next_handle] = self._names[path]
        return self._next_handle

    def _rename(self, name: Path, before: Path | None, file: _File | None) -> None:
        self._name(self._names, name, before, file)
        self._pending_names.append((name, before, file))

    def change(self, file: _File, at: int, data: bytes | None) -> None:
        """Write, or cut."""
        _apply(file.seen, at, data)
        file.pending.append((at, data))

    def drawn(self, most: int) -> int:
        """Return how much of something is done when it fails."""
        return self._rng.randint(0, most)


class MountedDisk:
    """The file layer of one life (`podtrail.storage.Disk`)."""

    def __init__(self, disk: MemoryDisk, life: int) -> None:
        self._disk = disk
        self._life = life

    def make_folder(self, path: Path, mode: int) -> None:
        """Make a folder; they are on the disk at once."""
        self._disk.begin(self._life, "make")
        self._disk._folders.add(path)

    def names(self, folder: Path) -> Sequence[str]:
        """Return the names of the files in a folder, sorted."""
        self._disk.begin(self._life, "read")
        return sorted(path.name for path in self._disk._names if path.parent == folder)

    def open(self, path: Path, *, create: bool) -> int:
        """Open a file."""
        self._disk.begin(self._life, "open" if create else "read")
        return self._disk.handle(path, create=create)

    def size(self, handle: int) -> int:
        """Return the length of a file."""
        self._disk.begin(self._life, "read")
        return len(self._disk._handles[handle].seen)

    def read(self, handle: int, offset: int, size: int) -> bytes:
        """Return the bytes there."""
        self._disk.begin(self._life, "read")
        return bytes(self._disk._handles[handle].seen[offset : offset + size])

    def write(self, handle: int, offset: int, pieces: Sequence[bytes | memoryview]) -> None:
        """Write all of the pieces; when it fails, a part of them."""
        data = b"".join(pieces)
        file = self._disk._handles.get(handle)

        def some() -> None:
            assert file is not None
            self._disk.change(file, offset, data[: self._disk.drawn(len(data))])

        grows = max(0, offset + len(data) - len(file.seen)) if file is not None else 0
        self._disk.begin(self._life, "write", grows=grows, partial=some)
        assert file is not None
        self._disk.change(file, offset, data)

    def truncate(self, handle: int, size: int) -> None:
        """Cut a file."""
        self._disk.begin(self._life, "truncate")
        self._disk.change(self._disk._handles[handle], size, None)

    def sync(self, handle: int) -> None:
        """Force a file onto the disk."""
        file = self._disk._handles.get(handle)

        def some() -> None:
            assert file is not None
            self._disk._settle(file)

        self._disk.begin(self._life, "sync", partial=some)
        assert file is not None
        for at, data in file.pending:
            _apply(file.synced, at, data)
        file.pending.clear()

    def close(self, handle: int) -> None:
        """Close a file."""
        self._disk.begin(self._life, "read")
        del self._disk._handles[handle]

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name."""
        self._disk.begin(self._life, "rename")
        self._disk._rename(new, old, self._disk._names[old])

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        self._disk.begin(self._life, "unlink")
        if path not in self._disk._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        self._disk._rename(path, None, None)

    def sync_folder(self, folder: Path) -> None:
        """Force the names in a folder onto the disk."""
        self._disk.begin(self._life, "sync_folder")
        left = []
        for name, before, file in self._disk._pending_names:
            if name.parent == folder:
                self._disk._name(self._disk._synced_names, name, before, file)
            else:
                left.append((name, before, file))
        self._disk._pending_names = left

    def largest_file(self) -> int:
        """Return how many bytes a file may have."""
        return sys.maxsize
