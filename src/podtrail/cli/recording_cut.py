"""`podtrail recording cut`: some traces of recordings, each whole."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click

from podtrail.cli.output_file import refuse_existing
from podtrail.cli.reading import (
    Failed,
    RecordingInput,
    overwrite_option,
    recordings_argument,
    refuse_overwriting,
    strict_option,
    to_option,
    writing,
)
from podtrail.config.types import parse_duration
from podtrail.recording.selection import Criteria, TooMany, Window, chosen, linked, meeting
from podtrail.story import several

_NANOSECONDS = 1_000_000_000


class RecordingTime(NamedTuple):
    """A time as options have it: a date and time, or how long after the beginning or before the end of a recording."""

    nanoseconds: int
    """Since the Unix epoch; where relative, from the beginning (0 or more) or from the end (less)."""
    relative: bool
    from_end: bool = False

    def at(self, first: int, last: int) -> int:
        """Return the time in a recording with these first and last arrivals, Unix nanoseconds."""
        if not self.relative:
            return self.nanoseconds
        return (last if self.from_end else first) + self.nanoseconds


def moment_of(_context: click.Context, _option: click.Parameter, value: str | None) -> RecordingTime | None:
    """Return what `2026-11-21T18:00:00Z`, `10m` or `-10m` means, None for an option that is not given."""
    if value is None:
        return None
    try:
        stamp = datetime.fromisoformat(value)
    except ValueError:
        return _relative(value)
    if stamp.tzinfo is None:
        stamp = stamp.replace(tzinfo=UTC)
    since = stamp - datetime.fromtimestamp(0, UTC)
    seconds = since.days * 86_400 + since.seconds
    return RecordingTime(seconds * _NANOSECONDS + since.microseconds * 1000, relative=False)


def _relative(value: str) -> RecordingTime:
    try:
        return RecordingTime(parse_duration(value), relative=True, from_end=value.startswith("-"))
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no time: write 2026-11-21T18:00:00Z, 10m for ten minutes after the beginning, "
            "or -10m for ten before the end"
        ) from None


_UID = re.compile(r"[^/\s]+")
_POD = re.compile(r"[^/\s]+/[^/\s]+")
_MOST_COUNTED = 500_000
_TRACE = re.compile(r"[0-9a-fA-F]{32}")


def _traces(_context: click.Context, _option: click.Parameter, value: tuple[str, ...]) -> frozenset[bytes]:
    for id in value:
        if not _TRACE.fullmatch(id):
            raise click.BadParameter(f"{id!r} is no trace id: 32 hex digits")
    return frozenset(map(bytes.fromhex, value))


def _pods(_context: click.Context, _option: click.Parameter, value: tuple[str, ...]) -> frozenset[str]:
    for pod in value:
        if not (_POD.fullmatch(pod) or _UID.fullmatch(pod)):
            raise click.BadParameter(f"{pod!r} names no Pod: write namespace/name, or its uid")
    return frozenset(value)


@click.command("cut")
@recordings_argument
@to_option
@click.option("--since", callback=moment_of, metavar="TIME", help="Traces that began then or later.")
@click.option("--until", callback=moment_of, metavar="TIME", help="Traces that began before.")
@click.option("--pod", "pods", multiple=True, callback=_pods, metavar="NS/NAME|UID", help="Traces about a Pod.")
@click.option("--namespace", "namespaces", multiple=True, help="Traces about Pods of a namespace.")
@click.option(
    "--cluster", "clusters", multiple=True, help="Traces of a cluster (k8s.cluster.name); '' for those that say none."
)
@click.option("--result", "results", multiple=True, help="Attempts that ended so: Success, Unschedulable, … or failed.")
@click.option("--trace", "traces", multiple=True, callback=_traces, metavar="ID", help="The trace with this id.")
@click.option("--with-links", is_flag=True, help="And the traces that those link to.")
@overwrite_option
@strict_option
def command(
    recordings: tuple[Path, ...],
    to: Path,
    since: RecordingTime | None,
    until: RecordingTime | None,
    pods: frozenset[str],
    namespaces: tuple[str, ...],
    clusters: tuple[str, ...],
    results: tuple[str, ...],
    traces: frozenset[bytes],
    with_links: bool,
    overwrite: bool,
    strict: bool,
) -> None:
    """Take some traces out of recordings, each whole, late spans included.

    A time is a date and time, 10m for ten minutes after the first arrival, or -10m for ten before the last. What is
    given several times holds if one of it does; of several options all must hold.

    The recordings are read once for --since and --until, once more for --pod, --namespace, --cluster, --result, once
    more for --with-links and for relative times. The ids of two million traces are held in memory at most.
    """
    refuse_overwriting(recordings, to)
    refuse_existing(to, overwrite=overwrite)
    reading = RecordingInput(recordings, strict=strict)
    window = _window(reading, since, until)
    criteria = Criteria(pods, frozenset(namespaces), frozenset(map(str.lower, results)), frozenset(clusters))
    try:
        meant = _meant(reading, criteria, traces, with_links=with_links)
    except TooMany as error:
        raise Failed(str(error)) from None
    spans, kept, seen = 0, 0, set[bytes]()
    with writing(to) as writer:
        for record, groups in chosen(reading.records("cutting"), window, meant):
            writer.write(groups, record.arrival)
            kept += 1
            spans += sum(group.span_count for group in groups)
            if len(seen) < _MOST_COUNTED:
                seen.update(group.trace_id for group in groups)
        reading.refuse_nothing()
        if not kept:
            raise Failed("no trace is meant by this: nothing is written")
    found = several(len(seen), "trace") if len(seen) < _MOST_COUNTED else f"{len(seen):,} or more traces"
    click.echo(f"{to}: {several(kept, 'request')}, {found}, {several(spans, 'span')}{reading.faults()}")
    if window.forgotten:
        click.echo(
            f"podtrail: {window.forgotten:,} traces were forgotten: what came of them later was judged by its own time",
            err=True,
        )


def _window(reading: RecordingInput, since: RecordingTime | None, until: RecordingTime | None) -> Window:
    first = last = 0
    if any(moment is not None and moment.relative for moment in (since, until)):
        for record in reading.records("looking for the beginning and the end"):
            first = first or record.arrival
            last = record.arrival
    begin, end = (moment and moment.at(first, last) for moment in (since, until))
    if begin is not None and end is not None and begin >= end:
        raise click.UsageError("--since is not before --until")
    return Window(begin, end)


def _meant(
    reading: RecordingInput, criteria: Criteria, traces: frozenset[bytes], *, with_links: bool
) -> frozenset[bytes] | None:
    meant: frozenset[bytes] | None = traces or None
    if criteria:
        met = meeting(reading.records("looking for traces"), criteria)
        meant = frozenset(met & traces if traces else met)
    if meant is not None and with_links:
        meant = frozenset(linked(reading.records("looking for links"), meant))
    return meant
