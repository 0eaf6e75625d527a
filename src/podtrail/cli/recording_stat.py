"""`podtrail recording stat`: what is in recordings."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from podtrail.cli.reading import RecordingInput, files, recordings_argument, strict_option
from podtrail.cli.sizes import format_size
from podtrail.config import printable
from podtrail.config.types import SECOND, format_duration
from podtrail.recording import recording_files
from podtrail.recording.statistics import Names, Period, Statistics
from podtrail.story import several

_EPOCH = datetime.fromtimestamp(0, UTC)
_NOTHING = "(not said)"
_MILLISECOND = SECOND // 1000


@click.command("stat")
@recordings_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--top", default=15, show_default=True, type=click.IntRange(min=1), help="Rows of a table.")
@strict_option
def command(recordings: tuple[Path, ...], as_json: bool, top: int, strict: bool) -> None:
    """Say what is in recordings: spans, traces, attempts, rejections, rates, sizes, and what is wrong with them.

    Memory does not grow with the recordings: of each table 20,000 names are counted, and 250,000 spans are held to tell
    duplicates and orphans. It is said when that was not enough.
    """
    reading = RecordingInput(recordings, strict=strict)
    statistics = Statistics()
    for record in reading.records("counting"):
        statistics.add(record)
    reading.refuse_nothing()
    with files():
        size = sum(file.stat().st_size for path in recordings for file in recording_files(path))
    if as_json:
        click.echo(json.dumps(_json(statistics, reading, size)))
        return
    for line in (*_sums(statistics, reading, size), *_faults(statistics, reading), *_tables(statistics, top)):
        click.echo(printable(line) if line else "")


def _json(found: Statistics, reading: RecordingInput, size: int) -> dict[str, Any]:
    def names(of: Names) -> dict[str, int]:
        return dict(of.counts.most_common())

    return {
        "requests": found.requests,
        "spans": found.spans,
        "traces": found.traces.count,
        "fileBytes": size,
        "spanBytes": found.size,
        "firstArrivalUnixNano": str(found.arrivals.first),
        "lastArrivalUnixNano": str(found.arrivals.last),
        "firstStartUnixNano": str(found.times.first),
        "lastEndUnixNano": str(found.times.last),
        "services": names(found.services),
        "spanNames": names(found.names),
        "attempts": found.attempts,
        "pods": len(found.pods.counts),
        "results": names(found.results),
        "profiles": names(found.profiles),
        "namespaces": names(found.namespaces),
        "rejections": names(found.rejections),
        "faults": {
            "damages": reading.damages,
            "otherSignals": dict(reading.others),
            "rejectedSpans": found.rejected,
            "withoutArrival": found.untimed,
            "outOfOrder": found.put_off,
            "oddTimes": found.odd_times,
            "arrivedBeforeTheirEnd": found.early,
            "duplicates": found.traces.duplicates,
            "orphans": found.traces.orphans,
        },
        "cutOff": {
            "traces": found.traces.let_go,
            "names": {key: of.others for key, of in _named(found) if of.others},
        },
    }


def _named(found: Statistics) -> Iterator[tuple[str, Names]]:
    yield "services", found.services
    yield "spanNames", found.names
    yield "results", found.results
    yield "profiles", found.profiles
    yield "namespaces", found.namespaces
    yield "pods", found.pods
    yield "rejections", found.rejections


def _sums(found: Statistics, reading: RecordingInput, size: int) -> Iterator[str]:
    some = "about " if found.traces.let_go else ""
    sums = (several(found.requests, "request"), several(found.spans, "span"), several(found.traces.count, "trace"))
    yield f"{sums[0]}, {sums[1]}, {some}{sums[2]}"
    yield f"{format_size(size)} in {_files(len(reading.paths))}, {format_size(found.size)} of spans{_each(found)}"
    yield f"arrived {_period(found.arrivals)}{_rates(found)}"
    yield f"spans   {_period(found.times)}"
    if found.attempts:
        more = " or more" if found.pods.others else ""
        yield f"{found.attempts:,} scheduling attempts of {len(found.pods.counts):,}{more} Pods"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _each(found: Statistics) -> str:
    return f", {found.size / found.spans:,.0f} bytes each" if found.spans else ""


def _rates(found: Statistics) -> str:
    seconds = found.arrivals.length / SECOND
    if not seconds:
        return ""
    return f": {_rate(found.spans / seconds)} spans/s, {_rate(found.requests / seconds)} requests/s"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _period(period: Period) -> str:
    if not period.last:
        return "at no time that they say"
    return f"{_stamp(period.first)} to {_stamp(period.last)} ({format_duration(_rounded(period.length))})"


def _rounded(nanoseconds: int) -> int:
    return round(nanoseconds / _MILLISECOND) * _MILLISECOND if nanoseconds > SECOND else nanoseconds


def _stamp(time: int) -> str:
    return (_EPOCH + timedelta(microseconds=time // 1000)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _faults(found: Statistics, reading: RecordingInput) -> Iterator[str]:
    told = (
        (reading.damages, "damaged places, skipped"),
        (found.rejected, "invalid spans, left out"),
        (found.untimed, "requests without arrival: taken for the latest end of their spans"),
        (found.put_off, "requests that say they arrived before the one ahead"),
        (found.odd_times, "spans without start or end, or that end before they start"),
        (
            found.early,
            f"spans that arrived up to {format_duration(_rounded(found.earliest))} before they ended: clocks differ",
        ),
        (found.traces.duplicates, "spans that are there twice"),
        (found.traces.orphans, "spans whose parent is not there"),
        (found.traces.let_go, "traces let go before the end: if they go on, duplicates and orphans are not exact"),
    )
    if any(count for count, _ in told):
        yield ""
    for count, what in told:
        if count:
            yield f"{count:,} {what}"


def _tables(found: Statistics, top: int) -> Iterator[str]:
    yield from _table(("SERVICE", "SPANS"), found.services, top)
    yield from _table(("SPAN NAME", "SPANS"), found.names, top)
    if found.attempts:
        yield from _table(("RESULT", "ATTEMPTS"), found.results, top)
        yield from _table(("PROFILE", "ATTEMPTS"), found.profiles, top)
        yield from _table(("NAMESPACE", "ATTEMPTS"), found.namespaces, top)
    yield from _table(("REJECTED BY", "TIMES"), found.rejections, top)


def _table(head: Sequence[str], names: Names, top: int) -> Iterator[str]:
    shown = names.counts.most_common(top)
    if not shown:
        return
    rest = names.counts.total() - sum(count for _, count in shown)
    rows = [(name or _NOTHING, f"{count:,}") for name, count in shown]
    if rest + names.others:
        more = f" and {names.others:,} more of names not counted" if names.others else ""
        rows.append((f"({len(names.counts) - len(shown):,} more{more})", f"{rest + names.others:,}"))
    width = max(len(name) for name, _ in rows)
    yield ""
    yield f"{head[0]:{width}}  {head[1]:>10}"
    for name, count in rows:
        yield f"{name:{width}}  {count:>10}"
