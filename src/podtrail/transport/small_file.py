"""Reads certificates, keys and passwords: files that are small, and that nobody has to be waited for."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

_LARGEST: Final = 16 << 20


def read_small_file(path: Path) -> bytes:
    """Return what a file holds. A named pipe or a device is refused: reading it could wait for good.

    Raises:
        OSError: it can't be read, is no regular file, or holds more than 16 MiB.
    """
    with open(path, "rb", buffering=0, opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        pieces, left = [], _LARGEST
        while piece := file.read(left + 1):
            pieces.append(piece)
            left -= len(piece)
            if left < 0:
                raise OSError(errno.EFBIG, f"it is larger than {_LARGEST >> 20} MiB", str(path))
    return b"".join(pieces)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
