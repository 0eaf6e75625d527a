"""`podtrail replay`: recorded traces through a configuration's processors, in virtual time."""

import errno
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

import click

from podtrail.cli.options import config_options, reporting, settings_of
from podtrail.cli.report import show_warnings
from podtrail.config import printable
from podtrail.config.types import format_duration
from podtrail.otlp import Batch, Intake
from podtrail.otlp.decisions import decision_line
from podtrail.recording import Damage, RecordingWriter
from podtrail.testing.replayer import Replayer, read_arrivals

_MOST_DAMAGES_SHOWN = 20
_DISK_FAILS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class _Tally:
    """What a replay comes to."""

    def __init__(self) -> None:
        self.requests = self.spans = self.rejected = self.damages = self.kept_spans = 0
        self.first = self.last = 0
        self.decisions: Counter[str] = Counter()
        self.decided_by: Counter[str] = Counter()
        self.voted: Counter[str] = Counter()
        self.spans_by: Counter[str] = Counter()

    def came(self, arrival: int, intake: Intake) -> None:
        self.requests += 1
        self.spans += sum(group.span_count for group in intake.groups)
        self.rejected += intake.rejected
        self.first = self.first or arrival
        self.last = max(self.last, arrival)

    def left(self, batch: Batch) -> None:
        self.kept_spans += batch.span_count
        for verdict in batch.verdicts:
            self.decisions[verdict.decision] += 1
            winner = verdict.policy if verdict.decision == "sampled" else "(nothing)"
            self.decided_by[winner] += 1
            self.spans_by[winner] += verdict.spans
            self.voted.update(policy for policy, vote in verdict.votes.items() if vote == "sampled")

    def damaged(self, damage: Damage) -> None:
        self.damages += 1
        if self.damages <= _MOST_DAMAGES_SHOWN:
            click.echo(f"podtrail: skipped {printable(str(damage))}", err=True)

    def as_json(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "spans": self.spans,
            "keptSpans": self.kept_spans,
            "rejectedSpans": self.rejected,
            "damages": self.damages,
            "decisions": dict(self.decisions),
            "policies": {
                policy: {
                    "votedYes": self.voted[policy],
                    "decided": self.decided_by[policy],
                    "spans": self.spans_by[policy],
                }
                for policy in dict.fromkeys((*self.decided_by, *self.voted))
            },
        }


@click.command("replay")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...", type=click.Path(path_type=Path))
@config_options()
@click.option("--output", type=click.Path(path_type=Path), help="Write what is kept to a recording (.jsonl or .otlp).")
@click.option("--decisions", type=click.Path(path_type=Path), help="Write every decision to a file, one JSON a line.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def command(
    recordings: tuple[Path, ...],
    config: tuple[str, ...],
    assignments: tuple[str, ...],
    gates: frozenset[str],
    output: Path | None,
    decisions: Path | None,
    as_json: bool,
) -> None:
    """Run recorded traces through a configuration's processors.

    The processors are told the recorded time, so a week of traces takes seconds and decides as it would have live.
    Receivers and exporters of the configuration are not started.
    """
    with reporting():
        settings = settings_of(config, assignments, gates)
    show_warnings(settings.warnings)
    _refuse_overwriting(recordings, output, decisions)
    tally = _Tally()
    try:
        with ExitStack() as stack:  # whose end writes what is left
            sinks = list(_sinks(stack, output, decisions))
            replayer = Replayer(settings, _sink(tally, sinks), gates)
            for arrival, intake in _shown(read_arrivals(recordings, tally.damaged)):
                tally.came(arrival, intake)
                replayer.add(arrival, intake)
            replayer.finish()
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"podtrail: {printable(f'{where}{error.strerror or error}')}", err=True)
        sys.exit(1 if error.errno in _DISK_FAILS else 2)
    except ValueError as error:
        click.echo(f"podtrail: {printable(str(error))}", err=True)
        sys.exit(2)
    if as_json:
        click.echo(json.dumps(tally.as_json()))
    else:
        _print(tally, sys.stdout)
    if not tally.requests:
        click.echo("podtrail: the recordings hold no request that can be read", err=True)
        sys.exit(1)


def _refuse_overwriting(recordings: tuple[Path, ...], output: Path | None, decisions: Path | None) -> None:
    """End with a usage error rather than write over what is being read, or two things into one file."""
    if output is not None and decisions is not None and output.resolve() == decisions.resolve():
        raise click.UsageError(f"--output and --decisions are the same file: {output}")
    for written in filter(None, (output, decisions)):
        if any(written.exists() and recording.exists() and written.samefile(recording) for recording in recordings):
            raise click.UsageError(f"{written} is read: write to another file")


def _sinks(stack: ExitStack, output: Path | None, decisions: Path | None) -> Iterator[Callable[[Batch], None]]:
    if output is not None:
        recording = stack.enter_context(RecordingWriter(output))
        yield lambda batch: recording.write(batch.groups, batch.arrived) if batch.groups else None
    if decisions is not None:
        lines = stack.enter_context(decisions.open("w", encoding="utf-8"))
        yield lambda batch: lines.writelines(
            json.dumps(decision_line(verdict), ensure_ascii=False) + "\n" for verdict in batch.verdicts
        )


def _sink(tally: _Tally, sinks: list[Callable[[Batch], None]]) -> Callable[[str, Batch], None]:
    def sink(_pipeline: str, batch: Batch) -> None:
        tally.left(batch)
        for write in sinks:
            write(batch)

    return sink


def _shown(arrivals: Iterator[tuple[int, Intake]]) -> Iterator[tuple[int, Intake]]:
    """Pass arrivals on, with progress on a terminal."""
    if not sys.stderr.isatty():
        yield from arrivals
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,} requests"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("replay", total=None)
        for arrival in arrivals:
            yield arrival
            progress.advance(task)


def _print(tally: _Tally, out: TextIO) -> None:
    traces = tally.decisions.total()
    print(
        f"{tally.requests:,} requests, {tally.spans:,} spans, {format_duration(tally.last - tally.first)} of arrivals"
        + (f"; {tally.rejected:,} invalid spans rejected" if tally.rejected else "")
        + (
            f"; {tally.damages:,} damaged {'place' if tally.damages == 1 else 'places'} skipped"
            if tally.damages
            else ""
        ),
        file=out,
    )
    if not traces:
        print(f"no sampler decided anything: {tally.kept_spans:,} spans pass", file=out)
        return
    kept = tally.decisions["sampled"]
    print(
        f"{traces:,} traces decided: {kept:,} kept ({100 * kept / traces:.1f} %), "
        f"{tally.kept_spans:,} spans leave the processors\n",
        file=out,
    )
    print(f"{'POLICY':24} {'VOTED YES':>10} {'DECIDED':>10} {'SPANS':>12}", file=out)
    for policy in dict.fromkeys((*tally.voted, *tally.decided_by)):
        voted = "-" if policy == "(nothing)" else f"{tally.voted[policy]:,}"
        row = f"{tally.decided_by[policy]:>10,} {tally.spans_by[policy]:>12,}"
        print(f"{printable(policy):24} {voted:>10} {row}", file=out)
