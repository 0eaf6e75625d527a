"""What was typed behind `kubectl podtrail`: which cluster, which podtrail, and podtrail's own command."""

import re
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

PAGE_PORT: Final = 15927
_OF_KUBECTL: Final = ("--context", "--kubeconfig", "--as", "--as-group", "--user", "--server", "--request-timeout")
_OF_PLUGIN: Final = ("--pod", "--podtrail-namespace", "--selector", "-l", "--page-port")
_ELSEWHERE: Final = frozenset({"--endpoint", "--from", "--log", "--watch", "--help", "-h", "--version"})
_ASK: Final = frozenset({("why",), ("report",), ("top",), ("tap",), ("support-bundle",)})
"""Commands whose `--endpoint` is that of a page."""
_TRACE_ID: Final = re.compile("[0-9a-fA-F]{32}")


class TypedCommand(NamedTuple):
    """A command line, taken apart."""

    flags: tuple[str, ...]
    """kubectl's own options."""
    options: dict[str, str]
    """The plugin's, by their long names."""
    path: tuple[str, ...]
    """podtrail's command: `why`, `pod`."""
    rest: tuple[str, ...]
    """What is behind it."""
    asks: bool
    """It asks a running page that nobody has named."""
    takes_namespace: bool
    """It has `-n` itself: the namespace of a Pod."""
    names_namespace: bool
    """That was typed."""
    pod: str
    """The Pod that is asked for, as it was typed."""


def read_arguments(typed: Sequence[str], main: click.Group) -> TypedCommand:
    """Take a command line apart. `why NAME` is `why pod NAME`.

    Raises:
        UsageError: an option lacks its value.
    """
    flags, options, own = _sorted(typed)
    words, rest, command = _resolved(own, main)
    has = {parameter.name for parameter in command.params}
    values = _values(command, rest, main.context_settings)
    elsewhere = _ELSEWHERE - {"--from"} if words[:1] == ("report",) else _ELSEWHERE  # there it is a time
    named = any(word.partition("=")[0] in elsewhere for word in rest)
    files = words[:1] == ("report",) and any(not word.startswith("-") and Path(word).is_file() for word in rest[1:])
    return TypedCommand(
        flags=tuple(flags),
        options=options,
        path=words,
        rest=rest,
        asks=words[:1] in _ASK and "endpoint" in has and not named and not files,
        takes_namespace="namespace" in has,
        names_namespace=bool(values.get("namespace")),
        pod=str(values.get("pod") or ""),
    )


def _values(command: click.Command, rest: Sequence[str], settings: MutableMapping[str, Any]) -> dict[str, Any]:
    """Return what was typed for which parameter; nothing where the command will refuse it.

    `settings` are those of the context in which the command runs: it keeps the help option that it is first asked for.
    """
    try:
        return dict(command.make_parser(click.Context(command, **settings)).parse_args(list(rest))[0])
    except click.UsageError:
        return {}


def _sorted(typed: Sequence[str]) -> tuple[list[str], dict[str, str], list[str]]:
    flags: list[str] = []
    options: dict[str, str] = {}
    own: list[str] = []
    words = iter(typed)
    for word in words:
        if word == "--":
            own += [word, *words]
            break
        name, equals, value = word.partition("=")
        if name not in (*_OF_KUBECTL, *_OF_PLUGIN):
            own.append(word)
            continue
        if not equals:
            value = next(words, "")
        if not value:
            raise click.UsageError(f"{name} has no value")
        if name in _OF_KUBECTL:
            flags += [name, value]
        else:
            options["--selector" if name == "-l" else name] = value
    return flags, options, own


def _resolved(own: Sequence[str], main: click.Group) -> tuple[tuple[str, ...], tuple[str, ...], click.Command]:
    context = click.Context(main)
    command: click.Command = main
    words: list[str] = []
    rest = list(own)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        below = command.get_command(context, rest[0])
        if below is None:
            if words != ["why"]:
                break
            rest.insert(0, "trace" if _TRACE_ID.fullmatch(rest[0]) else "pod")
            continue
        words.append(rest.pop(0))
        command = below
    return tuple(words), tuple(rest), command
