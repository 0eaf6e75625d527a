"""Finds a configuration inside of another file: a Kubernetes manifest, a custom resource, values of a Helm chart."""

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from podtrail.config.problem import ConfigError, Path, Position, Problem, Source

_SECTIONS: Final = frozenset({"receivers", "processors", "exporters", "connectors", "extensions", "service"})
_LEAST: Final = 2
"""Sections by which a map is known as a configuration."""
_TEXT: Final = re.compile(r"\b(receivers|exporters)[\"']?\s*:")
_MOST_NODES: Final = 20_000
_LONGEST: Final = 1 << 20


def refuse_manifest(text: str, name: str) -> None:
    """Say where a configuration stands in a file that is none itself.

    Raises:
        ConfigError: there is one, or several, below the top of the file.
    """
    if len(text) > _LONGEST or not _TEXT.search(text):
        return
    source = Source(name, tuple(text.splitlines()))
    problems: list[Problem] = []
    try:
        for document in yaml.compose_all(text, yaml.CSafeLoader):
            if isinstance(document, yaml.MappingNode):
                problems += _in_document(document, source)
    except yaml.YAMLError:
        return  # its own problem says where
    if problems:
        raise ConfigError(problems)


def _in_document(document: yaml.MappingNode, source: Source) -> Iterator[Problem]:
    keys = _entries(document)
    if _SECTIONS & keys.keys():
        return
    what = _kind(keys)
    for path, key in _configurations(document):
        place = "::".join(map(str, path))
        position = Position(source, key.start_mark.line + 1, key.start_mark.column + 1)
        yield Problem(
            position,
            path,
            f"the configuration stands here: the file is {what}",
            f"give what stands under {place} as a file of its own",
        )


def _kind(keys: dict[str, yaml.Node]) -> str:
    kind = keys.get("kind")
    if "apiVersion" in keys and isinstance(kind, yaml.ScalarNode):
        return f"a Kubernetes {kind.value}" if kind.value in ("ConfigMap", "Secret") else f"a manifest of {kind.value}"
    return "no configuration itself, as values of a Helm chart are not"


def _configurations(document: yaml.MappingNode) -> Iterator[tuple[Path, yaml.Node]]:
    """Yield the places of configurations, each with the key that it stands under."""
    waiting: list[tuple[Path, yaml.Node, yaml.Node]] = [((), document, document)]
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        path, key, node = waiting.pop(0)
        if path and _is_configuration(node):
            yield path, key
        elif isinstance(node, yaml.MappingNode):
            waiting += [((*path, str(name.value)), name, value) for name, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += [((*path, at), value, value) for at, value in enumerate(node.value)]


def _is_configuration(node: yaml.Node) -> bool:
    if isinstance(node, yaml.MappingNode):
        return len(_SECTIONS & _entries(node).keys()) >= _LEAST
    if not isinstance(node, yaml.ScalarNode) or not _TEXT.search(node.value):
        return False
    try:
        inner: Any = yaml.compose(node.value, yaml.CSafeLoader)
    except yaml.YAMLError:  # perhaps a template
        return len(set(re.findall(r"^(\w+):", node.value, re.MULTILINE)) & _SECTIONS) >= _LEAST
    return isinstance(inner, yaml.MappingNode) and len(_SECTIONS & _entries(inner).keys()) >= _LEAST


def _entries(node: yaml.MappingNode) -> dict[str, yaml.Node]:
    return {name.value: value for name, value in node.value if isinstance(name.value, str)}
