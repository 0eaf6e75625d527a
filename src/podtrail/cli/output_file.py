"""Files that commands write: there under their own name once they are whole. Ctrl-C and failures leave nothing.

Until then a file has a hidden name beside its own. Ctrl-C, SIGTERM and SIGHUP remove it, say so, and end the process as
they would have done without a handler.
"""

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import click

from podtrail.config import printable
from podtrail.recording import RecordingWriter

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SHOW_CURSOR: Final = "\x1b[?25h"
_unfinished: dict[Path, Path] = {}
"""Files that are not whole yet, with the names that they are meant to have."""


@contextmanager
def whole_file(to: Path) -> Iterator[Path]:
    """Yield the path to write to. At the end it becomes `to`; an exception removes it, and `to` stays as it was.

    A device or a pipe is written to at once.

    Raises:
        OSError: it can't be written; the error names `to`.
    """
    there = to.resolve()
    if there.exists() and not there.is_file():
        yield to
        return
    begun = there.with_name(f".unfinished-{there.name}")
    try:
        with removed_when_stopped(begun, to):
            yield begun
            begun.rename(there)
    except OSError as error:
        if error.filename == str(begun):
            error.filename, error.filename2 = str(to), None
        elif error.filename is None and error.errno in _FULL:
            error.filename = str(to)
        raise
    finally:
        with suppress(OSError):
            begun.unlink()


@contextmanager
def whole_recording(to: Path) -> Iterator[RecordingWriter]:
    """Write a recording as `whole_file` does.

    Raises:
        OSError: it can't be written.
        ValueError: its name tells no format.
    """
    with whole_file(to) as begun, RecordingWriter(begun) as writer:
        yield writer


@contextmanager
def removed_when_stopped(path: Path, to: Path) -> Iterator[None]:
    """Have a signal that ends the process remove a file, and say that `to` is not written."""
    first = not _unfinished
    _unfinished[path] = to
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) or signal.SIG_DFL for number in _ENDING} if first and main else {}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup
            signal.signal(number, _stop)
    try:
        yield
    finally:
        del _unfinished[path]
        for number, handler in before.items():
            signal.signal(number, handler)


def refuse_existing(to: Path, *, overwrite: bool) -> None:
    """End with a usage error if there is a file with something in it, unless it may be overwritten.

    Raises:
        UsageError: there is.
    """
    if not overwrite and to.is_file() and to.stat().st_size:
        raise click.UsageError(printable(f"{to} is there: --overwrite writes it anew"))


def _stop(number: int, _frame: Any) -> None:
    """Remove what is not whole and end the process by the signal. No exception: a callback could swallow it."""
    for path, to in _unfinished.items():
        with suppress(OSError):
            path.unlink()
        said = f"podtrail: stopped before the end: {printable(str(to))} is not written\n"
        with suppress(OSError):
            os.write(2, ((_SHOW_CURSOR + "\r") * sys.stderr.isatty() + said).encode("utf-8", "backslashreplace"))
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
