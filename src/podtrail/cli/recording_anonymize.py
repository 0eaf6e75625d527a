"""`podtrail recording anonymize`: a recording that can be given away."""

import secrets
from pathlib import Path

import click

from podtrail.cli.output_file import refuse_existing
from podtrail.cli.reading import (
    RecordingInput,
    overwrite_option,
    recordings_argument,
    refuse_overwriting,
    strict_option,
    to_option,
    writing,
)
from podtrail.config.types import parse_duration
from podtrail.otlp.rewriting import Rewriter
from podtrail.recording.masking import Masking
from podtrail.story import several


def _duration(_context: click.Context, _option: click.Parameter, value: str) -> int:
    try:
        return parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command("anonymize")
@recordings_argument
@to_option
@click.option(
    "--key",
    envvar="PODTRAIL_ANONYMIZE_KEY",
    help="Replace by this key: the same in every recording. Keep it secret. Without one it is drawn, and forgotten.",
)
@click.option("--shift", default="0s", callback=_duration, help="Move all times, for example by -8760h.")
@overwrite_option
@strict_option
def command(recordings: tuple[Path, ...], to: Path, key: str | None, shift: int, overwrite: bool, strict: bool) -> None:
    """Replace names, messages, ids and values, the same by the same: links still lead where they led.

    What stays: the structure, times, durations, counts, kinds, statuses, results, names of plugins, the words of the
    scheduler's own messages, keys of attributes, and the values of those that tell nothing. Values of all others are
    replaced, numbers too.
    """
    refuse_overwriting(recordings, to)
    refuse_existing(to, overwrite=overwrite)
    reading = RecordingInput(recordings, strict=strict)
    masking = Masking(key.encode() if key else secrets.token_bytes(), shift)
    rewriter = Rewriter(masking)
    spans = 0
    with writing(to) as writer:
        for record in reading.records("anonymizing"):
            arrival = masking.time(record.arrival) if record.arrival else 0
            writer.write(rewriter.rewrite(record.intake.groups), arrival)
            spans += sum(group.span_count for group in record.intake.groups)
        reading.refuse_nothing()
    click.echo(f"{to}: {several(reading.requests, 'request')}, {several(spans, 'span')}{reading.faults()}")
