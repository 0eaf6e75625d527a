"""`podtrail completion`: what a shell needs to complete commands, options and their values."""

from typing import Final

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
_WHOLE: Final = ('split "," $', 'split --max 1 "," $')
"""In what fish runs: descriptions go on behind their first comma."""


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion for a shell: commands, options, values, components; Pods, nodes, policies of a running page.

    bash: source <(podtrail completion bash), in ~/.bashrc; zsh: the same, in ~/.zshrc behind compinit; fish: podtrail
    completion fish > ~/.config/fish/completions/podtrail.fish.
    """
    made = get_completion_class(shell)
    assert made is not None
    source = made(context.find_root().command, {}, "podtrail", "_PODTRAIL_COMPLETE").source()
    click.echo(source.replace(*_WHOLE))
