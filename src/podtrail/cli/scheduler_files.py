"""What a stock kube-scheduler leaves behind, read from files: its logs, and watches of Pods, Nodes and Events."""

import heapq
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import click

from podtrail.config import printable
from podtrail.reconstruction import (
    LONGEST_LINE,
    Correlator,
    Heard,
    LineCounts,
    Rebuilt,
    SchedulerLog,
    WatchReader,
    split_lines,
)
from podtrail.recording.compressed import Gap, pieces

_PIECE: Final = 1 << 18
LONGEST_WATCHED: Final = 64 << 20
_ARRIVAL: Final = re.compile(rb'"arrivalUnixNano": ?"?(\d{18,19})')
_ROTATED: Final = re.compile(r"(.+?\.log)[.-].*")
"""The name of a rotated log, and of the log it was."""

Paths = tuple[Path, ...]
F = TypeVar("F", bound=Callable[..., Any])


def file_option(*names: str, what: str) -> Callable[[F], F]:
    """Give a command an option for files, repeatable; `-` is standard input."""
    kind = click.Path(path_type=Path, allow_dash=True, dir_okay=False)
    return click.option(*names, multiple=True, metavar="FILE", type=kind, help=what, callback=_once)


def _once(context: click.Context, option: click.Parameter, paths: Paths) -> Paths:  # noqa: ARG001
    """Refuse a file that is given twice: it would tell of everything twice."""
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise click.BadParameter(f"{path} is given twice")
        seen.add(path.resolve())
    return paths


def rebuild(
    correlator: Correlator,
    logs: Sequence[Path],
    watches: Mapping[str, Sequence[Path]],
    line_counts: Mapping[str, LineCounts],
    year: int | None = None,
) -> Iterator[Rebuilt]:
    """Yield the attempts that files tell of; `line_counts` count what is read of the logs (`log`) and of each watch.

    `year` is that of the logs, which klog does not write.

    Raises:
        OSError: a file can't be read.
    """
    near = _year(year) if year else _near(logs, [path for paths in watches.values() for path in paths])
    heard = [*_logs(logs, near, line_counts), *_watches(watches, line_counts)]
    for one in heapq.merge(*heard, key=attrgetter("time")):
        yield from correlator.feed(one)
    yield from correlator.finish()


def lines_of(path: Path, longest: int = LONGEST_LINE) -> Iterator[bytes]:
    """Yield the lines of a file, plain or compressed; what is damaged is told."""
    yield from split_lines(_pieces(path), longest)


def _logs(logs: Sequence[Path], near: int, line_counts: Mapping[str, LineCounts]) -> Iterator[Iterator[Heard]]:
    for path in logs:
        rotated = _ROTATED.fullmatch(path.name)
        source = path.with_name(rotated[1]) if rotated else path
        reader = SchedulerLog(str(source), near, line_counts["log"])
        yield chain(reader.read(lines_of(path)), reader.end())


def _watches(watches: Mapping[str, Sequence[Path]], line_counts: Mapping[str, LineCounts]) -> Iterator[Iterator[Heard]]:
    for name, paths in watches.items():
        for path in paths:
            yield WatchReader(line_counts[name]).read(lines_of(path, LONGEST_WATCHED), LONGEST_WATCHED)


def _pieces(path: Path) -> Iterator[bytes]:
    if str(path) == "-":
        yield from _stream(sys.stdin.buffer)
        return
    with path.open("rb") as file:
        if not file.seekable():
            yield from _stream(file)
            return
        for piece in pieces(file, str(path)):
            if isinstance(piece, Gap):
                click.echo(f"podtrail: skipped {printable(f'{path}: {piece.reason}')}", err=True)
            else:
                yield piece


def _stream(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _year(year: int) -> int:
    return int(datetime(year, 7, 1, tzinfo=UTC).timestamp()) * 10**9


def _near(logs: Sequence[Path], watches: Sequence[Path]) -> int:
    """Return a moment about which the logs were written: what a watch says, else when a log was last written."""
    for path in watches:
        for line in split_lines(_pieces(path), _PIECE):
            if found := _ARRIVAL.search(line):
                return int(found[1])
            break
    written = [path.stat().st_mtime_ns for path in logs if path.exists()]
    return max(written, default=time.time_ns())
