"""Times as options have them: a date and time, or how long after the beginning or before the end of a recording."""

from datetime import UTC, datetime
from typing import NamedTuple

import click

from podtrail.config.types import parse_duration

_NANOSECONDS = 1_000_000_000


class RecordingTime(NamedTuple):
    """A time, absolute or not."""

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
