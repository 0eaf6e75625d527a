"""The tree of a configuration, every value with its place."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from podtrail.config.problem import Path, Position

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A single value."""

    value: Scalar
    position: Position
    spelled: str | None = None
    """The text it was read from, when it came whole out of a reference such as `${env:PORT}`."""
    origin: str = ""
    """That reference."""


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list."""

    items: tuple["Node", ...]
    position: Position
    spelled: str | None = None
    origin: str = ""


class Entry(NamedTuple):
    """A key's place and its value."""

    key: Position
    value: "Node"


@dataclass(frozen=True, slots=True)
class MapNode:
    """A map, in the order in which it was written."""

    entries: Mapping[str, Entry]
    position: Position
    spelled: str | None = None
    origin: str = ""

    def get(self, key: str) -> "Node | None":
        """Return the value of a key, None when there is none."""
        entry = self.entries.get(key)
        return None if entry is None else entry.value


Node = ScalarNode | ListNode | MapNode


def plain(node: Node) -> Any:
    """Return the value as dicts, lists and scalars."""
    match node:
        case ScalarNode():
            return node.value
        case ListNode():
            return [plain(item) for item in node.items]
        case MapNode():
            return {key: plain(entry.value) for key, entry in node.entries.items()}


def child(node: Node, key: str | int) -> Node | None:
    """Return what stands under a key or index, None when nothing does."""
    if isinstance(node, MapNode) and isinstance(key, str):
        return node.get(key)
    if isinstance(node, ListNode) and isinstance(key, int) and 0 <= key < len(node.items):
        return node.items[key]
    return None


def descend(node: Node, path: Path) -> Node | None:
    """Return what stands at a path, None when nothing does."""
    found: Node | None = node
    for key in path:
        found = child(found, key) if found is not None else None
    return found


def item_path(node: Node, path: Path, value: Scalar) -> Path:
    """Return the path of an item of the list at a path, which has it."""
    listed = descend(node, path)
    assert isinstance(listed, ListNode), "the item was read from it"
    return (*path, [item.value if isinstance(item, ScalarNode) else None for item in listed.items].index(value))


def place_of(node: Node, path: Path, *, value: bool = False) -> Position:
    """Return the position of the key (or with `value` the value) at a path, or of the nearest thing above it."""
    position = node.position
    for key in path:
        found = child(node, key)
        if found is None:
            return position
        position = node.entries[str(key)].key if isinstance(node, MapNode) else found.position
        node = found
    return node.position if value and isinstance(node, ScalarNode) and node.value is not None else position


def put(node: Node, path: Path, value: Node) -> Node:
    """Return the tree with the value at an existing path exchanged."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(node, MapNode) and isinstance(key, str):
        entry = node.entries[key]
        return replace(node, entries={**node.entries, key: entry._replace(value=put(entry.value, rest, value))})
    assert isinstance(node, ListNode)
    assert isinstance(key, int)
    items = (put(item, rest, value) if at == key else item for at, item in enumerate(node.items))
    return replace(node, items=tuple(items))


def merge(below: Node, above: Node) -> Node:
    """Lay one tree over another as the Collector does: maps merge, anything else is replaced."""
    if not (isinstance(below, MapNode) and isinstance(above, MapNode)):
        return above
    entries = dict(below.entries)
    for key, entry in above.entries.items():
        old = entries.get(key)
        entries[key] = entry if old is None else entry._replace(value=merge(old.value, entry.value))
    return replace(below, entries=entries)
