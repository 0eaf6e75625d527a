"""The program `kubectl_complete-podtrail`, which kubectl's own completion asks for what may follow."""

from collections.abc import Sequence
from typing import Final

import click
from click.shell_completion import ShellComplete

from podtrail.cli import main
from podtrail.cli.kubectl.plugin import NAME

_NO_FILES: Final = ":4"
"""The directive of cobra, which kubectl is made with: offer no files."""


def complete(typed: Sequence[str]) -> None:
    """Print what may follow, a candidate a line, as kubectl wants it of its plugins."""
    *words, incomplete = typed or [""]
    if words == ["why"]:
        words.append("pod")  # `kubectl podtrail why NAME`
        _print(ShellComplete(main, {}, NAME, "").get_completions(["why"], incomplete))
    _print(ShellComplete(main, {}, NAME, "").get_completions(words, incomplete))
    click.echo(_NO_FILES)


def _print(items: Sequence[click.shell_completion.CompletionItem]) -> None:
    for item in items:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
