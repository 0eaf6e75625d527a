"""Commands that are imported when they are called."""

import importlib
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """Knows its commands by name and help; imports only the one that is called."""

    def __init__(self, *args: Any, named: Mapping[str, tuple[str, str]], **extra: Any) -> None:
        """Make a group of commands, by name: the module that has it as `command`, and a line.

        A module without a dot is one of `podtrail.cli`.
        """
        super().__init__(*args, **extra)
        self._named = named

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names."""
        return list(self._named)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in self._named:
            return None
        module = self._named[cmd_name][0]
        command = importlib.import_module(module if "." in module else f"podtrail.cli.{module}").command
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands, which are not imported for it, and the options."""
        named = [
            CompletionItem(name, help=text) for name, (_, text) in self._named.items() if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._named.items()])
