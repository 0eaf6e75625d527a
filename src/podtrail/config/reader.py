"""Reads YAML into a tree with places, and refuses what YAML allows but nobody means.

PyYAML's C parser composes the nodes; what they mean is decided here: YAML 1.2 core types, every key once and text,
aliases bounded and never recursive, one document.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, Protocol

import yaml
from yaml.reader import ReaderError

from podtrail.config.nodes import Entry, ListNode, MapNode, Node, ScalarNode
from podtrail.config.problem import ConfigError, Path, Position, Problem, Source
from podtrail.config.scalars import read_plain

_PLAIN: Final = "plain"
_QUOTED: Final = "quoted"
_TAG: Final = "tag:yaml.org,2002:"
_TYPED_TAGS: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}
_MOST_VALUES: Final = 100_000
_DEEPEST: Final = 100
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_HINTS: Final = (
    ("mapping values are not allowed", "quote a value that contains a colon, or check the indentation"),
    ("could not find expected ':'", "is a colon missing after the key, or is the indentation off?"),
    ("did not find expected", "check the indentation and that quotes and brackets are closed"),
    ("found undefined alias", "define the anchor (&name) above the alias (*name)"),
    ("found unexpected end of stream", "a quote or bracket is not closed"),
)


class _Mark(Protocol):
    """A place as PyYAML's parsers give it, counted from 0."""

    line: int
    column: int


class _Loader(yaml.CSafeLoader):
    """Composes nodes; a tag says only whether a scalar was plain, quoted or tagged by the user."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:  # noqa: ARG002 - PyYAML's signature
        """Return a mark instead of a type: types are the business of `scalars`."""
        if kind is yaml.ScalarNode:
            return _PLAIN if implicit[0] else _QUOTED
        return _TAG + ("seq" if kind is yaml.SequenceNode else "map")


def read_yaml(text: str, name: str, at: Position | None = None) -> Node | None:
    """Return the tree of a YAML text, None when nothing is in it.

    Args:
        text: the YAML.
        name: what the source is called in reports.
        at: the place to give to every value, for text that stands in no file.

    Raises:
        ConfigError: with every problem that can be told apart.
    """
    source = Source(name, tuple(text.splitlines()))
    composed = _compose(text, source, at)
    if composed is None:
        return None
    build = _Build(source, at)
    node = build.node(composed, ())
    if build.problems:
        raise ConfigError(build.problems)
    return node


def _compose(text: str, source: Source, at: Position | None) -> yaml.Node | None:
    if _SURROGATE.search(
        text
    ):  # arguments and variables come with a surrogate in the place of a byte that is not UTF-8
        raise ConfigError([Problem(at or Position(source), (), "is not UTF-8", "give it as UTF-8")])
    try:
        loader = _Loader(text)
        try:
            _check_depth(text, source, at)
            node = loader.get_node() if loader.check_node() else None
            second = loader.get_node() if loader.check_node() else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_syntax_problem(error, source, at)]) from None
    except ReaderError as error:
        before = text[: error.position]
        place = Position(source, before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise ConfigError(
            [
                Problem(
                    at or place,
                    (),
                    "has a character that YAML does not allow",
                    "write it as an escape in double quotes",
                )
            ]
        ) from None
    if second is not None:
        place = at or _position(source, second.start_mark)
        raise ConfigError([Problem(place, (), "starts a second document; a configuration is one", "remove the ---")])
    return node


def _check_depth(text: str, source: Source, at: Position | None) -> None:
    """Refuse nesting before it is composed: PyYAML's parser composes recursively on the C stack."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                place = at or _position(source, event.start_mark)
                raise ConfigError([Problem(place, (), f"is nested more than {_DEEPEST} levels deep")])
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


_BARE_REFERENCE: Final = re.compile(r"[\[{,]\s*(\$\{[^}]*\})")
"""A reference between brackets, without quotes."""


def _syntax_problem(error: yaml.MarkedYAMLError, source: Source, at: Position | None) -> Problem:
    mark = error.problem_mark or error.context_mark
    position = at or _position(source, mark)
    what = error.problem or "can't be parsed"
    hint = next((hint for words, hint in _HINTS if words in what), "")
    line = source.lines[mark.line] if mark is not None and mark.line < len(source.lines) else ""
    context = f"{error.context} " if error.context else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        context, what, hint = "", "a tab indents this line", "indent with spaces"
    if found := _BARE_REFERENCE.search(line):
        hint = f'put it in quotes, since a brace begins a map here: "{found[1]}"'
    return Problem(position, (), f"is not YAML: {context}{what}", hint)


