"""A file that grows by whole messages, used from one thread.

A write that fails half-way is taken back, so that what stands in the file is always whole; what a crash leaves behind
is cut off when the file is continued.
"""

import errno
import fcntl
import logging
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Self

from podtrail.component import StartError
from podtrail_exporters.file import RotationSettings
from podtrail_exporters.file.form import Damaged, Foreign, Form, may_be_ours
from podtrail_exporters.file.rotation import backup_path, expired, now_for_names

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_MIB = 1 << 20
_START = 16
_HELD = (errno.EWOULDBLOCK, errno.EACCES)


class _Unread(OSError):
    """A FIFO without a reader: to open it would wait for one."""


class LogFile:
    """Opened by `open`, then written to; a device or pipe is written to but never cut or rotated."""

    def __init__(
        self, path: Path, form: Form, rotation: RotationSettings | None, log: logging.LoggerAdapter[logging.Logger]
    ) -> None:
        """Describe the file."""
        self.path = path
        self._form = form
        self._rotation = rotation
        self._log = log
        self._fd = -1
        self._regular = True
        self._dirty = False

    def open(self, *, append: bool, create_directory: bool) -> Self:
        """Open the file, continue or empty it.

        Raises:
            StartError: it can't be opened, or continuing would spoil what it holds.
        """
        try:
            if create_directory:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = _opened(self.path)
            self._regular = stat.S_ISREG(os.fstat(self._fd).st_mode)
            if self._regular and not _locked(self._fd):
                raise StartError(f"can't write {self.path}: another exporter writes to it, here or in another process")
            if self._regular and append:
                self._continue()
            elif self._regular:
                self._empty()
            self._remove_expired()
        except _Unread:
            self._regular = False
            self._log.warning(
                "nobody reads the FIFO %s yet: what is to be written waits until somebody does", self.path
            )
        except OSError as error:
            self.close()
            hint = ": create the directory, or set create_directory: true" if _lacks_directory(self.path) else ""
            raise StartError(f"can't write {self.path}: {error.strerror}{hint}") from error
        except Foreign as error:
            self.close()
            raise StartError(f"can't write {self.path}: {error}") from error
        except StartError:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Force everything onto the disk and close.

        Raises:
            OSError: that fails; the file is closed all the same.
        """
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        try:
            if self._dirty and self._regular:
                os.fsync(fd)
        finally:
            os.close(fd)

    def make_room(self, size: int) -> None:
        """Begin a new file if `size` more bytes would make this one too large, or if it is gone.

        Raises:
            OSError: that fails, and the old one stays in use; or it is a FIFO that nobody has begun to read.
        """
        if self._fd < 0:
            self._fd = _opened(self.path)
        if not self._regular:
            return
        if os.fstat(self._fd).st_nlink == 0:
            self._replace(self._fd)  # somebody removed the file: what is written to it now nobody would find
        if self._rotation is None:
            return
        held = self.mark()
        if held and held + size > (self._rotation.max_megabytes or 100) * _MIB:
            self._set_aside()

    def begin_anew(self) -> None:
        """Set aside what the file holds, if anything, and begin a new one.

        Raises:
            OSError: that fails, and the old one stays in use.
        """
        if self._regular and self.mark():
            self._set_aside()

    def mark(self) -> int:
        """Return where the next write begins."""
        return os.fstat(self._fd).st_size if self._regular else 0

    def write(self, data: bytes) -> None:
        """Append.

        Raises:
            OSError: that fails; part of it may stand in the file: go `back_to` the mark.
        """
        self._dirty = True
        left = memoryview(data)
        while left:
            left = left[os.write(self._fd, left) :]

    def back_to(self, mark: int) -> None:
        """Take back what was written since `mark`."""
        if self._regular:
            os.ftruncate(self._fd, mark)

    def sync(self) -> None:
        """Force onto the disk what was written since the last time."""
        if self._dirty and self._regular:
            os.fsync(self._fd)
            self._dirty = False

    def _empty(self) -> None:
        with self.path.open("rb") as file:
            if not may_be_ours(file.read(_START)):
                raise Foreign("it holds something else, which would be lost; move it away, or write to another file")
        os.ftruncate(self._fd, 0)

    def _continue(self) -> None:
        size = self.mark()
        try:
            with self.path.open("rb") as file:
                end, closing = self._form.end(file)
        except Foreign as error:
            raise Foreign(f"{error}; move it away, or set append: false") from error
        except Damaged as error:
            self._log.warning("%s is damaged and set aside: %s", self.path, error)
            self._set_aside()
            return
        if end < size:
            self._log.warning("cut %d bytes of an unfinished message off the end of %s", size - end, self.path)
            os.ftruncate(self._fd, end)
        self.write(closing)

    def _set_aside(self) -> None:
        localtime = self._rotation is not None and self._rotation.localtime
        backup = backup_path(self.path, now_for_names(localtime=localtime))
        self.path.rename(backup)
        try:
            self._replace(self._fd)
        except OSError:
            if not self.path.exists():
                backup.rename(self.path)
            raise
        self._remove_expired()

    def _replace(self, old: int) -> None:
        """Go on in a new file at the path."""
        fd = _opened(self.path)
        if not _locked(fd):
            os.close(fd)
            raise OSError(errno.EBUSY, "another exporter writes to it")
        self._fd = fd
        try:
            os.fsync(old)
        finally:
            os.close(old)

    def _remove_expired(self) -> None:
        rotation = self._rotation
        if rotation is None:
            return
        now = now_for_names(localtime=rotation.localtime)
        for backup in expired(self.path, now=now, max_days=rotation.max_days, max_backups=rotation.max_backups):
            with suppress(FileNotFoundError):
                backup.unlink()


def _opened(path: Path) -> int:
    try:
        fd = os.open(path, _FLAGS | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if error.errno == errno.ENXIO and path.is_fifo():
            raise _Unread(errno.ENXIO, "nobody reads this FIFO") from error
        raise
    os.set_blocking(fd, True)
    return fd


def _lacks_directory(path: Path) -> bool:
    try:
        return not path.parent.exists()
    except OSError:
        return False


def _locked(fd: int) -> bool:
    """Take the file for this exporter; where the file system knows no locks, nothing is known of others."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _HELD
    return True
