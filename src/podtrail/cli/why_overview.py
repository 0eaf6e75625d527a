"""`podtrail why` about more than one Pod: who waits, a node, a plugin, a change of the scheduler's configuration."""

from typing import Any

import click

from podtrail.cli import completing
from podtrail.cli.why_answering import tell, why_options
from podtrail.story import OverviewQuestion


@click.command("pending")
@why_options
def pending(**options: Any) -> None:
    """Say who waits, grouped by the whole reason."""
    tell(_question("pending"), **options)


@click.command("node")
@click.argument("node", metavar="[NAME]", default="", shell_complete=completing.nodes)
@why_options
def node(node: str, **options: Any) -> None:
    """Say who refuses a node and why, and what was bound to it; without NAME list all nodes."""
    tell(_question("node", node), **options)


@click.command("plugin")
@click.argument("plugin", metavar="[NAME]", default="", shell_complete=completing.plugins)
@why_options
def plugin(plugin: str, **options: Any) -> None:
    """Say what a plugin refuses, how long it takes, and since when it is slow; without NAME list all plugins."""
    tell(_question("plugin", plugin), **options)


@click.command("change")
@click.argument("time", metavar="[HH:MM]", default="")
@why_options
def change(time: str, **options: Any) -> None:
    """Say what a change of the scheduler's configuration did: the latest, or the one at a time (UTC).

    Where no change is told near that time, before and after it are compared all the same.
    """
    tell(_question("change", time), **options)


def _question(subject: str, name: str = "") -> OverviewQuestion:
    try:
        return OverviewQuestion.read({subject: name})
    except ValueError as error:
        raise click.UsageError(str(error)) from None
