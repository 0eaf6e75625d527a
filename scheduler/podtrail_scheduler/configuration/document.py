"""A YAML (or JSON) document as the values of JSON, each with the place where it was written.

Where Go's YAML takes a plain scalar for something else than PyYAML (`y`, `1e3`, `1:30`), it is as in Go.
"""

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

from .errors import ConfigurationError, ConfigurationProblem

_MERGE = "tag:yaml.org,2002:merge"
_ONE_LETTER = {"y": True, "Y": True, "n": False, "N": False}
_DEEPEST = 200
_NO_ANCHOR = re.compile(r"found undefined alias '([^']*)'")
_OCTAL = re.compile(r"[-+]?0o[0-7]+")
_EXPONENT_FROM = 1e21
"""Go writes larger numbers with an exponent."""
_FLOAT = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)[eE][-+]?\d+")


@dataclass(frozen=True, slots=True)
class Located:
    """A value of JSON: a scalar, a list of these or a mapping to these, with its line and column, from 1."""

    value: "bool | int | float | str | list[Located] | dict[str, Located] | None"
    line: int
    column: int
    keys: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Line and column of each key of a mapping."""

    @property
    def kind(self) -> str:
        """What JSON calls it, with the number itself where Go names it."""
        match self.value:
            case None:
                return "null"
            case bool():
                return "bool"
            case int() | float():
                return "number"
            case str():
                return "string"
            case list():
                return "array"
        return "object"

    @property
    def plain(self) -> Any:
        """The value as plain Python data, without line numbers."""
        match self.value:
            case list():
                return [each.plain for each in self.value]
            case dict():
                return {key: each.plain for key, each in self.value.items()}
        return self.value

    def at(self, path: str) -> "Located":
        """The value at a path like `profiles[0].plugins`, or the innermost that exists on the way to it."""
        here = self
        for step in path.replace("[", ".[").split("."):
            inner: Located | None = None
            if step.startswith("[") and isinstance(here.value, list):
                index = int(step[1:-1])
                inner = here.value[index] if index < len(here.value) else None
            elif isinstance(here.value, dict):
                inner = here.value.get(step)
            if inner is None:
                break
            here = inner
        return here


@dataclass(frozen=True, slots=True)
class Repeated:
    """A key that stands twice in one mapping."""

    key: str
    line: int
    column: int


def is_plain_text(text: str) -> bool:
    """Whether Go's YAML, too, takes a plain scalar for the text that PyYAML takes it for."""
    return text not in _ONE_LETTER and not _FLOAT.fullmatch(text)


def parse(text: str, file: str) -> tuple[Located, list[Repeated]]:
    """The first document and the keys that are repeated in it; kube-scheduler reads no further.

    Raises:
        ConfigurationError: it is not YAML.
    """
    if text.lstrip().startswith("{"):
        _check_json(text, file)
    with _refusing(file):
        return _located(_first(text), text, file, strict_merges=True)


def _first(text: str) -> yaml.Node | None:
    """The first document, or None.

    Raises:
        YAMLError: in the words of the library in C, which are those of Go's, if there is one.
    """
    try:
        return _first_with(yaml.SafeLoader, text)
    except yaml.composer.ComposerError as error:
        if found := _NO_ANCHOR.search(str(error.problem)):
            error.problem = f"unknown anchor '{found[1]}' referenced"
        raise
    except yaml.MarkedYAMLError:
        if hasattr(yaml, "CSafeLoader") and (node := _first_with(yaml.CSafeLoader, text)) is not None:
            return node
        raise


def _first_with(make: Any, text: str) -> yaml.Node | None:
    loader = make(text)
    try:
        node: yaml.Node | None = loader.get_node() if loader.check_node() else None
        return node
    finally:
        loader.dispose()


def _check_json(text: str, file: str) -> None:
    """Refuse what stands behind JSON's value: JSON has one document."""
    try:
        _, end = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return  # a flow mapping of YAML, or no YAML either
    end += len(text) - len(text.lstrip())
    if more := text[end:].lstrip():
        before = text[: len(text) - len(more)]
        message = f"couldn't get version/kind; json parse error: invalid character {more[0]!r} after top-level value"
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise ConfigurationError(message, [ConfigurationProblem(message, "", line, column)], file)


def parse_all(text: str, file: str) -> list[tuple[Located, list[Repeated]]]:
    """The documents of a file that may be large, each as `parse` gives it; read in C where there is a library for it.

    Raises:
        ConfigurationError: it is not YAML.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with _refusing(file):
        _check_depth(text, loader)
        nodes = list(yaml.compose_all(text, Loader=loader))
        return [_located(node, text, file) for node in nodes]


def _check_depth(text: str, loader: Any) -> None:
    """Raises RecursionError where the library in C would overflow its stack, which ends the process."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise RecursionError
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


@contextmanager
def _refusing(file: str) -> Iterator[None]:
    """Turns what PyYAML raises into what is to be said."""
    try:
        yield
    except RecursionError:
        message = "yaml: exceeded max depth"
        raise ConfigurationError(message, [ConfigurationProblem(message)], file) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        problem = f"yaml: {error.problem or error.context}"
        message = f"yaml: {_line_in_go(error)}{error.problem or error.context}"
        raise ConfigurationError(message, [ConfigurationProblem(problem, "", line, column)], file) from error
    except yaml.reader.ReaderError as error:
        message = f"yaml: {error.reason.replace('special', 'control')}"
        raise ConfigurationError(message, [ConfigurationProblem(message)], file) from error