def _position(source: Source, mark: _Mark | None, end: _Mark | None = None) -> Position:
    if mark is None:
        return Position(source)
    width = end.column - mark.column if end is not None and end.line == mark.line else 1
    return Position(source, mark.line + 1, mark.column + 1, max(1, width))


class _Build:
    """Turns composed nodes into the tree, gathering problems on the way."""

    def __init__(self, source: Source, at: Position | None) -> None:
        self.problems: list[Problem] = []
        self._source = source
        self._at = at
        self._left = _MOST_VALUES
        self._open: set[int] = set()

    def node(self, node: yaml.Node, path: Path) -> Node:
        self._left -= 1
        place = self._place(node)
        if self._left < 0:
            raise ConfigError(
                [*self.problems, Problem(place, path, f"makes more than {_MOST_VALUES:,} values", "use fewer aliases")]
            )
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            self.problems.append(Problem(place, path, "contains itself through an alias", "write the value out"))
            return ScalarNode(None, place)
        if len(path) > _DEEPEST:  # through aliases
            raise ConfigError([*self.problems, Problem(place, path[:3], f"is nested more than {_DEEPEST} levels deep")])
        self._open.add(id(node))
        built = self._map(node, path) if isinstance(node, yaml.MappingNode) else self._list(node, path)
        self._open.discard(id(node))
        return built

    def _place(self, node: yaml.Node) -> Position:
        return self._at or _position(self._source, node.start_mark, node.end_mark)

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> ScalarNode:
        place = self._place(node)
        text: str = node.value
        if node.tag in (_QUOTED, _TAG + "str"):
            return ScalarNode(text, place)
        try:
            value = read_plain(text)
        except ValueError as error:
            self.problems.append(Problem(place, path, str(error)))
            return ScalarNode(None, place)
        expected = _TYPED_TAGS.get(node.tag.removeprefix(_TAG), ())
        if node.tag != _PLAIN and not isinstance(value, expected):
            tag = node.tag.replace(_TAG, "!!")
            self.problems.append(Problem(place, path, f"the tag {tag} can't be used here", "remove the tag"))
        return ScalarNode(value, place)

    def _list(self, node: yaml.Node, path: Path) -> ListNode:
        place = self._collection(node, path, "seq")
        items: Sequence[yaml.Node] = node.value
        return ListNode(tuple(self.node(item, (*path, at)) for at, item in enumerate(items)), place)

    def _map(self, node: yaml.Node, path: Path) -> MapNode:
        place = self._collection(node, path, "map")
        entries: dict[str, Entry] = {}
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if key_node.tag == _PLAIN and key_node.value == "<<":
                merged.append(value_node)
                continue
            key = self._key(key_node, path)
            if key is None:
                continue
            position = self._place(key_node)
            if key in entries:
                first = entries[key].key
                self.problems.append(Problem(position, (*path, key), f"is given twice, first at {first}", "keep one"))
            else:
                entries[key] = Entry(position, self.node(value_node, (*path, key)))
        for value_node in merged:
            self._merge(value_node, entries, path)
        return MapNode(entries, place)

    def _collection(self, node: yaml.Node, path: Path, kind: str) -> Position:
        place = self._place(node)
        if node.tag != _TAG + kind:
            tag = node.tag.replace(_TAG, "!!")
            self.problems.append(Problem(place, path, f"the tag {tag} can't be used here", "remove the tag"))
        return place

    def _key(self, node: yaml.Node, path: Path) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            self.problems.append(Problem(self._place(node), path, "has a list or map as a key", "keys are text"))
            return None
        key = self._scalar(node, path).value
        if not isinstance(key, str):
            hint = f'quote it: "{node.value}"'
            self.problems.append(Problem(self._place(node), path, f"has the key {node.value}, which is not text", hint))
            return None
        return key

    def _merge(self, node: yaml.Node, entries: dict[str, Entry], path: Path) -> None:
        """Fill in what `<<` brings; keys that stand in the map itself, or were merged earlier, win."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            built = self.node(source, (*path, "<<"))
            if not isinstance(built, MapNode):
                self.problems.append(
                    Problem(self._place(source), (*path, "<<"), "must merge maps", "write <<: *anchor")
                )
                continue
            for key, entry in built.entries.items():
                entries.setdefault(key, entry)
