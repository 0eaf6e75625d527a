"""What a look at a trace as a whole tells of a condition, so that most traces need not be gone through span by span.

A part of a condition that reads one field only is asked about each distinct value that the field has in the trace:
where it is true for none, and all around it is `and`, the condition holds for no span. What must stand in the bytes of
the spans (the key of an attribute, a text it is compared with) is looked for first.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, Protocol

from podtrail.otlp.surroundings import encode_status_code
from podtrail_processors.ottl import syntax
from podtrail_processors.ottl.errors import EvaluationError
from podtrail_processors.ottl.functions.parameters import Parameter
from podtrail_processors.ottl.functions.times import parse_length
from podtrail_processors.ottl.paths import PARENT, Column
from podtrail_processors.ottl.resolve import Resolver
from podtrail_processors.ottl.telemetry import Telemetry

_REMEMBERED = 4096
_LARGEST = 512
_NIL_STAYS = {"Bool", "Double", "Hex", "Int", "String"}
_FALSE_FOR_NIL = {"IsBool", "IsDouble", "IsInt", "IsList", "IsMap", "IsMatch", "IsString"}
_SAFE = _FALSE_FOR_NIL - {"IsMatch"} | {"IsEmpty"}


class Glance(Protocol):
    """A trace, seen as a whole."""

    @property
    def raw(self) -> bytes:
        """Its spans, encoded."""

    def distinct(self, column: Column) -> frozenset[Any]:
        """Return the values that a field has in its spans. Status: the codes. Attributes: KeyValue messages."""

    def longest(self) -> int:
        """Return nanoseconds than which no span is longer."""


Possible = Callable[[Glance], bool]
"""Says False when it is true of no span of the trace."""


class _Read(NamedTuple):
    """What a part of a condition reads."""

    column: Column
    key: str
    """Of attributes."""


class Search:
    """Works out what can be told from the trace as a whole. An answer that is an error counts as not true."""

    def __init__(self, resolver: Resolver, compiled: Callable[[syntax.Node], Callable[[Telemetry], bool]]) -> None:
        self.columns: set[Column] = set()
        """The fields whose distinct values are asked for, but for `attributes`."""
        self._resolver = resolver
        self._compile = compiled

    def possible(self, node: syntax.Node) -> Possible | None:
        """Return what rules traces out; None when nothing does."""
        match node:
            case syntax.And():
                parts = [part for operand in node.operands if (part := self.possible(operand))]
                return _all_of(parts) if parts else None
            case syntax.Or():
                alternatives = [self.possible(operand) for operand in node.operands]
                known = [part for part in alternatives if part]
                return _any_of(known) if len(known) == len(alternatives) else None
        parts = [part for part in self._glances(node) if part]
        return _all_of(parts) if parts else None

    def _glances(self, node: syntax.Node) -> Sequence[Possible | None]:
        """Return the ways in which a trace may be ruled out, the cheapest first."""
        return _in_bytes(self._words(node)), self._by_value(node), self._by_length(node)

    def _by_value(self, node: syntax.Node) -> Possible | None:
        """Return what asks about each distinct value of the one field that a part reads."""
        reads = {self._read(part) for part in _within(node)} - {_NOTHING}
        if len(reads) != 1:
            return None
        (read,) = reads
        if read is None:
            return None
        holds = self._compile(node)
        if read.column == "attributes" and _true_of(holds, "attributes", ()):
            return None
        if read.column == "attributes":
            return _of_attribute(holds, read.key)
        self.columns.add(read.column)
        return _of_field(holds, read.column)

    def _by_length(self, node: syntax.Node) -> Possible | None:
        """Return what asks whether any span may be longer than a part demands: no span is longer than its trace."""
        if not isinstance(node, syntax.Comparison):
            return None
        longer, length = (node.left, node.right) if node.operator in (">", ">=") else (node.right, node.left)
        if node.operator in ("==", "!=") or not self._is_length_of_span(longer):
            return None
        least = _nanoseconds(length)
        if least is None:
            return None
        self.columns |= {"start_time_unix_nano", "end_time_unix_nano"}
        return lambda trace: trace.longest() >= least

    def _is_length_of_span(self, node: syntax.Node) -> bool:
        if not isinstance(node, syntax.Arithmetic) or len(node.steps) != 1 or node.steps[0].operator != "-":
            return False
        ends = (node.first, node.steps[0].operand)
        reads = [self._resolver.path(path).field.reads for path in ends if isinstance(path, syntax.Path)]
        return reads == ["end_time_unix_nano", "start_time_unix_nano"]

    def _read(self, node: syntax.Node) -> "_Read | None":
        """Return what a node itself reads; None when that is no single field."""
        if self._resolver.is_root_check(node):
            return _Read(PARENT, "")
        if self._resolver.is_clock(node):
            return None
        if not isinstance(node, syntax.Path):
            return _NOTHING
        field, keys = self._resolver.path(node)
        if field.column == "attributes":
            first = keys[0] if keys else None
            if isinstance(first, syntax.Literal) and isinstance(first.value, str):
                return _Read("attributes", first.value)
            return None
        return _Read(field.column, "") if field.column else None

    def _words(self, node: syntax.Node) -> frozenset[bytes]:
        """Return what stands in the bytes of any span of which a part is true."""
        match node:
            case syntax.Comparison():
                return self._compared(node)
            case syntax.Call(name=name) if name in _FALSE_FOR_NIL:
                return self._demanded(node.arguments[0].value)
            case syntax.Call():
                return self._demanded(node)
        return frozenset()

    def _compared(self, node: syntax.Comparison) -> frozenset[bytes]:
        if node.operator == "!=":
            return frozenset()
        if node.operator in ("<", ">"):
            return self._demanded(node.left) | self._demanded(node.right)
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(one, syntax.Enum):
                return self._demanded(other)
            if isinstance(one, syntax.Literal) and one.value is not None:
                text = _words(one.value) if node.operator == "==" and self._is_stored_text(other) else frozenset()
                return self._demanded(other) | text
        return frozenset()

    def _is_stored_text(self, node: syntax.Node) -> bool:
        """Say whether a text that this is equal to stands in the bytes as it is."""
        if not isinstance(node, syntax.Path):
            return False
        field, keys = self._resolver.path(node)
        return field.searchable and len(keys) == 1

    def _demanded(self, node: syntax.Node) -> frozenset[bytes]:
        """Return what must be in the bytes for this to have a value that is not nil."""
        match node:
            case syntax.Path():
                field, keys = self._resolver.path(node)
                first = keys[0] if keys else None
                return _words(first.value) if field.searchable and isinstance(first, syntax.Literal) else frozenset()
            case syntax.Arithmetic():
                operands = (node.first, *(step.operand for step in node.steps))
                return frozenset().union(*map(self._demanded, operands))
            case syntax.Call() if self._resolver.is_root_check(node) or self._resolver.is_clock(node):
                return frozenset()
            case syntax.Call(name=name):
                arguments = self._resolver.arguments(self._resolver.function(node), node)
                demanding = (a for p, a in arguments.items() if name in _NIL_STAYS or _rejects_nil(p))
                return frozenset().union(*map(self._demanded, demanding))
        return frozenset()

    def never_fails(self, node: syntax.Node) -> bool:
        """Say whether a condition certainly has an answer on every span."""
        match node:
            case syntax.Literal() | syntax.Enum():
                return True
            case syntax.Or() | syntax.And():
                return all(map(self.never_fails, node.operands))
            case syntax.Not():
                return self.never_fails(node.operand)
            case syntax.Comparison():
                return self.never_fails(node.left) and self.never_fails(node.right)
            case syntax.Path():
                return self._path_never_fails(node)
            case syntax.Call():
                safe = node.name in _SAFE or self._resolver.is_root_check(node)
                return safe and not node.keys and all(self.never_fails(argument.value) for argument in node.arguments)
        return False

    def _path_never_fails(self, path: syntax.Path) -> bool:
        field, keys = self._resolver.path(path)
        if not keys:
            return not field.fails
        return len(keys) == 1 and isinstance(keys[0], syntax.Literal) and isinstance(keys[0].value, str)


_NOTHING = _Read("", "")


def _within(node: syntax.Node) -> Iterator[syntax.Node]:
    """Yield a node and all nodes in it."""
    yield node
    for field in fields(node):
        yield from _nodes_of(getattr(node, field.name))


def _nodes_of(value: object) -> Iterator[syntax.Node]:
    if isinstance(value, syntax.Node):
        yield from _within(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes_of(item)


class _Answers(dict[Any, bool]):
    """Answers by value, remembered for as many values as fit a bound, large ones not at all."""

    def __init__(self, ask: Callable[[Any], bool]) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, value: Any) -> bool:
        answer = self._ask(value)
        if not isinstance(value, bytes) or len(value) <= _LARGEST:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[value] = answer
        return answer


class _OneField:
    """A span, or what is around one, of which a single field is there."""


def _true_of(holds: Callable[[Any], bool], field: str, value: object) -> bool:
    """Ask a part that reads one field only. An error counts as not true."""
    telemetry, span = _OneField(), _OneField()
    target = telemetry if field in ("resource", "scope") else span
    setattr(target, field, value)
    telemetry.span = span  # type: ignore[attr-defined]  # there is what is read
    try:
        return holds(telemetry)
    except EvaluationError:
        return False


def _of_attribute(holds: Callable[[Any], bool], key: str) -> Possible:
    encoded = key.encode("utf-8", "surrogateescape")
    known = _Answers(lambda pair: _true_of(holds, "attributes", (pair,))).__getitem__
    return lambda trace: any(map(known, [pair for pair in trace.distinct("attributes") if encoded in pair]))


def _of_field(holds: Callable[[Any], bool], column: Column) -> Possible:
    def ask(value: Any) -> bool:
        return _true_of(holds, column, encode_status_code(value) if column == "status" else value)

    known = _Answers(ask).__getitem__
    return lambda trace: any(map(known, trace.distinct(column)))


def _nanoseconds(node: syntax.Node) -> int | None:
    """Return the length of time that a constant says; None for anything else."""
    if isinstance(node, syntax.Literal) and type(node.value) is int:
        return node.value
    match node:
        case syntax.Call(name="Duration", arguments=(syntax.Argument(value=syntax.Literal(value=str() as text)),)):
            try:
                return parse_length(text).nanoseconds
            except EvaluationError:
                return None
    return None


def _all_of(parts: Sequence[Possible]) -> Possible:
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        first, second = parts
        return lambda trace: first(trace) and second(trace)
    return lambda trace: all(part(trace) for part in parts)


def _any_of(parts: Sequence[Possible]) -> Possible:
    return lambda trace: any(part(trace) for part in parts)


def _in_bytes(words: frozenset[bytes]) -> Possible | None:
    if not words:
        return None
    if len(words) == 1:
        (only,) = words
        return lambda trace: only in trace.raw
    ordered = sorted(words, key=len, reverse=True)
    return lambda trace: all(word in trace.raw for word in ordered)


def _words(value: object) -> frozenset[bytes]:
    return frozenset([value.encode("utf-8", "surrogateescape")]) if isinstance(value, str) else frozenset()


def _rejects_nil(parameter: Parameter) -> bool:
    try:
        parameter.read(None)
    except EvaluationError:
        return True
    return False
