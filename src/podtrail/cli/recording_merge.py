"""`podtrail recording merge`: several recordings as one, or one in another form."""

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
from podtrail.story import several


@click.command("merge")
@recordings_argument
@to_option
@overwrite_option
@strict_option
def command(recordings: tuple[Path, ...], to: Path, overwrite: bool, strict: bool) -> None:
    """Put recordings together in the order of arrival, of the arguments where that is equal.

    One request a recording is held in memory. With one recording alone this changes its form or compression.
    """
    refuse_overwriting(recordings, to)
    refuse_existing(to, overwrite=overwrite)
    merge(recordings, to, strict=strict)


def merge(recordings: tuple[Path, ...], to: Path, *, strict: bool) -> None:
    """Write recordings as one and say so."""
    refuse_overwriting(recordings, to)
    reading = RecordingInput(recordings, strict=strict)
    spans = 0
    with writing(to) as writer:
        for record in reading.records("merging"):
            writer.write(record.intake.groups, record.arrival)
            spans += sum(group.span_count for group in record.intake.groups)
        reading.refuse_nothing()
    click.echo(f"{to}: {several(reading.requests, 'request')}, {several(spans, 'span')}{reading.faults()}")
