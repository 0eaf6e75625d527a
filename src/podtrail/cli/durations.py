"""Options that are lengths of time."""

from typing import Any, Final

import click

from podtrail.config.types import parse_duration


class DurationOption(click.ParamType):  # type: ignore[type-arg] # generic in the stubs of newer versions alone
    """A duration such as 90s or 1h30m; more than nothing, where it is not said that it may be 0s."""

    name = "duration"

    def __init__(self, *, least: int = 1) -> None:
        """Take at least so many nanoseconds, 0 or 1."""
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return nanoseconds."""
        if isinstance(value, int):
            return value
        try:
            nanoseconds = parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if nanoseconds < self._least:
            self.fail(f"{value!r} is no time at all", param, ctx)
        return nanoseconds


DURATION: Final = DurationOption()
DURATION_OR_NONE: Final = DurationOption(least=0)