def _line_in_go(error: yaml.MarkedYAMLError) -> str:
    """The line that Go's YAML names: its parser counts from 0, its scanner from 1, and the first is not named."""
    mark = error.problem_mark
    if mark is None or isinstance(error, yaml.composer.ComposerError):
        return ""
    return f"line {mark.line + isinstance(error, yaml.scanner.ScannerError)}: " if mark.line else ""


def _located(
    node: yaml.Node | None, text: str, file: str, *, strict_merges: bool = False
) -> tuple[Located, list[Repeated]]:
    if node is None:
        return Located(None, 1, 1), []
    reader = _Reader(text, file, strict_merges=strict_merges)
    return reader.read(node, ()), reader.repeated


class _Reader:
    """Turns composed nodes into values; scalars by YAML's core types."""

    def __init__(self, text: str, file: str, *, strict_merges: bool) -> None:
        """With `strict_merges`, a key that a merge brings as well is repeated, as in Go's strict decoding."""
        self.repeated: list[Repeated] = []
        self._strict_merges = strict_merges
        self._text = text
        self._known: dict[int, Located] = {}
        self._file = file
        self._scalars = yaml.constructor.SafeConstructor()

    def read(self, node: yaml.Node, inside: tuple[int, ...]) -> Located:
        if id(node) not in self._known:
            self._known[id(node)] = self._value(node, inside)
        return self._known[id(node)]

    def _value(self, node: yaml.Node, inside: tuple[int, ...]) -> Located:
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        if id(node) in inside:
            self._refuse(f"yaml: anchor '{self._anchor(node)}' value contains itself", node)
        if isinstance(node, yaml.SequenceNode):
            return Located([self.read(each, (*inside, id(node))) for each in node.value], line, column)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, (*inside, id(node)))
        assert isinstance(node, yaml.ScalarNode)
        return Located(self._scalar(node), line, column)

    def _mapping(self, node: yaml.MappingNode, inside: tuple[int, ...]) -> Located:
        own: dict[str, Located] = {}
        keys: dict[str, tuple[int, int]] = {}
        merged: dict[str, Located] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for source in reversed(sources) if self._strict_merges else sources:
                    read = self.read(source, inside).value
                    if not isinstance(read, dict):
                        self._refuse("yaml: map merge requires map or sequence of maps as the value", source)
                        continue
                    if self._strict_merges:
                        known = {**merged, **own}
                        self.repeated += [
                            Repeated(name, at.line, at.column) for name, at in read.items() if name in known
                        ]
                    merged = {**read, **merged}
                continue
            if not isinstance(key, yaml.ScalarNode):
                self._refuse("yaml: invalid map key", key)
                continue
            scalar = self._scalar(key)
            name = scalar if isinstance(scalar, str) else str(key.value)
            place = (key.start_mark.line + 1, key.start_mark.column + 1)
            if name in own:
                self.repeated.append(Repeated(name, *place))
            elif self._strict_merges and name in merged:
                self.repeated.append(Repeated(name, value.start_mark.line + 1, value.start_mark.column + 1))
            own[name] = self.read(value, inside)
            keys[name] = place
        return Located({**merged, **own}, node.start_mark.line + 1, node.start_mark.column + 1, keys)

    def _scalar(self, node: yaml.ScalarNode) -> bool | int | float | str | None:
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if node.style is None and kind in ("str", "int", "float"):
            if node.value in _ONE_LETTER:
                return _ONE_LETTER[node.value]
            if _FLOAT.fullmatch(node.value):
                return self._number(float(node.value), node)
            if _OCTAL.fullmatch(node.value):
                return int(node.value.replace("o", ""), 8)
            if ":" in node.value:
                return str(node.value)
        if kind == "binary":
            return self._binary(node)
        make: Mapping[str, Any] = {
            "null": self._scalars.construct_yaml_null,
            "bool": self._scalars.construct_yaml_bool,
            "int": self._scalars.construct_yaml_int,
            "float": self._scalars.construct_yaml_float,
        }
        if kind not in make:
            return str(node.value)
        try:
            scalar: bool | int | float | None = make[kind](node)
        except (ValueError, KeyError):  # a tag that does not fit, such as !!bool 7
            return str(node.value)
        return self._number(scalar, node) if isinstance(scalar, float) else scalar

    def _number(self, number: float, node: yaml.ScalarNode) -> int | float:
        """The number as Go writes it in JSON: a whole one without a fraction."""
        if not math.isfinite(number):
            name = "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
            self._refuse(f"json: unsupported value: {name}", node)
        return int(number) if number.is_integer() and abs(number) < _EXPONENT_FROM else number

    def _binary(self, node: yaml.ScalarNode) -> str:
        try:
            return base64.b64decode(node.value, validate=True).decode("utf-8", "replace")
        except ValueError:
            self._refuse("yaml: !!binary value contains invalid base64 data", node)
            raise

    def _anchor(self, node: yaml.Node) -> str:
        for event in yaml.parse(self._text, Loader=yaml.SafeLoader):
            place = event.start_mark
            if isinstance(event, yaml.CollectionStartEvent) and place and place.index == node.start_mark.index:
                return str(event.anchor)
        return ""

    def _refuse(self, message: str, node: yaml.Node) -> None:
        problem = ConfigurationProblem(message, "", node.start_mark.line + 1, node.start_mark.column + 1)
        raise ConfigurationError(message, [problem], self._file)
