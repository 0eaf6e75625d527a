"""A small file with credentials that is read again when it has changed, as those that Kubernetes mounts do."""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from podtrail.component import StartError
from podtrail.transport.small_file import read_small_file

_LOOK_AGAIN: Final = 1_000_000_000
"""Nanoseconds between two looks at whether it has changed."""
_LARGEST: Final = 1 << 20

T = TypeVar("T")
Signature = tuple[int, int, int]
"""Inode, time of the last change, size."""


class FollowedFile(Generic[T]):
    """What a file says, as it is now.

    One that is missing, too large or says nothing of use leaves what was: it is being replaced, or will be mended. It
    is said in the log, once for each of its states.
    """

    def __init__(
        self,
        key: str,
        path: str,
        read: Callable[[str], T],
        log: logging.LoggerAdapter[logging.Logger],
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Read it for the first time.

        Args:
            key: the key that names it, for messages.
            path: where it is.
            read: makes something of its text, or raises ValueError, in whose words there is nothing of the text.
            log: is told what becomes of it.
            clock: nanoseconds since any moment.

        Raises:
            StartError: it can't be read, or says nothing of use.
        """
        self._key = key
        self._path = Path(path)
        self._read = read
        self._log = log
        self._clock = clock
        self._signature = signature(self._path)
        self._due = clock() + _LOOK_AGAIN
        self.version = 0
        """Grows with each change of what it says."""
        try:
            self._value = self._parsed()
        except ValueError as error:
            raise StartError(f"{key}: {error}") from error

    @property
    def value(self) -> T:
        """What it says. Looks whether it has changed, once a second at most."""
        if self._clock() >= self._due:
            self._due = self._clock() + _LOOK_AGAIN
            seen = signature(self._path)
            if seen != self._signature:
                self._signature = seen
                self._renew()
        return self._value

    def _renew(self) -> None:
        try:
            if self._path.exists() and not self._path.is_file():  # a pipe would be waited for, with all else
                raise ValueError(f"{self._path} is no file any more")
            self._value = self._parsed()
        except ValueError as error:
            self._log.warning("%s: %s; what it said before still holds", self._key, error)
        else:
            self.version += 1
            self._log.info("%s: %s has changed and was read", self._key, self._path)

    def _parsed(self) -> T:
        try:
            raw = read_small_file(self._path)
        except OSError as error:
            raise ValueError(f"can't read {self._path}: {error.strerror}") from error
        if len(raw) > _LARGEST:
            raise ValueError(f"{self._path} is larger than {_LARGEST >> 20} MiB")
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError(f"{self._path} is not UTF-8") from None  # the error would show what is in it
        try:
            return self._read(text)
        except ValueError as error:
            raise ValueError(f"{self._path} {error}") from None


def signature(path: Path) -> Signature | None:
    """Return what differs when a file was written or replaced; None when there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
