"""The file in which a checkpoint outlives the process."""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, Final

from podtrail.component import Context

_LARGEST: Final = 256 << 20
"""Bytes. A Pod that waits takes a few hundred."""


class CheckpointFile:
    """Read once, then written whole: a reader never sees half of it."""

    def __init__(self, path: str, context: Context) -> None:
        self._path = Path(path)
        self._log = context.log
        self._written = ""

    def read(self) -> dict[str, Any] | None:
        """Return what was written last; None when there is none, or none that can be read."""
        try:
            self._check()
            told = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            self.passed_over(error)
            return None
        if not isinstance(told, dict):
            self.passed_over(ValueError("it is no JSON object"))
            return None
        return told

    def _check(self) -> None:
        """Raise OSError or ValueError unless it is a file of a size that can be."""
        status = self._path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is no regular file")
        if status.st_size > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST >> 20} MiB")

    def passed_over(self, error: Exception) -> None:
        """Say that what stands in the file is of no use."""
        self._log.warning("%s: what it says is passed over, attempts may be told again: %s", self._path, error)

    def write(self, checkpoint: dict[str, Any]) -> None:
        """Write a checkpoint, unless it says what the last one said."""
        text = json.dumps(checkpoint)
        if text == self._written:
            return
        part = self._path.with_name(self._path.name + ".part")
        try:
            if self._path.exists() and not self._path.is_file():
                raise OSError(errno.EINVAL, "it is no regular file")
            part.write_text(text)
            os.replace(part, self._path)
        except OSError as error:
            self._log.warning("can't write %s: %s", self._path, error.strerror)
        else:
            self._written = text
