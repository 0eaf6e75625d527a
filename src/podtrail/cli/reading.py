"""How commands read and write recordings: what is damaged is shown and counted, or refused."""

import errno
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import click

from podtrail.cli.foreign import NOTHING_IN_STORE, foreign, is_journal
from podtrail.cli.output_file import whole_recording
from podtrail.cli.progress import shown
from podtrail.config import printable
from podtrail.config.document import source_files
from podtrail.config.secret_keys import redacted
from podtrail.recording import Damage, OtherSignal, Record, RecordingForm, RecordingWriter
from podtrail.recording.merging import merged
from podtrail.story import several

F = TypeVar("F", bound=Callable[..., Any])

_MOST_SHOWN: Final = 20
_DISK_FAILS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class Failed(click.ClickException):
    """Ends a command with a line and exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line to standard error."""
        click.echo(f"podtrail: {printable(redacted(self.message))}", file=file, err=True)


class Unusable(Failed):
    """A file can't be used: exit code 2."""

    exit_code = 2


def recordings_argument(command: F) -> F:
    """Give a command `recordings`, the paths of one or more."""
    return click.argument(
        "recordings", nargs=-1, required=True, metavar="RECORDING...", type=click.Path(path_type=Path)
    )(command)


def strict_option(command: F) -> F:
    """Give a command `strict`."""
    return click.option(
        "--strict", is_flag=True, help="End at the first damage or invalid span instead of reading on behind it."
    )(command)


def to_option(command: F) -> F:
    """Give a command `to`, the path of a recording to write."""
    return click.option(
        "--to",
        required=True,
        metavar="FILE",
        type=click.Path(path_type=Path),
        callback=_recording,
        help="Where to write: a name in .jsonl or .otlp, or either with .gz or .zst behind.",
    )(command)


def overwrite_option(command: F) -> F:
    """Give a command `overwrite`."""
    return click.option("--overwrite", is_flag=True, help="Write a recording anew that is there.")(command)


def _recording(_context: click.Context, _option: click.Parameter, value: Path) -> Path:
    try:
        RecordingForm.of(value)
    except ValueError as error:
        raise click.BadParameter(printable(str(error))) from None
    return value


class RecordingInput:
    """Reads recordings in the order of arrival, as often as wanted; their faults are told the first time."""

    def __init__(self, paths: Sequence[Path], *, strict: bool) -> None:
        """Look at the files. Failed when one can't be opened, or is something else."""
        self.paths = paths
        self.requests = self.damages = self.rejected = 0
        self.others: Counter[str] = Counter()
        """Requests of other signals, which are skipped."""
        self._strict = strict
        self._begun = False
        with files():
            refuse_foreign(paths)

    def records(self, doing: str) -> Iterator[Record]:
        """Yield the requests; on a terminal with the progress of what is being done.

        Failed when a file can't be read, or is damaged and `strict`.
        """
        first, self._begun = not self._begun, True
        with files():
            for record in shown(merged(self.paths, self._damaged if first else _silent), doing):
                if first:
                    self.requests += 1
                    self.rejected += record.intake.rejected
                    if record.intake.rejected:
                        self._tell(f"{record.position}: {record.intake.reason}")
                yield record
        if first:
            show_other_signals(self.others)

    def refuse_nothing(self) -> None:
        """End with exit code 1 when there was nothing to read.

        Raises:
            Failed: there is no request that can be read.
        """
        if not self.requests:
            with files():
                store = next((path for path in self.paths if not self.damages and is_journal(path)), None)
            nothing = f"there is no request that can be read{in_brackets(self.others)}"
            raise Failed(f"{store} is {NOTHING_IN_STORE}" if store else nothing)

    def faults(self) -> str:
        """Return what was skipped, in words, to be put behind a sum; "" when nothing was."""
        places = f", {self.damages:,} damaged {'place' if self.damages == 1 else 'places'} skipped"
        invalid = f", {self.rejected:,} invalid spans left out" if self.rejected else ""
        return (places if self.damages else "") + invalid

    def _damaged(self, damage: Damage) -> None:
        if isinstance(damage, OtherSignal):
            self.others[damage.signal] += 1
            return
        self.damages += 1
        self._tell(str(damage))

    def _tell(self, fault: str) -> None:
        if self._strict:
            raise Failed(fault)
        show_skipped(fault, self.damages + self.rejected)


def skipped_signals(others: Mapping[str, int]) -> str:
    """Return how many requests of other signals were skipped, in words; "" when none was."""
    counted = " and ".join(f"{several(count, 'request')} of {signal}" for signal, count in sorted(others.items()))
    return f"{counted} skipped" if counted else ""


def in_brackets(others: Mapping[str, int]) -> str:
    """Return the same to be put behind a sentence."""
    return f" ({skipped_signals(others)})" if others else ""


def show_other_signals(others: Mapping[str, int]) -> None:
    """Print how many requests of other signals were skipped, if any."""
    if others:
        click.echo(f"podtrail: {skipped_signals(others)}: podtrail handles traces only", err=True)


def show_skipped(fault: str, number: int) -> None:
    """Say what was skipped; of so many, the first ones are enough."""
    if number <= _MOST_SHOWN:
        click.echo(f"podtrail: skipped {printable(fault)}", err=True)


def skip_shown() -> Callable[[str], None]:
    """Return what says what was skipped, one after the other, as `show_skipped` does."""
    numbers = count(1)
    return lambda fault: show_skipped(fault, next(numbers))


def _silent(_damage: Damage) -> None:
    return


@contextmanager
def files() -> Iterator[None]:
    """Name the file that can't be opened, read or written, and end with exit code 2; 1 when a disk is full or fails.

    Raises:
        Failed: a disk is full or fails.
        Unusable: a file can't be opened, read or written for another reason.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise file_error(error) from None
    except ValueError as error:
        raise Unusable(str(error)) from None


def file_error(error: OSError) -> Failed:
    """Return what ends the command: with exit code 1 when a disk is full or fails, else with 2."""
    return (Failed if error.errno in _DISK_FAILS else Unusable)(in_words(error))


def in_words(error: OSError) -> str:
    """Return what the system says, behind the name of the file where it has one."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def refuse_foreign(read: Sequence[Path]) -> None:
    """End with exit code 1 when a file is something else than a recording.

    Raises:
        Failed: it is something else.
        OSError: it can't be opened.
    """
    for path in read:
        if what := foreign(path):
            raise Failed(f"{path} is {what}")


def refuse_overwriting(read: Sequence[Path], written: Path, config: Sequence[str] = ()) -> None:
    """End with a usage error rather than write over what is being read.

    Args:
        read: files and folders that are read.
        written: the file that is to be written.
        config: sources of configurations that are read.

    Raises:
        UsageError: the file that is to be written is one of those that are read, or would be in a folder that is.
    """
    read = [*read, *source_files(config)]
    if any(written.exists() and path.exists() and written.samefile(path) for path in read):
        raise click.UsageError(printable(f"{written} is read: write to another file"))
    if any(path.is_dir() and path.resolve() == written.resolve().parent for path in read):
        raise click.UsageError(printable(f"all of {written.parent} is read: write to another folder"))


@contextmanager
def writing(to: Path) -> Iterator[RecordingWriter]:
    """Write a recording that is there under its name once it is whole; what fails half-way leaves nothing."""
    with files(), whole_recording(to) as writer:
        yield writer
