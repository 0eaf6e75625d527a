"""`podtrail why`: why a Pod waits, or what became of a trace, in plain words."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import click

from podtrail.cli.options import config_options, replayed, reporting
from podtrail.cli.reading import show_skipped
from podtrail.cli.report import show_warnings
from podtrail.cli.why_sources import AskedFiles, AskedSchedulerFiles, NobodyThere, WhyReply, ask_page
from podtrail.config import printable
from podtrail.story import WhyQuestion, shell_word, visible

F = TypeVar("F", bound=Callable[..., Any])

_TYPED: Final = f"{__name__}.typed"
_MOST_COMMANDS: Final = 20

_STYLES: Final[Mapping[str, str]] = {
    "strong": "bold",
    "bad": "red",
    "held": "yellow",
    "good": "green",
    "dim": "dim",
    "command": "bold",
}


def checked_endpoint(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """Return the address of a page.

    Raises:
        BadParameter: it is none.
    """
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
        usable = usable and parts.username is None and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise click.BadParameter(f"{printable(value)} is no address of a page, such as http://localhost:15927")
    return value


def _options(command: F) -> F:
    for option in (
        click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours."),
        click.option("--json", "as_json", is_flag=True, help="Print the answer and its story as one JSON object."),
        click.option("-v", "--verbose", is_flag=True, help="More: attempts compared, reasons and votes in full."),
        config_options(required=False),
        click.option(
            "--from", "sources", multiple=True, metavar="FILE...", type=click.Path(path_type=Path), help=_FROM_HELP
        ),
        click.option(
            "--endpoint",
            metavar="URL",
            default="http://localhost:15927",
            show_default=True,
            callback=checked_endpoint,
            help="The running page to ask.",
        ),
        click.option("--log", "logs", multiple=True, metavar="FILE", type=_FILE, help=_LOG_HELP),
        click.option("--watch", "watches", multiple=True, metavar="FILE", type=_FILE, help=_WATCH_HELP),
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


@click.group("why")
def command() -> None:
    """Say why a Pod waits, or what became of a trace, in plain words.

    A running page is asked, or files. Exit code 0: answered; 1: not known, or nobody to ask; 2: usage.
    """


class _Remembering(click.Command):
    """Keeps what was typed, for a command to type next."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_TYPED] = tuple(args)
        return super().parse_args(ctx, args)


@command.command("pod", cls=_Remembering)
@click.argument("pod", metavar="[NAMESPACE/]NAME|UID")
@click.option("-n", "--namespace", help="The Pod's namespace, where several have one of that name.")
@click.option("--attempt", type=click.IntRange(1, 99_999_999), help="Tell of one attempt, by its number.")
@_options
def pod(pod: str, namespace: str | None, attempt: int | None, **options: Any) -> None:
    """Say why a Pod waits, or how it got its node.

    The Pod is NAMESPACE/NAME, a NAME that only one namespace has (or with -n), or a uid.
    """
    if namespace is not None and "/" in pod:
        raise click.UsageError("the namespace is given twice: NAMESPACE/NAME and -n")
    _tell(
        _question({"pod": f"{namespace}/{pod}" if namespace is not None else pod, "attempt": str(attempt or "")}),
        **options,
    )


@command.command("trace")
@click.argument("trace", metavar="TRACE_ID")
@_options
def trace(trace: str, **options: Any) -> None:
    """Say what became of a trace: each policy's vote with span and value, and the traces it is linked with."""
    _tell(_question({"trace": trace}), **options)


def _question(query: Mapping[str, str]) -> WhyQuestion:
    try:
        return WhyQuestion.read(query)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _tell(
    question: WhyQuestion,
    *,
    more: tuple[Path, ...],
    endpoint: str,
    sources: tuple[Path, ...],
    logs: tuple[Path, ...],
    watches: tuple[Path, ...],
    config: tuple[str, ...],
    assignments: tuple[str, ...],
    gates: frozenset[str],
    verbose: bool,
    as_json: bool,
    color: str,
) -> None:
    if not sources and (more or config or assignments or gates):
        raise click.UsageError(f"{'more files' if more else '--config'} goes with --from")
    left_behind = bool(logs or watches)
    if sources and left_behind:
        raise click.UsageError("either --from, or --log and --watch: podtrail reconstruct makes a recording of these")
    try:
        if left_behind:
            reply = AskedSchedulerFiles(logs, watches).ask(question)
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
        _print(reply, verbose=verbose, color=color)


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
    skipped = 0

    def skip(what: str) -> None:
        nonlocal skipped
        skipped += 1
        show_skipped(what, skipped)

    return AskedFiles(paths, settings, gates, skip)


def _problem(question: WhyQuestion, reply: WhyReply, *, from_files: bool) -> str:
    said = f"{reply.told['error']} ({reply.whom})"
    if _namespaces(reply):
        return f"{said}. Ask for one of them:"
    if question.pod and from_files and question.attempt is None:
        return f"{said}. A Pod that was never tried, such as a gated one, leaves no span: ask the running page."
    return said


def _commands(reply: WhyReply) -> list[str]:
    """Return what to type where the name is that of several Pods."""
    typed = click.get_current_context().meta.get(_TYPED, ())
    namespaces = _namespaces(reply)
    commands = [
        " ".join(map(shell_word, ("podtrail", "why", "pod", "-n", namespace, *typed)))
        for namespace in namespaces[:_MOST_COMMANDS]
    ]
    more = len(namespaces) - len(commands)
    return [*commands, f"and {more:,} more"] if more else commands


def _namespaces(reply: WhyReply) -> list[str]:
    return [each for each in _listed(reply.told.get("namespaces")) if isinstance(each, str)]


def _print(reply: WhyReply, *, verbose: bool, color: str) -> None:
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
                text.append(visible(str(piece.get("text", ""))), _STYLES.get(str(piece.get("style", "")), ""))
        console.print(text, soft_wrap=True)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
