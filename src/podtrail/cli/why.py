"""`podtrail why`: why a Pod waits, or what became of a trace, in plain words."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

import click

from podtrail.cli import completing
from podtrail.cli.typed_program import typed_program
from podtrail.cli.why_answering import RememberingCommand, tell, why_options
from podtrail.cli.why_overview import change, node, pending, plugin
from podtrail.config import printable
from podtrail.story import WhyQuestion, shell_word

_TRACE_ID: Final = re.compile("[0-9a-fA-F]{32}")


class _WhyGroup(click.Group):
    """Tells who names a Pod and no command which command that would be."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called."""
        asked = args[0]
        if self.get_command(ctx, asked) is None and not asked.startswith("-"):
            what = "trace" if _TRACE_ID.fullmatch(asked) else "pod"
            typed = f"{typed_program()} " + " ".join(map(shell_word, ("why", what, *args)))
            close = get_close_matches(asked.lower(), self.list_commands(ctx), n=1)
            meant = f"did you mean {close[0]}? " if close else ""
            raise click.UsageError(f"no command {printable(asked)!r}; {meant}a {what.capitalize()}: {typed}", ctx)
        return super().resolve_command(ctx, args)


@click.group("why", cls=_WhyGroup)
def command() -> None:
    """Say why a Pod waits, or what became of a trace, in plain words.

    A running page is asked, or files. Exit code 0: answered; 1: not known, or nobody to ask; 2: usage.
    """


@command.command("pod", cls=RememberingCommand)
@click.argument("pod", metavar="[NAMESPACE/]NAME|UID", shell_complete=completing.pods)
@click.option(
    "-n",
    "--namespace",
    shell_complete=completing.namespaces,
    help="The Pod's namespace, where several have one of that name.",
)
@click.option("--cluster", help="The Pod's cluster (k8s.cluster.name), where several have one of that name.")
@click.option("--attempt", type=click.IntRange(1, 99_999_999), help="Tell of one attempt, by its number.")
@why_options
def pod(pod: str, namespace: str | None, cluster: str | None, attempt: int | None, **options: Any) -> None:
    """Say why a Pod waits, or how it got its node.

    The Pod is NAMESPACE/NAME, a NAME that only one namespace has (or with -n), or a uid. Where several clusters have
    one of that name, --cluster says which is meant.
    """
    if namespace is not None and "/" in pod:
        raise click.UsageError("the namespace is given twice: NAMESPACE/NAME and -n")
    if cluster is not None and not cluster.strip():
        raise click.UsageError("--cluster has no name; leave it out for a Pod that does not say its cluster")
    place = f"{namespace}/{pod}" if namespace is not None else pod
    tell(_question({"pod": place, "attempt": str(attempt or ""), "cluster": cluster or ""}), **options)


@command.command("trace")
@click.argument("trace", metavar="TRACE_ID")
@why_options
def trace(trace: str, **options: Any) -> None:
    """Say what became of a trace: each policy's vote with span and value, and the traces it is linked with.

    The first eight digits of its id, as pages show them, are enough.
    """
    tell(_question({"trace": trace}), **options)


def _question(query: Mapping[str, str]) -> WhyQuestion:
    try:
        return WhyQuestion.read(query)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


for _asked in (pending, node, plugin, change):
    command.add_command(_asked)
