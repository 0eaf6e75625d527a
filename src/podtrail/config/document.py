"""A whole configuration: its sources read, merged and expanded, every value with its place."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from podtrail.config.expansion import Expander
from podtrail.config.files import read_text
from podtrail.config.manifests import refuse_manifest
from podtrail.config.nodes import Entry, ListNode, MapNode, Node, ScalarNode, merge, plain
from podtrail.config.problem import ConfigError, Position, Problem, Source
from podtrail.config.reader import read_yaml

_SCHEME: Final = re.compile(r"(file|env|yaml|https?):", re.IGNORECASE)


class DocumentKind(NamedTuple):
    """What a document is called, and what stands in it, for messages."""

    name: str
    keys: str


_CONFIGURATION: Final = DocumentKind("a configuration", "receivers, processors, exporters and service")


@dataclass(frozen=True, slots=True)
class Document:
    """A configuration after merging and expansion, before anybody has asked what it means."""

    root: MapNode
    warnings: tuple[Problem, ...] = ()
    folders: tuple[Path, ...] = ()
    """Where its files lie."""
    from_files: frozenset[str] = frozenset()
    """Single values that came from `${file:…}`, which may be secrets."""

    @classmethod
    def load(
        cls,
        sources: Sequence[str],
        sets: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        kind: DocumentKind | None = None,
    ) -> "Document":
        """Read and merge sources as `--config` names them, later ones over earlier ones, then `--set` assignments.

        Args:
            sources: paths, `file:path`, `env:NAME` (its value is YAML) or `yaml:a::b: value`.
            sets: `a.b.c=value` or `a::b::c=value`; the value is YAML.
            environ: the environment; the process's own when None.
            kind: what the sources hold, for messages; a configuration when None.

        Raises:
            ConfigError: with all problems of all sources.
        """
        variables = os.environ if environ is None else environ
        problems: list[Problem] = []
        trees: list[Node] = []
        if not sources and not sets:
            problems.append(Problem(Position(Source("configuration")), (), "is not given", "use --config PATH"))
        for read, texts in ((_read_source, sources), (_read_assignment, sets)):
            for text in texts:
                try:
                    trees.append(read(text, variables, kind or _CONFIGURATION))
                except ConfigError as error:
                    problems.extend(error.problems)
        if problems:
            raise ConfigError(problems)
        folders = dict.fromkeys(file.absolute().parent for file in source_files(sources))
        return replace(cls._finish(trees, variables), folders=tuple(folders))

    @classmethod
    def from_text(cls, text: str, name: str = "configuration", environ: Mapping[str, str] | None = None) -> "Document":
        """Read a configuration from YAML text; `name` stands for the file in reports.

        Raises:
            ConfigError: with every problem that can be told apart.
        """
        return cls._finish(
            [_as_map(read_yaml(text, name), name, _CONFIGURATION)], os.environ if environ is None else environ
        )

    @classmethod
    def from_mapping(
        cls, mapping: Mapping[str, Any], name: str = "configuration", environ: Mapping[str, str] | None = None
    ) -> "Document":
        """Take a configuration as Python values: mappings, sequences and scalars.

        Raises:
            ConfigError: a value is none that YAML has, or a reference (`${env:…}`) can't be resolved.
        """
        problems: list[Problem] = []
        tree = _from_python(mapping, Position(Source(name)), (), problems)
        if problems:
            raise ConfigError(problems)
        return cls._finish([tree], os.environ if environ is None else environ)

    @classmethod
    def _finish(cls, trees: Sequence[Node], environ: Mapping[str, str]) -> "Document":
        merged = trees[0]
        for tree in trees[1:]:
            merged = merge(merged, tree)
        expander = Expander(environ)
        root = expander.expand(merged)
        if expander.problems:
            raise ConfigError(expander.problems, expander.warnings)
        assert isinstance(root, MapNode)
        return cls(root, tuple(expander.warnings), from_files=frozenset(expander.from_files))

    def plain(self) -> dict[str, Any]:
        """Return the configuration as dicts, lists and scalars."""
        values: dict[str, Any] = plain(self.root)
        return values


def _split(source: str) -> tuple[str, str]:
    """Return a source's scheme and what stands behind it."""
    scheme = _SCHEME.match(source)
    return (scheme.group(1).lower(), source[scheme.end() :]) if scheme else ("file", source)


def source_files(sources: Sequence[str]) -> list[Path]:
    """Return the files among the sources of a configuration."""
    return [Path(rest) for scheme, rest in map(_split, sources) if scheme == "file"]


def _read_source(text: str, environ: Mapping[str, str], kind: DocumentKind) -> MapNode:
    scheme, rest = _split(text)
    match scheme:
        case "file":
            written = read_text(rest)
            if kind is _CONFIGURATION:
                refuse_manifest(written, rest)
            return _as_map(read_yaml(written, rest), rest, kind)
        case "env":
            if rest not in environ:
                raise _error(text, "the environment variable is not set", f"set {rest} to the configuration's YAML")
            return _as_map(read_yaml(environ[rest], text), text, kind)
        case "yaml":
            return _unflatten(_as_map(read_yaml(rest, "yaml:"), "yaml:", kind))
        case _:
            raise _error(text, "is not read over the network", "fetch the file and give its path")


def _read_assignment(text: str, _environ: Mapping[str, str], _kind: DocumentKind) -> MapNode:
    name = f"--set={text}"
    key, equals, value = text.partition("=")
    parts = key.split("::" if "::" in key else ".")
    if not equals or not all(parts):
        raise _error(name, "is not key=value", "write for example --set=processors.batch.timeout=2s")
    at = Position(Source(name))
    node: Node = read_yaml(value, name, at) or ScalarNode(None, at)
    for part in reversed(parts):
        node = MapNode({part: Entry(at, node)}, at)
    assert isinstance(node, MapNode)
    return node


def _unflatten(tree: MapNode) -> MapNode:
    """Open keys such as `processors::batch::timeout` up into maps."""
    merged: Node = MapNode({}, tree.position)
    for key, entry in tree.entries.items():
        node = entry.value
        for part in reversed(key.split("::")):
            node = MapNode({part: Entry(entry.key, node)}, entry.key)
        merged = merge(merged, node)
    assert isinstance(merged, MapNode)
    return merged


def _as_map(node: Node | None, name: str, kind: DocumentKind) -> MapNode:
    if node is None or (isinstance(node, ScalarNode) and node.value is None):
        raise _error(name, "is empty", f"{kind.name} has {kind.keys}")
    if not isinstance(node, MapNode):
        raise ConfigError([Problem(node.position, (), f"is not a map of {kind.keys}")])
    return node


def _from_python(value: Any, at: Position, path: tuple[str | int, ...], problems: list[Problem]) -> Node:
    match value:
        case Mapping():
            entries = {}
            for key, below in value.items():
                if isinstance(key, str):
                    entries[key] = Entry(at, _from_python(below, at, (*path, key), problems))
                else:
                    problems.append(Problem(at, path, f"has the key {key!r}, which is not text"))
            return MapNode(entries, at)
        case list() | tuple():
            return ListNode(tuple(_from_python(v, at, (*path, i), problems) for i, v in enumerate(value)), at)
        case str() | int() | float() | None:
            return ScalarNode(value, at)
        case _:
            problems.append(Problem(at, path, f"is a {type(value).__name__}, which YAML does not have"))
            return ScalarNode(None, at)


def _error(name: str, message: str, hint: str) -> ConfigError:
    return ConfigError([Problem(Position(Source(name)), (), message, hint)])
