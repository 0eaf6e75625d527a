"""Which attributes must be there for a part of a condition to be true."""

from typing import NamedTuple

from podtrail.otlp import read_key_value
from podtrail_processors.ottl import syntax
from podtrail_processors.ottl.functions.parameters import rejects_nil
from podtrail_processors.ottl.resolve import Resolver

_NIL_STAYS = {"Bool", "Double", "Hex", "Int", "String"}
_FALSE_FOR_NIL = {"IsBool", "IsDouble", "IsInt", "IsList", "IsMap", "IsMatch", "IsString"}
_NONE: "frozenset[Needed]" = frozenset()


class Needed(NamedTuple):
    """An attribute that has a value, or a text that stands in an event."""

    key: str
    of_spans: bool
    """Else of events."""

    @property
    def word(self) -> bytes:
        """What stands in the bytes where it is met."""
        return self.key.encode("utf-8", "surrogateescape")

    def is_met_by(self, pair: bytes) -> bool:
        """Say whether a KeyValue message is the attribute."""
        name, value = read_key_value(pair)
        return name == self.key and value is not None


class Demands:
    """Finds them."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def of(self, node: syntax.SyntaxNode) -> frozenset[Needed]:
        """Return what is there where a part is true of a span or event."""
        match node:
            case syntax.Comparing():
                return self._of_comparison(node)
            case syntax.FunctionCall(name=name) if name in _FALSE_FOR_NIL:
                return self._of_value(node.arguments[0].value)
            case syntax.FunctionCall():
                return self._of_value(node)
        return _NONE

    def _of_comparison(self, node: syntax.Comparing) -> frozenset[Needed]:
        if node.operator == "!=":
            return _NONE
        if node.operator in ("<", ">"):
            return self._of_value(node.left) | self._of_value(node.right)
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(one, syntax.Enum):
                return self._of_value(other)
            if isinstance(one, syntax.Constant) and one.value is not None:
                return self._of_value(other) | self._stored_text(node, one, other)
        return _NONE

    def _stored_text(
        self, node: syntax.Comparing, literal: syntax.Constant, other: syntax.SyntaxNode
    ) -> frozenset[Needed]:
        """Return the text that stands in an event that this is true of."""
        if node.operator != "==" or not isinstance(literal.value, str) or not isinstance(other, syntax.Path):
            return _NONE
        field, keys = self._resolver.path(other)
        stored = field.reads == "events" and field.searchable and len(keys) == (field.keyed is not None)
        return frozenset([Needed(literal.value, of_spans=False)]) if stored else _NONE

    def _of_value(self, node: syntax.SyntaxNode) -> frozenset[Needed]:
        """Return what is there where this has a value that is not nil."""
        match node:
            case syntax.Path():
                field, keys = self._resolver.path(node)
                match keys[:1]:
                    case (syntax.Constant(value=str() as key),) if field.searchable:
                        return frozenset([Needed(key, of_spans=field.reads == "attributes")])
            case syntax.Arithmetic():
                operands = (node.first, *(step.operand for step in node.steps))
                return _NONE.union(*map(self._of_value, operands))
            case syntax.FunctionCall() if self._resolver.is_root_check(node) or self._resolver.is_clock(node):
                return _NONE
            case syntax.FunctionCall(name=name):
                arguments = self._resolver.arguments(self._resolver.function(node), node)
                demanding = (a for p, a in arguments.items() if name in _NIL_STAYS or rejects_nil(p))
                return _NONE.union(*map(self._of_value, demanding))
        return _NONE
