"""Prints lines of pieces: colours on a terminal, plain words elsewhere."""

import os
from collections.abc import Iterable
from typing import Final, TextIO

import click

from podtrail.story import Line

_COLOURS: Final = {"bad": "red", "held": "yellow", "good": "green"}
_BOLD: Final = ("strong", "command")


def print_lines(lines: Iterable[Line], out: TextIO) -> None:
    """Print lines whose text is harmless already."""
    colour = out.isatty() and not os.environ.get("NO_COLOR")
    for line in lines:
        styled = (
            click.style(piece.text, fg=_COLOURS.get(piece.style), bold=piece.style in _BOLD, dim=piece.style == "dim")
            for piece in line
        )
        click.echo("".join(styled), file=out, color=colour)
