"""What is wrong with a configuration, where, and what would be right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from podtrail.config.excerpt import shown
from podtrail.config.printable import printable
from podtrail.config.secret_keys import redacted

Path = tuple[str | int, ...]
"""Keys and list indexes from the root of a configuration."""

_WIDEST_EXCERPT = 160


@dataclass(frozen=True, slots=True)
class Source:
    """Where a part of a configuration comes from."""

    name: str
    """A file's path as the user gave it, or `--set`, `env:NAME`, …"""
    lines: tuple[str, ...] = ()
    """Its text, for excerpts; empty when there is nothing to show."""


class Position(NamedTuple):
    """A place in a source. Lines and columns count from 1; line 0 means the source as a whole."""

    source: Source
    line: int = 0
    column: int = 0
    width: int = 1

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}" if self.line else self.source.name


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, or in a list of warnings: hardly meant."""

    position: Position
    path: Path
    message: str
    hint: str = ""
    """What would be right; may be empty."""
    secret: bool = False
    """The line holds a secret and is not shown."""

    @property
    def headline(self) -> str:
        """`file:line:col: path::to::key: what`, one line."""
        path = "::".join(redacted(str(part)) for part in self.path)
        return printable(": ".join(part for part in (str(self.position), path, redacted(self.message)) if part))

    @property
    def details(self) -> tuple[str, ...]:
        """The line in question, without secrets, with a caret under it, then the hint."""
        hint = (f"  {printable(redacted(self.hint))}",) if self.hint else ()
        return (*self._excerpt(), *hint)

    def _excerpt(self) -> tuple[str, ...]:
        _, line, column, width = self.position
        if self.secret or not 0 < line <= len(self.position.source.lines):
            return ()
        told = shown(self.position.source.lines, line, column)
        if told is None:
            return ()
        before = printable(told[0][: told[1] - 1])
        text = printable(told[0])
        if len(text) > _WIDEST_EXCERPT:
            return ()
        number = f"{line:5d}"
        carets = "^" * max(1, min(width, len(text) - len(before)))
        return (f"{number} | {text}", f"{'':5s} | {' ' * len(before)}{carets}")

    def __str__(self) -> str:
        return "\n".join((self.headline, *self.details))


class ConfigError(Exception):
    """A configuration can't be used. Its text is the whole report: warnings, then every problem, in order of place."""

    def __init__(self, problems: Iterable[Problem], warnings: Iterable[Problem] = ()) -> None:
        self.problems = in_order(problems)
        self.warnings = in_order(warnings)
        """What is hardly meant, and may be why."""
        super().__init__("\n".join((*(f"warning: {warning}" for warning in self.warnings), *map(str, self.problems))))


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return problems by source (as they first came up), line and column, each once."""
    unique = list(dict.fromkeys(problems))
    sources = list(dict.fromkeys(problem.position.source.name for problem in unique))
    return tuple(
        sorted(unique, key=lambda p: (sources.index(p.position.source.name), p.position.line, p.position.column))
    )


def did_you_mean(word: str, known: Sequence[str], what: str = "known") -> str:
    """Return a hint for a word that is not among the known ones: the nearest one, and all of them."""
    close = get_close_matches(word.lower(), [name.lower() for name in known], n=1, cutoff=0.6)
    nearest = next((name for name in known if close and name.lower() == close[0]), None)
    listed = f"{what}: {', '.join(known)}" if known else ""
    if nearest is None:
        return listed
    return f"did you mean {nearest}? {listed}"
