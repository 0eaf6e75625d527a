"""What a condition consists of, as its text says it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class SyntaxNode:
    """A part of a condition, and where it starts in the text."""

    at: int


@dataclass(frozen=True, slots=True)
class Constant(SyntaxNode):
    """A value that stands there: a text, a number, true, false, nil or bytes."""

    value: str | int | float | bool | bytes | None


@dataclass(frozen=True, slots=True)
class Enum(SyntaxNode):
    """A name for a number: `STATUS_CODE_ERROR`."""

    name: str


@dataclass(frozen=True, slots=True)
class Segment(SyntaxNode):
    """A part of a path: `attributes["a"][0]`."""

    name: str
    keys: tuple[SyntaxNode, ...]


@dataclass(frozen=True, slots=True)
class Path(SyntaxNode):
    """A path to a field: `resource.attributes["a"]`."""

    segments: tuple[Segment, ...]

    def __str__(self) -> str:
        """Return it without keys."""
        return ".".join(segment.name for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Argument(SyntaxNode):
    """An argument of a function, perhaps with its name."""

    name: str
    value: SyntaxNode


@dataclass(frozen=True, slots=True)
class FunctionCall(SyntaxNode):
    """A function's value, perhaps a part of it: `ParseJSON(name)["a"]`."""

    name: str
    arguments: tuple[Argument, ...]
    keys: tuple[SyntaxNode, ...]


@dataclass(frozen=True, slots=True)
class ListDisplay(SyntaxNode):
    """A list of values."""

    items: tuple[SyntaxNode, ...]


@dataclass(frozen=True, slots=True)
class MapDisplay(SyntaxNode):
    """Values by their names."""

    items: tuple[tuple[str, SyntaxNode], ...]


@dataclass(frozen=True, slots=True)
class OperatorStep(SyntaxNode):
    """An operator, and what is at its right."""

    operator: str
    operand: SyntaxNode


@dataclass(frozen=True, slots=True)
class Arithmetic(SyntaxNode):
    """Operators of one precedence, from left to right."""

    first: SyntaxNode
    steps: tuple[OperatorStep, ...]


@dataclass(frozen=True, slots=True)
class Negative(SyntaxNode):
    """The negative of a number."""

    operand: SyntaxNode


@dataclass(frozen=True, slots=True)
class Comparing(SyntaxNode):
    """Two values and what must hold between them."""

    left: SyntaxNode
    operator: str
    right: SyntaxNode


@dataclass(frozen=True, slots=True)
class Opposite(SyntaxNode):
    """The opposite."""

    operand: SyntaxNode


@dataclass(frozen=True, slots=True)
class AllOf(SyntaxNode):
    """All of these."""

    operands: tuple[SyntaxNode, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(SyntaxNode):
    """Any of these."""

    operands: tuple[SyntaxNode, ...]


def within(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """Yield a node and all nodes in it."""
    yield node
    for field in fields(node):
        yield from _nodes_of(getattr(node, field.name))


def _nodes_of(value: object) -> Iterator[SyntaxNode]:
    if isinstance(value, SyntaxNode):
        yield from within(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes_of(item)
