"""Prints problems and warnings: a line to grep, the place, what would be right. Colour only on a terminal."""

import os
from collections.abc import Iterable
from typing import IO, Any

import click

from podtrail.config import ConfigError, Problem


class ConfigProblem(click.ClickException):
    """A configuration that can't be used ends the command with its report and exit code 2."""

    exit_code = 2

    def __init__(self, error: ConfigError) -> None:
        super().__init__(str(error))
        self.error = error

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the report to standard error."""
        show_warnings(self.error.warnings)
        for problem in self.error.problems:
            _echo(problem, "red", "", file)


def show_warnings(warnings: Iterable[Problem]) -> None:
    """Print warnings to standard error."""
    for warning in warnings:
        _echo(warning, "yellow", "warning: ", None)


def _echo(problem: Problem, colour: str, prefix: str, file: IO[Any] | None) -> None:
    lines = (click.style(prefix + problem.headline, fg=colour), *problem.details)
    click.echo("\n".join(lines), file=file, err=True, color=False if os.environ.get("NO_COLOR") else None)
