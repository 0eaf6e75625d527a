"""What a stock kube-scheduler leaves behind, read from files: its logs, and watches of Pods, Nodes and Events."""

import heapq
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import chain, islice
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
    offset_by_watch,
    split_lines,
    zone_of,
)
from podtrail.reconstruction.calendar import rfc3339
from podtrail.recording.compressed import Gap, pieces

_PIECE: Final = 1 << 18
_MOST_UNDATED: Final = 1_000
"""Lines at the beginning of a watch among which the first time is looked for."""
_SAMPLE: Final = 16 << 20
_SAMPLE_LINES: Final = 20_000
LONGEST_WATCHED: Final = 64 << 20
_ARRIVAL: Final = re.compile(rb'"arrivalUnixNano": ?"?(\d{18,19})')
_CREATED: Final = re.compile(rb'(?:creationTimestamp|lastTimestamp|eventTime)"?: "?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)')
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
    timezone: str = "",
) -> Iterator[Rebuilt]:
    """Yield the attempts that files tell of; `line_counts` count what is read of the logs (`log`) and of each watch.

    `year` and `timezone` are those of the logs, which klog does not write.

    Raises:
        OSError: a file can't be read.
    """
    watched = [_Source(path, LONGEST_WATCHED) for paths in watches.values() for path in paths]
    near = _year(year) if year else _near(logs, watched)
    zone = zone_of(timezone) if timezone else None
    heard = [*_logs(logs, watched, near, line_counts, zone), *_watches(watches, watched, line_counts)]
    for one in heapq.merge(*heard, key=attrgetter("time")):
        yield from correlator.feed(one)
    yield from correlator.finish()


def lines_of(path: Path, longest: int = LONGEST_LINE) -> Iterator[bytes]:
    """Yield the lines of a file, plain or compressed; what is damaged is told."""
    yield from split_lines(_pieces(path), longest)


class _Source:
    """The lines of a file, of which those at the beginning and at the end can be looked at before they are read."""

    def __init__(self, path: Path, longest: int = LONGEST_LINE) -> None:
        self.path = path
        self._longest = longest
        self._lines = lines_of(path, longest)
        self._head: list[bytes] = []

    def head(self) -> Iterator[bytes]:
        """Yield lines of the beginning; they are read as far as they are asked for."""
        yield from self._head
        size = sum(map(len, self._head))
        while size < _SAMPLE and len(self._head) < _SAMPLE_LINES and (line := next(self._lines, None)) is not None:
            self._head.append(line)
            size += len(line)
            yield line

    def sample(self) -> Sequence[bytes]:
        """Return lines of the beginning and, of a file that is not compressed, of the end."""
        head = [*self.head()]
        return [*head, *self._tail(sum(map(len, head)))]

    def _tail(self, read: int) -> Sequence[bytes]:
        if str(self.path) == "-" or not self.path.is_file():
            return []
        with self.path.open("rb") as file:
            length = file.seek(0, 2)
            if length <= read + len(self._head):
                return []
            file.seek(max(0, length - _SAMPLE))
            return file.read().split(b"\n")[1:]

    def lines(self) -> Iterator[bytes]:
        """Yield all lines, once."""
        head, self._head = self._head, []
        yield from head
        yield from self._lines


def _logs(
    logs: Sequence[Path],
    watched: Sequence[_Source],
    near: int,
    line_counts: Mapping[str, LineCounts],
    zone: tzinfo | None,
) -> Iterator[Iterator[Heard]]:
    for path in logs:
        rotated = _ROTATED.fullmatch(path.name)
        name = str(path.with_name(rotated[1]) if rotated else path)
        reader = SchedulerLog(name, near, line_counts["log"], zone)
        source = _Source(path)
        if zone is None and watched and (offset := _offset(source, watched, near)) is not None:
            reader.set_offset(offset)
        yield chain(reader.read(source.lines()), reader.end())


def _offset(log: _Source, watched: Sequence[_Source], near: int) -> int | None:
    """Return the offset of a log's times from UTC as watches show it; None if the log has it, or they do not."""
    probe = SchedulerLog("", near, LineCounts())
    told = [*probe.read(log.sample()), *probe.end()]
    if not probe.needs_zone:
        return None
    seen = (one for each in watched for one in WatchReader(LineCounts()).read(each.sample(), LONGEST_WATCHED))
    return offset_by_watch(told, seen)


def _watches(
    watches: Mapping[str, Sequence[Path]], watched: Sequence[_Source], line_counts: Mapping[str, LineCounts]
) -> Iterator[Iterator[Heard]]:
    sources = iter(watched)
    for name, paths in watches.items():
        for _ in paths:
            yield WatchReader(line_counts[name]).read(next(sources).lines(), LONGEST_WATCHED)


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


def _near(logs: Sequence[Path], watches: Sequence[_Source]) -> int:
    """Return a moment about which the logs were written: what a watch says, else when a log was last written."""
    for source in watches:
        for line in islice(source.head(), _MOST_UNDATED):
            if found := _ARRIVAL.search(line[:_PIECE]):
                return int(found[1])
            if (found := _CREATED.search(line[:_PIECE])) and (created := rfc3339(found[1].decode())):
                return created
    written = [path.stat().st_mtime_ns for path in logs if path.exists()]
    return max(written, default=time.time_ns())
