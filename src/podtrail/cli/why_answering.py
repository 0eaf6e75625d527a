"""How the commands of `podtrail why` ask and print: a running page, or files; in words or as JSON."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from podtrail.cli.options import config_options, replayed, reporting
from podtrail.cli.reading import skip_shown
from podtrail.cli.report import show_warnings
from podtrail.cli.running_page import NobodyThere, endpoint_option
from podtrail.cli.timezone_option import timezone_option
from podtrail.cli.typed_program import asked_again, pasteable, typed_program
from podtrail.cli.why_sources import AskedFiles, AskedSchedulerFiles, Question, WhyReply, ask_page
from podtrail.config import printable
from podtrail.story import WhyQuestion, shell_word, visible

F = TypeVar("F", bound=Callable[..., Any])

_TYPED: Final = f"{__name__}.typed"
_MOST_COMMANDS: Final = 20
_OUTPUT_HELP: Final = "In words, or the answer and its story as one JSON object."

_STYLES: Final[Mapping[str, str]] = {
    "strong": "bold",
    "bad": "red",
    "held": "yellow",
    "good": "green",
    "dim": "dim",
    "command": "bold",
}


def why_options(command: F) -> F:
    """Give a command of `why` its options: whom to ask, and how the answer is printed."""
    for option in (
        click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours."),
        click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help=_OUTPUT_HELP),
        click.option("--json", "as_json", is_flag=True, help="The same as -o json."),
        click.option("-v", "--verbose", is_flag=True, help="More: attempts compared, reasons and votes in full."),
        config_options(required=False),
        click.option(
            "--from", "sources", multiple=True, metavar="FILE...", type=click.Path(path_type=Path), help=_FROM_HELP
        ),
        endpoint_option,
        click.option("--log", "logs", multiple=True, metavar="FILE", type=_FILE, help=_LOG_HELP),
        click.option("--watch", "watches", multiple=True, metavar="FILE", type=_FILE, help=_WATCH_HELP),
        timezone_option,
        click.argument("more", nargs=-1, type=click.Path(path_type=Path), metavar=""),
    ):
        command = option(command)
    return command


_FILE = click.Path(path_type=Path, dir_okay=False)
_LOG_HELP = "Ask a stock kube-scheduler's log instead, whose attempts are rebuilt. Repeatable."
_WATCH_HELP = "Ask a watch of Pods or Events instead, or beside --log. Repeatable."
_FROM_HELP = (
    "Ask files instead: recordings, exports, decisions. With --config its policies decide about the recordings; else "
    "nobody does."
)


class RememberingCommand(click.Command):
    """Keeps what was typed, for a command to type next."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and keep."""
        ctx.meta[_TYPED] = tuple(args)
        return super().parse_args(ctx, args)


def tell(
    question: Question,
    *,
    more: tuple[Path, ...],
    endpoint: str,
    sources: tuple[Path, ...],
    logs: tuple[Path, ...],
    watches: tuple[Path, ...],
    timezone: str,
    config: tuple[str, ...],
    assignments: tuple[str, ...],
    gates: frozenset[str],
    verbose: bool,
    output: str,
    as_json: bool,
    color: str,
) -> None:
    """Ask, print what is answered, and end the command with its exit code.

    Raises:
        UsageError: the options don't go together.
    """
    as_json = as_json or output == "json"
    if not sources and (more or config or assignments or gates):
        raise click.UsageError(f"{'more files' if more else '--config'} goes with --from")
    left_behind = bool(logs or watches)
    if sources and left_behind:
        raise click.UsageError("either --from, or --log and --watch: podtrail reconstruct makes a recording of these")
    if timezone and not logs:
        raise click.UsageError("--timezone is that of a --log")
    try:
        if left_behind:
            reply = AskedSchedulerFiles(logs, watches, timezone).ask(question)
        elif sources:
            reply = _files((*sources, *more), config, assignments, gates).ask(question)
        else:
            reply = ask_page(endpoint, question)
    except NobodyThere as problem:
        click.echo(f"podtrail: {printable(str(problem))}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as problem:
        where = f"{problem.filename}: {problem.strerror}" if isinstance(problem, OSError) else str(problem)
        click.echo(f"podtrail: {printable(where)}", err=True)
        sys.exit(2)
    if as_json:
        click.echo(json.dumps(reply.told))
    if "error" in reply.told:
        click.echo(
            f"podtrail: {printable(_problem(question, reply, from_files=bool(sources) or left_behind))}", err=True
        )
        for typed in _commands(reply):
            click.echo(f"  {typed}", err=True)
        sys.exit(1)
    if not as_json:
        whom = asked_again((*sources, *more), logs, watches, timezone, config, assignments, endpoint)
        _print(reply, verbose=verbose, color=color, whom=whom)


def _files(
    paths: tuple[Path, ...], config: tuple[str, ...], assignments: tuple[str, ...], gates: frozenset[str]
) -> AskedFiles:
    settings = None
    if config:
        with reporting():
            settings = replayed(config, assignments, gates)
        show_warnings(settings.warnings)
    elif assignments:
        raise click.UsageError("--set goes with --config")
    return AskedFiles(paths, settings, gates, skip_shown())


def _problem(question: Question, reply: WhyReply, *, from_files: bool) -> str:
    said = f"{reply.told['error']} ({reply.whom})"
    if _choices(reply):
        return f"{said}. Ask for one of them:"
    if isinstance(question, WhyQuestion) and question.pod and from_files and question.attempt is None:
        return f"{said}. A Pod that was never tried, such as a gated one, leaves no span: ask the running page."
    return said


def _commands(reply: WhyReply) -> list[str]:
    """Return what to type where the name is that of several Pods."""
    context = click.get_current_context()
    typed: tuple[str, ...] = context.meta.get(_TYPED, ())
    choices = _choices(reply)
    clusters, namespaces = ({str(one.get(what, "")) for one in choices} for what in ("cluster", "namespace"))
    commands = []
    for choice in choices[:_MOST_COMMANDS]:
        cluster, namespace, key = (str(choice.get(what, "")) for what in ("cluster", "namespace", "key"))
        words = typed
        if len(namespaces) > 1:
            words = ("-n", namespace, *words)
        if len(clusters) > 1:
            # Who does not say its cluster has only its uid to be asked by.
            asked = context.params["pod"]
            words = ("--cluster", cluster, *words) if cluster else tuple(key if one == asked else one for one in typed)
        commands.append(f"{typed_program()} " + " ".join(map(shell_word, ("why", "pod", *words))))
    more = len(choices) - len(commands)
    return [*commands, f"and {more:,} more"] if more else commands


def _choices(reply: WhyReply) -> list[dict[str, Any]]:
    return [each for each in _listed(reply.told.get("choices")) if isinstance(each, dict)]


def _print(reply: WhyReply, *, verbose: bool, color: str, whom: str) -> None:
    from rich.console import Console
    from rich.text import Text

    colour = color == "always" or (color == "auto" and sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    console = Console(
        file=sys.stdout,
        color_system="standard" if colour else None,
        force_terminal=colour,
        highlight=False,
        markup=False,
    )
    lines = [*reply.told["lines"], *([[], *_listed(reply.told.get("details"))] if verbose else [])]
    if verbose:
        lines.append([{"text": f"({reply.whom})", "style": "dim"}])
    for line in lines:
        text = Text()
        for piece in _listed(line):
            if isinstance(piece, dict):
                style = str(piece.get("style", ""))
                said = visible(str(piece.get("text", "")))
                text.append(pasteable(said, whom) if style == "command" else said, _STYLES.get(style, ""))
        console.print(text, soft_wrap=True)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
