"""What a stock kube-scheduler leaves behind, read from files: its logs, and watches of Pods, Nodes and Events."""

import heapq
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
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
    OffsetStep,
    Rebuilt,
    SchedulerLog,
    WatchReader,
    offsets_by_watch,
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
_HALF_A_YEAR: Final = 183 * 86_400 * 10**9
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

    `year` is that of the first line of the logs, `timezone` theirs: klog does not write them.

    Raises:
        OSError: a file can't be read.
    """
    watched = [_Source(path, LONGEST_WATCHED) for paths in watches.values() for path in paths]
    near = _near(watched)
    zone = zone_of(timezone) if timezone else None
    heard = [*_logs(logs, watched, near, line_counts, zone, year), *_watches(watches, watched, line_counts)]
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
    year: int | None,
) -> Iterator[Iterator[Heard]]:
    sources = [*map(_Source, logs)]
    written = _written(logs)
    years = _years(sources, year) if year else [None] * len(sources)
    for source, own_year in zip(sources, years, strict=True):
        rotated = _ROTATED.fullmatch(source.path.name)
        name = str(source.path.with_name(rotated[1]) if rotated else source.path)
        reader = SchedulerLog(name, near or written, line_counts["log"], zone, own_year, over=not near)
        if zone is None and watched and (steps := _offsets(source, watched, near, own_year)):
            reader.set_offsets(steps)
        yield chain(reader.read(source.lines()), reader.end())


def _years(logs: Sequence[_Source], year: int) -> list[int | None]:
    """Return the year of the first line of each log: `year`, or the next one for what follows a log of its end."""
    firsts = []
    for log in logs:
        probe = SchedulerLog("", 0, LineCounts(), year=year)
        moments = (probe.written_until() for line in log.head() for _ in (*probe.read([line]), None))
        firsts.append(next(filter(None, moments), 0))
    return [year + (max(firsts) - first > _HALF_A_YEAR and first > 0) for first in firsts]


def _offsets(log: _Source, watched: Sequence[_Source], near: int, year: int | None) -> list[OffsetStep]:
    """Return the offsets of a log's times from UTC as watches show them; none if the log has them, or they do not."""
    probe = SchedulerLog("", near, LineCounts(), year=year)
    told = [*probe.read(log.sample()), *probe.end()]
    if not probe.needs_zone:
        return []
    seen = (one for each in watched for one in WatchReader(LineCounts()).read(each.sample(), LONGEST_WATCHED))
    return offsets_by_watch(told, seen)


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


def _near(watches: Sequence[_Source]) -> int:
    """Return a moment about which the logs were written, by what a watch says; 0 if none says it."""
    for source in watches:
        for line in islice(source.head(), _MOST_UNDATED):
            if found := _ARRIVAL.search(line[:_PIECE]):
                return int(found[1])
            if (found := _CREATED.search(line[:_PIECE])) and (created := rfc3339(found[1].decode())):
                return created
    return 0


def _written(logs: Sequence[Path]) -> int:
    """Return when a log was last written."""
    written = [path.stat().st_mtime_ns for path in logs if path.exists()]
    return max(written, default=time.time_ns())
