"""Reads a configuration file as text; whatever can go wrong with it is a clear problem."""

import codecs
import os
import select
import time
from pathlib import Path
from typing import Final

from podtrail.config.problem import ConfigError, Position, Problem, Source

_LARGEST: Final = 16 * 1024 * 1024
_PATIENCE: Final = 5.0
_LOOK_AGAIN: Final = 0.02
"""Seconds to wait for what is written to a named pipe, and between two looks."""
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: str) -> str:
    """Return the text of a UTF-8 file, with or without a byte order mark.

    Raises:
        ConfigError: it is missing, a directory, unreadable, huge or not UTF-8.
    """
    data = _read(path)
    if data.startswith(_UTF16) or (b"\0" in data[:2] and len(data) > 1):
        raise _error(path, "is UTF-16, not UTF-8", "save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        before = data[data.rfind(b"\n", 0, error.start) + 1 : error.start]
        position = Position(Source(path), line, len(before.decode("utf-8", "replace")) + 1)
        what = f"is not UTF-8: the byte 0x{data[error.start]:02x} can't stand here"
        raise ConfigError([Problem(position, (), what, "save the file as UTF-8")]) from None


def _read(path: str) -> bytes:
    if not path:
        raise _error("the path", "is empty", "name a file")
    try:
        if Path(path).is_fifo():
            data = _read_pipe(path)
        else:
            with open(path, "rb", opener=_at_once if Path(path).is_file() else None) as file:
                data = file.read(_LARGEST + 1) or b""
    except FileNotFoundError:
        raise _error(path, "there is no such file", "check the path") from None
    except IsADirectoryError:
        raise _error(path, "is a directory, not a file", "name the YAML file in it") from None
    except PermissionError:
        raise _error(path, "can't be read: permission denied", "check the file's owner and mode") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _error(path, f"can't be read: {reason}", "") from None
    if len(data) > _LARGEST:
        raise _error(path, f"is larger than {_LARGEST >> 20} MiB", "is this a configuration?")
    return data


def _at_once(path: str, flags: int) -> int:
    """Open a file whose reading must not wait, as that of some in /proc does."""
    return os.open(path, flags | os.O_NONBLOCK)


def _read_pipe(path: str) -> bytes:
    """Return what is written to a named pipe, as a shell's `<(command)` is one; without a writer this ends, too."""
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    until = time.monotonic() + _PATIENCE
    data = b""
    try:
        while len(data) <= _LARGEST:
            readable, _, _ = select.select([pipe], [], [], _LOOK_AGAIN)
            piece = os.read(pipe, 1 << 16) if readable else None
            if piece:
                data += piece
            elif piece == b"" and data:
                return data
            elif time.monotonic() > until:
                raise OSError(f"it is a named pipe to which nothing was written in {_PATIENCE:.0f} s")
            elif piece == b"":
                time.sleep(_LOOK_AGAIN)  # nobody has opened it for writing: it is readable, and empty
    finally:
        os.close(pipe)
    return data


def _error(path: str, message: str, hint: str) -> ConfigError:
    return ConfigError([Problem(Position(Source(path)), (), message, hint)])
