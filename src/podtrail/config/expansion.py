"""References in values: `${env:NAME}`, `${env:NAME:-default}`, `${NAME}`, `${file:path}`, `${yaml:text}`; `$$` is `$`.

As in the Collector, a value that is one reference becomes what the referenced text means in YAML (a number stays a
number); inside longer text the referenced text is put in as it is; references may be nested and are expanded in what
they give, too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from podtrail.config.files import read_text
from podtrail.config.nodes import ListNode, MapNode, Node, ScalarNode
from podtrail.config.problem import ConfigError, Path, Position, Problem
from podtrail.config.reader import read_yaml
from podtrail.config.secret_keys import is_secret_key, parts_of, remember_secrets

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MARK: Final = re.compile(r"\$\$|\$\{|\}")
_DEEPEST: Final = 20
_LONGEST: Final = 1_000_000
_USE: Final = "write ${env:NAME} or ${env:NAME:-default}; $$ stands for a dollar sign"


@dataclass(frozen=True, slots=True)
class _Reference:
    """What stands between `${` and `}`: text and further references."""

    parts: tuple["str | _Reference", ...]

    @property
    def is_file(self) -> bool:
        """Whether it stands for what a file has."""
        return bool(self.parts) and str(self.parts[0]).startswith("file:")


@dataclass(frozen=True, slots=True)
class Expander:
    """Expands the references of a tree; gathers what is wrong and what is worth a warning."""

    environ: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    from_files: set[str] = field(default_factory=set)
    """Single values that `${file:…}` stood for: secrets are mounted as files."""

    def expand(self, node: Node, path: Path = (), depth: int = 0) -> Node:
        """Return the tree with every reference replaced."""
        match node:
            case ScalarNode(value=str(text)) if "$" in text:
                return self._text(node, text, path, depth)
            case ScalarNode():
                return node
            case ListNode():
                items = (self.expand(item, (*path, at), depth) for at, item in enumerate(node.items))
                return replace(node, items=tuple(items))
            case MapNode():
                entries = {
                    key: entry._replace(value=self.expand(entry.value, (*path, key), depth))
                    for key, entry in node.entries.items()
                }
                return replace(node, entries=entries)

    def _text(self, node: ScalarNode, text: str, path: Path, depth: int) -> Node:
        try:
            parts = _parse(text)
            if depth > _DEEPEST:
                raise ValueError("refers to itself, or through more than 20 references")
            if len(parts) == 1 and isinstance(parts[0], _Reference):
                return self._resolve(parts[0], node.position, path, depth)
            joined = self._join(parts, node.position, path, depth)
            if any(isinstance(part, _Reference) and part.is_file for part in parts):
                self.from_files.add(joined)
            origin = node.origin or (text if any(isinstance(part, _Reference) for part in parts) else "")
            return replace(node, value=joined, origin=origin, spelled=joined if node.spelled is not None else None)
        except ValueError as error:
            self.problems.append(Problem(node.position, path, str(error), _USE))
            return replace(node, value=None)

    def _join(self, parts: tuple["str | _Reference", ...], at: Position, path: Path, depth: int) -> str:
        texts: list[str] = []
        length = 0
        for part in parts:
            texts.append(part if isinstance(part, str) else _as_text(self._resolve(part, at, path, depth)))
            length += len(texts[-1])
            if length > _LONGEST:
                raise ValueError("expands to more than a million characters")
        return "".join(texts)

    def _resolve(self, reference: _Reference, at: Position, path: Path, depth: int) -> Node:
        """Return what a reference stands for.

        Raises:
            ValueError: the reference can't be resolved.
        """
        uri = self._join(reference.parts, at, path, depth + 1)
        scheme, colon, rest = uri.partition(":")
        if not colon or rest.startswith("-"):
            scheme, rest = "env", uri
        if scheme == "env":
            return self._variable(rest, at, path, depth)
        if scheme == "yaml":
            return self._parsed(rest, f"${{{uri}}}", at, path, depth)
        if scheme == "file":
            try:
                text = read_text(rest)
                included = read_yaml(text, rest) or ScalarNode(None, at)
            except ConfigError as error:
                self.problems.extend(_told_here(problem, at, path) for problem in error.problems)
                return ScalarNode(None, at)
            if isinstance(included, ScalarNode) and included.value is not None:
                self.from_files.update((str(included.value), text.strip()))
                remember_secrets(parts_of((str(included.value), text.strip())))
            return self.expand(replace(included, spelled=text, origin=f"${{{uri}}}"), path, depth + 1)
        raise ValueError(f"${{{uri}}} is no reference podtrail knows: env, file and yaml are")

    def _variable(self, text: str, at: Position, path: Path, depth: int) -> Node:
        name, has_default, default = text.partition(":-")
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of an environment variable")
        value = self.environ.get(name)
        origin = f"${{env:{name}}}"
        if value is not None and is_secret_key(name):
            remember_secrets(parts_of((value,)))
        if value is not None and not _is_utf8(value):
            raise ValueError(f"the environment variable {name} is not UTF-8")
        if value is None and has_default:
            value, origin = default, f"${{env:{text}}}"
            if not value:
                return ScalarNode("", at, "", origin)
        if value is None:
            hint = f"set {name}, or give a default: ${{env:{name}:-default}}"
            self.warnings.append(Problem(at, path, f"the environment variable {name} is not set: empty", hint))
            return ScalarNode(None, at, "", origin)
        return self._parsed(value, origin, at, path, depth)

    def _parsed(self, text: str, origin: str, at: Position, path: Path, depth: int) -> Node:
        """Read referenced text as YAML; what is no YAML is text, as in the Collector."""
        try:
            node = read_yaml(text, origin, at) or ScalarNode(None, at)
        except ConfigError:
            node = ScalarNode(text, at)
        spelled = node.value if isinstance(node, ScalarNode) and isinstance(node.value, str) else text
        return self.expand(replace(node, spelled=spelled, origin=origin), path, depth + 1)


def _as_text(node: Node) -> str:
    if node.spelled is not None:
        return node.spelled
    return "" if not isinstance(node, ScalarNode) or node.value is None else str(node.value)


def _parse(text: str) -> tuple[str | _Reference, ...]:
    """Split text at its references; an opening `${` that is never closed is text.

    Raises:
        ValueError: they are nested too deep.
    """
    parts, _ = _parse_until_end(text, 0, 0)
    return parts


def _parse_until_end(text: str, at: int, nested: int) -> tuple[tuple[str | _Reference, ...], int]:
    """Return the parts from `at` on and where they end; a nested run ends behind its `}`, at -1 when there is none."""
    if nested > _DEEPEST:
        raise ValueError(f"has references nested more than {_DEEPEST} deep")
    parts: list[str | _Reference] = []
    literal: list[str] = []
    while mark := _MARK.search(text, at):
        literal.append(text[at : mark.start()])
        at = mark.end()
        if mark.group() == "$$":
            literal.append("$")
        elif mark.group() == "${":
            inner, end = _parse_until_end(text, at, nested + 1) if "}" in text[at:] else ((), -1)
            if end < 0:
                literal.append("${")
            else:
                _flush(literal, parts)
                parts.append(_Reference(inner))
                at = end
        elif nested:
            _flush(literal, parts)
            return tuple(parts), at
        else:
            literal.append("}")
    if nested:
        return (), -1
    literal.append(text[at:])
    _flush(literal, parts)
    return tuple(parts), len(text)


def _flush(literal: list[str], parts: list[str | _Reference]) -> None:
    joined = "".join(literal)
    if joined:
        parts.append(joined)
    literal.clear()


def _told_here(problem: Problem, at: Position, path: Path) -> Problem:
    """Return a problem with a referenced file as a whole as one of the place that refers to it."""
    if problem.position.line:
        return problem
    return replace(problem, position=at, path=path, message=f"{problem.position}: {problem.message}")


def _is_utf8(value: str) -> bool:
    """Say whether a variable was UTF-8: Python has surrogates in the place of other bytes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
