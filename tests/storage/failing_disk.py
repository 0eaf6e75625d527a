"""A disk that does some things and then fails: once, for a while, or for good."""

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from podtrail.storage import Disk
from tests.storage.power_loss import PowerLossDisk

Manner = Literal["nothing", "half", "all"]
"""What of the failing operation is done all the same."""
CHANGING = ("open", "write", "truncate", "sync", "rename", "unlink", "sync_folder")


class FailingDisk:
    """Counts what is done to a disk; from the `first` such operation on `number` of them fail."""

    def __init__(
        self,
        disk: Disk,
        first: int = 0,
        number: int = 1,
        *,
        code: int = errno.EIO,
        manner: Manner = "nothing",
        only: Sequence[str] = CHANGING,
    ) -> None:
        self.disk = disk
        self.done = 0
        self.failed = 0
        self._failing = range(first, first + number)
        self._code = code
        self._manner = manner
        self._only = only

    @property
    def dead(self) -> bool:
        """Whether something has failed, and all will fail from now on."""
        return self.done >= self._failing.start > 0 and self._failing.stop > 1 << 32

    def make_folder(self, path: Path, mode: int) -> None:
        self.disk.make_folder(path, mode)

    def names(self, folder: Path) -> Sequence[str]:
        return self.disk.names(folder)

    def open(self, path: Path, *, create: bool) -> int:
        if create:
            self._count("open", lambda: self.disk.close(self.disk.open(path, create=True)))
        return self.disk.open(path, create=create)

    def size(self, handle: int) -> int:
        return self.disk.size(handle)

    def read(self, handle: int, offset: int, size: int) -> bytes:
        return self.disk.read(handle, offset, size)

    def write(self, handle: int, offset: int, pieces: Sequence[bytes | memoryview]) -> None:
        data = b"".join(pieces)
        some = data[: len(data) // 2] if self._manner == "half" else data
        self._count("write", lambda: self.disk.write(handle, offset, [some]))
        self.disk.write(handle, offset, [data])

    def truncate(self, handle: int, size: int) -> None:
        self._count("truncate", lambda: self.disk.truncate(handle, size))
        self.disk.truncate(handle, size)

    def sync(self, handle: int) -> None:
        def clean() -> None:
            if isinstance(self.disk, PowerLossDisk):
                self.disk.fail_to_sync(handle)

        self._count("sync", clean, always=True)
        self.disk.sync(handle)

    def close(self, handle: int) -> None:
        self.disk.close(handle)

    def rename(self, old: Path, new: Path) -> None:
        self._count("rename", lambda: self.disk.rename(old, new))
        self.disk.rename(old, new)

    def unlink(self, path: Path) -> None:
        self._count("unlink", lambda: self.disk.unlink(path))
        self.disk.unlink(path)

    def sync_folder(self, folder: Path) -> None:
        self._count("sync_folder", lambda: None)
        self.disk.sync_folder(folder)

    def _count(self, operation: str, partly: Callable[[], None], *, always: bool = False) -> None:
        if operation not in self._only:
            return
        self.done += 1
        if self.done not in self._failing:
            return
        if self.failed == 0 and (always or self._manner != "nothing"):
            partly()
        self.failed += 1
        raise OSError(self._code, os.strerror(self._code))
