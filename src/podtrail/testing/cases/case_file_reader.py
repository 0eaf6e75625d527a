"""Reads parts of a test file; what is wrong becomes a problem at its very line and column."""

from pathlib import Path as FilePath
from typing import TypeVar

from podtrail.config import Position, Problem
from podtrail.config.model import Model
from podtrail.config.nodes import ListNode, MapNode, Node, ScalarNode, place_of
from podtrail.config.problem import Path, did_you_mean
from podtrail.config.validation import Validator
from podtrail.testing.cases.text_reader import Misread

M = TypeVar("M", bound=Model)


class CaseFileReader:
    """A test file while it is read."""

    def __init__(self, root: MapNode, path: FilePath) -> None:
        self.root = root
        self.folder = path.parent
        """What paths in the file are relative to."""
        self._check = Validator(root)

    @property
    def problems(self) -> list[Problem]:
        """What was found wrong so far; nothing in a test is hardly meant and right nonetheless."""
        return self._check.problems + self._check.warnings

    def problem(self, path: Path, message: str, hint: str = "", *, value: bool = False) -> None:
        """Note a problem at the key (or with `value` the value) of a path."""
        self._check.problem(path, message, hint, value=value)

    def misread(self, error: Misread, path: Path, node: ScalarNode | None = None) -> None:
        """Note what is wrong with a text: the value `node` at the path, or else its key."""
        place = node.position if node is not None else place_of(self.root, path)
        text = node.value if node is not None else str(path[-1])
        inside = _inside(place, str(text), error)
        self._check.problems.append(Problem(inside, path, error.message, error.hint))

    def model(self, model: type[M], path: Path) -> M | None:
        """Return the model of what stands at a path, None when it is wrong."""
        return self._check.read(model, path)

    def entries(self, node: Node | None, path: Path, what: str) -> MapNode | None:
        """Return a node if it is a map, else note that it must be `what`."""
        if isinstance(node, MapNode):
            return node
        self.problem(path, f"must be {what}", value=True)
        return None

    def items(self, node: Node | None, path: Path, what: str) -> ListNode | None:
        """Return a node if it is a list with something in it, else note that it must be `what`."""
        if isinstance(node, ListNode) and node.items:
            return node
        self.problem(path, f"must be {what}", value=True)
        return None

    def text(self, node: Node | None, path: Path, what: str) -> str | None:
        """Return a node's value if it is text that is not empty, else note that it must be `what`."""
        if isinstance(node, ScalarNode) and isinstance(node.value, str) and node.value:
            return node.value
        self.problem(path, f"must be {what}", value=True)
        return None

    def known(self, node: MapNode, keys: tuple[str, ...], path: Path) -> None:
        """Note keys that nobody knows."""
        for key in node.entries:
            if key not in keys:
                self.problem((*path, key), f"unknown key {key!r}", did_you_mean(key, keys, "keys here"))


def _inside(place: Position, text: str, error: Misread) -> Position:
    """Return the place within a text, if it stands in one line as it is; else that of the whole text."""
    if not 0 < place.line <= len(place.source.lines):
        return place
    line = place.source.lines[place.line - 1]
    for quote in (0, 1):
        begin = place.column - 1 + quote
        if line.startswith(text, begin):
            return place._replace(column=begin + 1 + error.at, width=max(1, error.width))
    return place
