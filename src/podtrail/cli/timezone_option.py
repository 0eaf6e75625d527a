"""The option --timezone of commands that read a log of kube-scheduler."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
_HELP = (
    "The time zone of the log's times, which klog does not write: a name (Europe/Berlin) or an offset (+02:00). "
    "Without it podtrail derives the zone from the envelope of the lines or from the watches, and else reads UTC."
)


def timezone_option(command: F) -> F:
    """Give a command the option; its value is a text that `zone_of` reads, "" without the option."""
    return click.option("--timezone", metavar="ZONE", default="", help=_HELP, callback=_checked)(command)


def _checked(context: click.Context, option: click.Parameter, text: str) -> str:  # noqa: ARG001
    if text:
        from podtrail.reconstruction import zone_of

        try:
            zone_of(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return text
