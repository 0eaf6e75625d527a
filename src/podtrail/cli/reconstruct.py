"""`podtrail reconstruct`: attempts of a stock kube-scheduler from what it leaves behind, written as a recording."""

import heapq
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import click

from podtrail.cli.reading import Failed, Unusable, in_words, refuse_overwriting, show_skipped
from podtrail.cli.rebuilt import as_json, print_report
from podtrail.config import printable
from podtrail.otlp import Batch, Group
from podtrail.reconstruction import (
    LONGEST_LINE,
    Census,
    Correlator,
    Counted,
    Heard,
    Rebuilt,
    SchedulerLog,
    WatchReader,
    read_attempts,
    split_lines,
    trace,
)
from podtrail.recording import RecordingWriter
from podtrail.recording.compressed import Gap, pieces

_PIECE: Final = 1 << 18
_LONGEST_WATCHED: Final = 64 << 20
_ARRIVAL: Final = re.compile(rb'"arrivalUnixNano": ?"?(\d{18,19})')
_ROTATED: Final = re.compile(r"(.+?\.log)[.-].*")
"""The name of a rotated log, and of the log it was."""

_Paths = tuple[Path, ...]
F = TypeVar("F", bound=Callable[..., Any])


def _file(*names: str, what: str) -> Callable[[F], F]:
    kind = click.Path(path_type=Path, allow_dash=True, dir_okay=False)
    return click.option(*names, multiple=True, metavar="FILE", type=kind, help=what)


@click.command("reconstruct")
@_file("--log", "logs", what="A log of kube-scheduler: text or JSON, plain, as a container runtime frames it, or .gz.")
@_file("--pods", what="A watch of Pods, one event a line, each with its arrival.")
@_file("--nodes", what="A watch of Nodes.")
@_file("--events", what="A watch of Events.")
@_file("--metrics", what="The scheduler's /metrics: its own count of attempts, to compare.")
@_file("--apiserver", what="A recording of the API server's own spans: requests are linked with their attempts.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the attempts to a recording (.jsonl or .otlp).")
@click.option("--year", type=click.IntRange(1971, 2200), help="The year of the log, which klog does not write.")
@click.option("--json", "in_json", is_flag=True, help="Print the report as one JSON object.")
def command(
    logs: _Paths,
    pods: _Paths,
    nodes: _Paths,
    events: _Paths,
    metrics: _Paths,
    apiserver: _Paths,
    output: Path | None,
    year: int | None,
    in_json: bool,
) -> None:
    """Rebuild the scheduling attempts of a stock kube-scheduler from its log, from watches and its metrics.

    Any subset of the sources will do; each may be given several times. What is concluded and not told is marked with
    podtrail.inferred; nothing is made up. `-` reads standard input.
    """
    sources = [*logs, *pods, *nodes, *events]
    if not sources:
        raise click.UsageError("nothing to read: give at least one of --log, --pods, --events")
    if output is not None:
        refuse_overwriting((*sources, *metrics, *apiserver), output)
    censuses = {
        name: Census() for name, given in (("log", logs), ("pods", pods), ("nodes", nodes), ("events", events)) if given
    }
    correlator = Correlator()
    try:
        counted = [count for path in metrics for count in read_attempts(_lines(path, LONGEST_LINE))]
        near = _year(year) if year else _near(logs, (*pods, *events, *nodes))
        heard = [*_logs(logs, near, censuses), *_watches({"pods": pods, "nodes": nodes, "events": events}, censuses)]
        rebuilt = _rebuilt(correlator, heapq.merge(*heard, key=attrgetter("time")))
        traces = ((one.draft.end, [trace(one)]) for one in rebuilt)
        with RecordingWriter(output) if output else nullcontext() as recording:
            joined = _write(traces, apiserver, recording)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failed(in_words(error)) from None
    except ValueError as error:  # the output's name tells no format
        raise Unusable(str(error)) from None
    _report(censuses, correlator, counted, joined, in_json=in_json)


def _report(
    censuses: dict[str, Census], correlator: Correlator, counted: list[Counted], joined: Counter[str], *, in_json: bool
) -> None:
    if in_json:
        click.echo(json.dumps(as_json(censuses, correlator.outcome, counted, joined), ensure_ascii=False))
    else:
        print_report(censuses, correlator.outcome, counted, joined, sys.stdout)
    if not correlator.outcome.attempts:
        click.echo("podtrail: nothing that was read tells of an attempt", err=True)
        sys.exit(1)


def _logs(logs: _Paths, near: int, censuses: dict[str, Census]) -> Iterator[Iterator[Heard]]:
    for path in logs:
        rotated = _ROTATED.fullmatch(path.name)
        source = path.with_name(rotated[1]) if rotated else path
        reader = SchedulerLog(str(source), near, censuses["log"])
        yield chain(reader.read(_lines(path, LONGEST_LINE)), reader.end())


def _watches(watches: dict[str, _Paths], censuses: dict[str, Census]) -> Iterator[Iterator[Heard]]:
    for name, paths in watches.items():
        for path in paths:
            yield WatchReader(censuses[name]).read(_lines(path, _LONGEST_WATCHED), _LONGEST_WATCHED)


def _write(traces: Iterator[tuple[int, list[Group]]], apiserver: _Paths, recording: RecordingWriter | None) -> Counter[str]:
    """Write the attempts; with the API server's spans where these are given, and return the links between them."""

    def write(batch: Batch) -> None:
        if recording:
            recording.write(batch.groups, batch.arrived)

    if apiserver:
        from podtrail.cli.joining import join

        return join(traces, apiserver, write, lambda damage: show_skipped(str(damage), 1))
    for arrival, groups in traces:
        if recording:
            recording.write(groups, arrival)
    return Counter()


def _rebuilt(correlator: Correlator, heard: Iterator[Heard]) -> Iterator[Rebuilt]:
    for one in heard:
        yield from correlator.feed(one)
    yield from correlator.finish()


def _lines(path: Path, longest: int) -> Iterator[bytes]:
    yield from split_lines(_pieces(path), longest)


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


def _near(logs: _Paths, watches: _Paths) -> int:
    """Return a moment about which the logs were written: what a watch says, else when a log was last written."""
    for path in watches:
        for line in split_lines(_pieces(path), _PIECE):
            if found := _ARRIVAL.search(line):
                return int(found[1])
            break
    written = [path.stat().st_mtime_ns for path in logs if path.exists()]
    return max(written, default=time.time_ns())
