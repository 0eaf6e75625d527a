"""Recordings as commands read them: damage named, mistakes told in a line with the right exit code."""

import errno
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from podtrail.cli.foreign import foreign
from podtrail.cli.progress import shown
from podtrail.config import printable
from podtrail.recording import Damage, Record
from podtrail.testing.replayer import read_records

_MOST_SHOWN: Final = 20
_DISK_FAILS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class Recordings:
    """Files that are read as one recording, as often as needed."""

    def __init__(self, paths: Sequence[Path], *, strict: bool) -> None:
        """Read these; `strict`: damage ends the command."""
        self.paths = paths
        self.damages = 0
        self._strict = strict

    def read(self) -> Iterator[Record]:
        """Yield the requests; damage is told, and counted in `damages`, each time anew. OSError, ValueError."""
        for path in self.paths:
            if what := foreign(path):
                raise NoRecording(f"{path} is {what}")
        silent = self.damages > 0
        self.damages = 0

        def damaged(damage: Damage) -> None:
            self.damages += 1
            if self._strict:
                raise NoRecording(f"{damage} (--strict)")
            if not silent and self.damages <= _MOST_SHOWN:
                click.echo(f"podtrail: skipped {printable(str(damage))}", err=True)

        return shown(read_records(self.paths, damaged), "read")


class NoRecording(Exception):
    """A file can't be used as it should be; the text says why."""


@contextmanager
def reading() -> Iterator[None]:
    """End the command with a line when a recording, or a file that is written, can't be used."""
    try:
        yield
    except NoRecording as error:
        _end(str(error), 1)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _end(f"{where}{error.strerror or error}", 1 if error.errno in _DISK_FAILS else 2)
    except ValueError as error:
        _end(str(error), 2)


def _end(text: str, code: int) -> None:
    click.echo(f"podtrail: {printable(text)}", err=True)
    sys.exit(code)
