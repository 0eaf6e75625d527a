"""What a look at a trace as a whole tells of a condition, so that most traces need not be gone through span by span.

A part of a condition that reads one field only is asked about each distinct value that the field has in the trace:
where it is true for none, and all around it is `and`, the condition holds for no span. Of a part that reads more, the
attributes must be there that it takes to be true.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from podtrail.otlp.columns import SpanColumns
from podtrail_processors.evidence.sought import Sought
from podtrail_processors.ottl import syntax
from podtrail_processors.ottl.certainty import Certainty
from podtrail_processors.ottl.demands import Demands
from podtrail_processors.ottl.functions.times import parse_length
from podtrail_processors.ottl.resolve import Resolver
from podtrail_processors.ottl.single import Read, SingleField
from podtrail_processors.ottl.telemetry import Telemetry
from podtrail_processors.ottl.values.errors import EvaluationError


class Glance(Protocol):
    """A trace, seen as a whole."""

    @property
    def columns(self) -> SpanColumns:
        """The fields that a condition names in its `columns`."""

    def met(self, sought: Sought) -> bool:
        """Say whether a value of a field is what is sought."""

    def longest(self) -> int:
        """Return nanoseconds than which no span is longer."""


class TraceGate(NamedTuple):
    """What rules traces out for a condition or a part of one."""

    is_open: Callable[[Glance], bool]
    """Says False when it is true of no span of the trace."""
    sought: frozenset[Sought] | None
    """It is closed where none of these is met; None where it does not depend on such."""


_TELLING = ("events", "attributes", "status", "name", "kind")
"""Columns in which something special is soonest missed, the others behind them."""


class TraceSearch:
    """Works out what can be told from the trace as a whole.

    Where errors count, what is ruled out neither holds for a span nor fails on one; else it may fail.
    """

    def __init__(
        self,
        resolver: Resolver,
        compiled: Callable[[syntax.SyntaxNode], Callable[[Telemetry], bool]],
        *,
        errors_count: bool,
    ) -> None:
        self.columns: set[str] = set()
        """The fields of spans whose values are asked for."""
        self._resolver = resolver
        self._single = SingleField(resolver, compiled, errors_count=errors_count)
        self._demands = Demands(resolver)
        self._never_fails = Certainty(resolver).never_fails
        self._errors_count = errors_count

    def gate(self, condition: syntax.SyntaxNode) -> TraceGate | None:
        """Return what rules traces out; None when nothing does."""
        found = self._part(condition)
        if not self._resolver.is_of_events:
            return found
        return _all_of([found, self._meeting(Sought("events", lambda _: True))])

    def _part(self, node: syntax.SyntaxNode) -> TraceGate | None:
        by_value = self._by_value(node)
        if by_value:
            return by_value
        match node:
            case syntax.AllOf():
                return _all_of([part for together in self._by_field(node) for part in self._conjunction(together)])
            case syntax.AnyOf():
                alternatives = [self._part(operand) for operand in node.operands]
                known = [part for part in alternatives if part]
                return _any_of(known) if len(known) == len(alternatives) else None
        return _all_of([self._by_demands(node), self._by_length(node)])

    def _by_field(self, node: syntax.AllOf) -> Iterable[Sequence[syntax.SyntaxNode]]:
        """Return the operands, those that read the same field together.

        Where errors count, just up to the first that may fail: what stands behind it does not save it.
        """
        operands = list(_flattened(node))
        if self._errors_count:
            failing = (at for at, operand in enumerate(operands) if not self._never_fails(operand))
            operands = operands[: next(failing, len(operands)) + 1]
        by_field: dict[Read | syntax.SyntaxNode, list[syntax.SyntaxNode]] = {}
        for operand in operands:
            by_field.setdefault(self._single.read(operand) or operand, []).append(operand)
        return by_field.values()

    def _conjunction(self, operands: Sequence[syntax.SyntaxNode]) -> Sequence[TraceGate | None]:
        """Return what rules out operands of an `and` that read the same field, as one if that can be."""
        if len(operands) > 1:
            as_one = self._by_value(syntax.AllOf(operands[0].at, tuple(operands)))
            if as_one:
                return [as_one]
        return [self._part(operand) for operand in operands]

    def _by_value(self, node: syntax.SyntaxNode) -> TraceGate | None:
        """Return what asks about each distinct value of the one field that a part reads."""
        sought = self._single.sought(node)
        return self._meeting(sought) if sought else None

    def _meeting(self, sought: Sought) -> TraceGate:
        if sought.column not in ("resource", "scope"):
            self.columns.add(sought.column)
        return TraceGate(lambda trace: trace.met(sought), frozenset([sought]))

    def _by_demands(self, node: syntax.SyntaxNode) -> TraceGate | None:
        """Return what asks for the attributes without which a part is not true."""
        if self._errors_count and not self._never_fails(node):
            return None
        demands = self._demands.of(node)
        parts = [
            self._meeting(Sought("attributes", demand.is_met_by, demand.key)) for demand in demands if demand.of_spans
        ]
        words = sorted({demand.word for demand in demands if not demand.of_spans}, key=len, reverse=True)
        if words:
            parts.append(self._meeting(Sought("events", lambda event: all(word in event for word in words))))
        return _all_of(parts)

    def _by_length(self, node: syntax.SyntaxNode) -> TraceGate | None:
        """Return what asks whether any span may be longer than a part demands: no span is longer than its trace."""
        if not isinstance(node, syntax.Comparing) or node.operator in ("==", "!="):
            return None
        longer, length = (node.left, node.right) if node.operator in (">", ">=") else (node.right, node.left)
        least = _nanoseconds(length)
        if least is None or not self._is_length_of_span(longer):
            return None
        self.columns |= {"start_time_unix_nano", "end_time_unix_nano"}
        return TraceGate(lambda trace: trace.longest() >= least, None)

    def _is_length_of_span(self, node: syntax.SyntaxNode) -> bool:
        if not isinstance(node, syntax.Arithmetic) or len(node.steps) != 1 or node.steps[0].operator != "-":
            return False
        ends = (node.first, node.steps[0].operand)
        paths = [path for path in ends if isinstance(path, syntax.Path)]
        reads = [self._resolver.path(path).field.reads for path in paths]
        alike = len({str(path).endswith("_unix_nano") for path in paths}) == 1
        return alike and reads == ["end_time_unix_nano", "start_time_unix_nano"]


def _flattened(node: syntax.AllOf) -> Iterator[syntax.SyntaxNode]:
    for operand in node.operands:
        if isinstance(operand, syntax.AllOf):
            yield from _flattened(operand)
        else:
            yield operand


def _nanoseconds(node: syntax.SyntaxNode) -> int | None:
    """Return the length of time that a constant says; None for anything else."""
    if isinstance(node, syntax.Constant) and type(node.value) is int:
        return node.value
    match node:
        case syntax.FunctionCall(
            name="Duration", arguments=(syntax.Argument(value=syntax.Constant(value=str() as text)),), keys=()
        ):
            try:
                return parse_length(text).nanoseconds
            except EvaluationError:
                return None
    return None


def _all_of(parts: Sequence[TraceGate | None]) -> TraceGate | None:
    known = [part for part in parts if part]
    if len(known) < 2:
        return known[0] if known else None
    telling = min((part.sought for part in known if part.sought), key=_commonness, default=None)
    ask = [part.is_open for part in known]
    if len(ask) == 2:
        first, second = ask
        return TraceGate(lambda trace: first(trace) and second(trace), telling)
    return TraceGate(lambda trace: all(is_open(trace) for is_open in ask), telling)


def _commonness(sought: frozenset[Sought]) -> int:
    """Return how little it tells that one of these is met."""
    return max(_TELLING.index(each.column) if each.column in _TELLING else len(_TELLING) for each in sought)


def _any_of(parts: Sequence[TraceGate]) -> TraceGate:
    ask = [part.is_open for part in parts]
    named = [part.sought for part in parts if part.sought is not None]
    return TraceGate(
        lambda trace: any(is_open(trace) for is_open in ask),
        frozenset().union(*named) if len(named) == len(parts) else None,
    )
