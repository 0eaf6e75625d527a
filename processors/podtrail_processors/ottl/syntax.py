"""What a condition consists of, as its text says it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a condition, and where it starts in the text."""

    at: int


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A value that stands there: a text, a number, true, false, nil or bytes."""

    value: str | int | float | bool | bytes | None


@dataclass(frozen=True, slots=True)
class Enum(Node):
    """A name for a number: `STATUS_CODE_ERROR`."""

    name: str


@dataclass(frozen=True, slots=True)
class Segment(Node):
    """A part of a path: `attributes["a"][0]`."""

    name: str
    keys: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Path(Node):
    """A path to a field: `resource.attributes["a"]`."""

    segments: tuple[Segment, ...]

    def __str__(self) -> str:
        """Return it without keys."""
        return ".".join(segment.name for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """An argument of a function, perhaps with its name."""

    name: str
    value: Node


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function's value, perhaps a part of it: `ParseJSON(name)["a"]`."""

    name: str
    arguments: tuple[Argument, ...]
    keys: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListOf(Node):
    """A list of values."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MapOf(Node):
    """Values by their names."""

    items: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Step(Node):
    """An operator, and what is at its right."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """Operators of one precedence, from left to right."""

    first: Node
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Negative(Node):
    """The negative of a number."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """Two values and what must hold between them."""

    left: Node
    operator: str
    right: Node


@dataclass(frozen=True, slots=True)
class Not(Node):
    """The opposite."""

    operand: Node


@dataclass(frozen=True, slots=True)
class And(Node):
    """All of these."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """Any of these."""

    operands: tuple[Node, ...]


def within(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes in it."""
    yield node
    for field in fields(node):
        yield from _nodes_of(getattr(node, field.name))


def _nodes_of(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield from within(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes_of(item)
