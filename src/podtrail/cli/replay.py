"""`podtrail replay`: recorded traces through a configuration's processors, in virtual time."""

import errno
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import click

from podtrail.cli.foreign import foreign
from podtrail.cli.options import config_options, reporting, settings_of
from podtrail.cli.report import show_warnings
from podtrail.cli.tally import Tally, policies
from podtrail.config import printable
from podtrail.otlp import Batch
from podtrail.otlp.decisions import decision_line
from podtrail.recording import Damage, Record, RecordingWriter
from podtrail.testing.replayer import Replayer, read_records

_MOST_DAMAGES_SHOWN = 20
_DISK_FAILS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


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
        settings = settings_of(config, assignments, gates, idle=("receivers", "exporters"))
    show_warnings(settings.warnings)
    _refuse_overwriting(recordings, output, decisions)
    tally = Tally(policies(settings))
    try:
        _refuse_foreign(recordings)
        with ExitStack() as stack:  # whose end writes what is left
            sinks = list(_sinks(stack, output, decisions))
            replayer = Replayer(settings, _sink(tally, sinks), gates)
            tally.accounts = replayer.accounts
            for record in _shown(read_records(recordings, _damaged(tally))):
                tally.came(record)
                replayer.add(record.arrival, record.intake)
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
        tally.print(sys.stdout)
    if not tally.requests:
        click.echo("podtrail: the recordings hold no request that can be read", err=True)
        sys.exit(1)
    if tally.stitched:
        click.echo(
            "podtrail: note: link_stitching has passed these spans on: they are what was kept, not what came", err=True
        )


def _refuse_foreign(recordings: tuple[Path, ...]) -> None:
    """End with exit code 1 when a file is no recording, before anything is written."""
    for recording in recordings:
        if what := foreign(recording):
            click.echo(f"podtrail: {printable(f'{recording} is {what}')}", err=True)
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


def _sink(tally: Tally, sinks: list[Callable[[Batch], None]]) -> Callable[[str, Batch], None]:
    def sink(_pipeline: str, batch: Batch) -> None:
        tally.left(batch)
        for write in sinks:
            write(batch)

    return sink


def _damaged(tally: Tally) -> Callable[[Damage], None]:
    def damaged(damage: Damage) -> None:
        tally.damages += 1
        if tally.damages <= _MOST_DAMAGES_SHOWN:
            click.echo(f"podtrail: skipped {printable(str(damage))}", err=True)

    return damaged


def _shown(records: Iterator[Record]) -> Iterator[Record]:
    """Pass records on, with progress on a terminal."""
    if not sys.stderr.isatty():
        yield from records
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,} requests"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("replay", total=None)
        for record in records:
            yield record
            progress.advance(task)
