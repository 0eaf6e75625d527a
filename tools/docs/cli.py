"""docs/cli.md: the help of every command."""

from collections.abc import Iterator

import click

from podtrail.cli import main as podtrail

_WIDTH = 100
_HEAD = """# Commands

<!-- written by ./dev docs -->

Each command with its options, as `--help` prints them. After `./dev run` the command is `.venv/bin/podtrail`.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join(
        [_HEAD, *_commands(podtrail, click.Context(podtrail, info_name="podtrail", **podtrail.context_settings))]
    )


def _commands(command: click.Command, context: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, "it is listed"
            if not below.hidden:
                yield from _commands(below, click.Context(below, parent=context, info_name=name))
        if context.parent is None:
            return
    context.terminal_width = context.max_content_width = _WIDTH
    context.color = False
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
