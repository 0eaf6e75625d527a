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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called.

        Raises:
            UsageError: there is none of this name; the text names those that are spelled alike.
        """
        named = args[0]
        if named not in self._named and not named.startswith("-") and not ctx.resilient_parsing:
            from podtrail.config import printable  # loading takes time that no valid command should cost
            from podtrail.config.problem import did_you_mean

            hint = did_you_mean(named, self.list_commands(ctx), "commands")
            raise click.UsageError(f"no such command {printable(repr(named))}; {hint}", ctx)
        return super().resolve_command(ctx, args)

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
