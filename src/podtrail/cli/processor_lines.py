"""Standard error of the commands that run processors: their warnings and failures in a line each, no traceback."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from podtrail.cli.reading import Failed
from podtrail.component import ComponentError
from podtrail.config import printable
from podtrail.config.secret_keys import redacted
from podtrail.replay.flows import Flows, place_of

_LOG = logging.getLogger("podtrail")
_SAID_AT_THE_END: Final = "failed in start: "
_MOST_REMEMBERED: Final = 1_000


class _Lines(logging.Handler):
    """Prints each line once: several pipelines, and two configurations, have the same to say."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._printed: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message behind the component's id, and the place that an exception comes from."""
        component = getattr(record, "component", "")
        error = record.exc_info[1] if record.exc_info else None
        place = place_of(error) if error is not None else ""
        line = f"{component}: {record.getMessage()}{place}" if component else f"{record.getMessage()}{place}"
        if line not in self._printed and not record.getMessage().startswith(_SAID_AT_THE_END):
            self._printed[line] = None
            if len(self._printed) > _MOST_REMEMBERED:
                del self._printed[next(iter(self._printed))]
            click.echo(f"podtrail: {printable(redacted(line))}", err=True)


@contextmanager
def processor_lines() -> Iterator[None]:
    """Print what processors log, and end the command with exit code 1 when one can't be made or never gets further.

    Raises:
        Failed: the processor's line.
    """
    lines = _Lines()
    _LOG.addHandler(lines)
    try:
        yield
    except ComponentError as error:
        raise Failed(str(error) + (place_of(error.__cause__) if error.__cause__ else "")) from None
    finally:
        _LOG.removeHandler(lines)


def show_faults(flows: Flows) -> bool:
    """Print a line for each processor whose spans don't add up; return whether there is one, or one has raised."""
    faults = flows.faults()
    for fault in faults:
        click.echo(f"podtrail: {printable(fault)}", err=True)
    return bool(faults) or bool(flows.failed)
