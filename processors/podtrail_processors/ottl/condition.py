"""From the text of a condition to a function that says whether it holds."""

import operator
from collections.abc import Callable, Sequence
from functools import partial

from podtrail_processors.ottl import syntax
from podtrail_processors.ottl.certainty import Certainty
from podtrail_processors.ottl.functions.parameters import Function, Parameter
from podtrail_processors.ottl.indexing import IndexKey, indexed
from podtrail_processors.ottl.parser import parse_condition
from podtrail_processors.ottl.paths import PathContext
from podtrail_processors.ottl.resolve import Resolver
from podtrail_processors.ottl.search import TraceGate, TraceSearch
from podtrail_processors.ottl.telemetry import Getter, Telemetry
from podtrail_processors.ottl.values.arithmetic import calculate, negative
from podtrail_processors.ottl.values.compare import COMPARATORS, is_nil
from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import PointInTime, is_number, kind_of

Holds = Callable[[Telemetry], bool]

_EXACT = 2**53
"""Below this a comparison of an integer with a double does not depend on whether the integer is made a double."""
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_NO_CONSTANT = object()
_OPEN = TraceGate(lambda _: True, None)


class Condition:
    """A condition on a span or on an event of one."""

    def __init__(self, text: str, context: PathContext) -> None:
        """Compile a condition.

        Raises:
            ConditionError: it is none; the text says what is wrong, and where.
        """
        self.text = text
        parsed = parse_condition(text)
        resolver = Resolver(text, context)
        compiler = _Compiler(resolver)
        self.holds: Holds = compiler.boolean(parsed)
        """Says whether it holds. EvaluationError when that can't be said."""
        self.reads = frozenset(compiler.reads)
        """The fields of a span, under OTLP's names, that `Telemetry.span` must have."""
        self.never_fails = Certainty(resolver).never_fails(parsed)
        """Whether it has an answer on every span."""
        lenient, strict = (
            TraceSearch(resolver, _Compiler(resolver).boolean, errors_count=count) for count in (False, True)
        )
        gate = lenient.gate(parsed) or _OPEN
        closer = gate if self.never_fails else strict.gate(parsed) or _OPEN
        self.may_hold = gate.is_open
        """Says False if it holds for no span, or no event of one, of a trace. (It may fail on some.)"""
        self.may_matter = closer.is_open
        """Says False if it neither holds for any of them nor fails."""
        self.holds_with = gate.sought
        """It holds for none where none of this is met; None where that can't be said."""
        self.matters_with = closer.sought
        """It neither holds for any nor fails where none of this is met; None where that can't be said."""
        self.columns = frozenset(lenient.columns | strict.columns)
        """The fields that all this reads of all spans."""


class _Compiler:
    def __init__(self, resolver: Resolver) -> None:
        self.reads: set[str] = set()
        self._resolver = resolver

    def boolean(self, node: syntax.SyntaxNode) -> Holds:
        holds, truth = self._asked(node), self._truth(node)
        return holds if truth is None else lambda _: truth

    def _truth(self, node: syntax.SyntaxNode) -> bool | None:
        """Return the answer that constants give, whatever fails beside them, as in the Collector; None without one."""
        match node:
            case syntax.Constant(value=bool() as value):
                return value
            case syntax.Opposite():
                truth = self._truth(node.operand)
                return None if truth is None else not truth
            case syntax.AnyOf() | syntax.AllOf():
                decisive = isinstance(node, syntax.AnyOf)
                truths = [self._truth(operand) for operand in node.operands]
                return decisive if decisive in truths else None if None in truths else not decisive
            case syntax.Comparing():
                left, right = self._constant(node.left), self._constant(node.right)
                return None if _NO_CONSTANT in (left, right) else COMPARATORS[node.operator](left, right)
        return None

    def _asked(self, node: syntax.SyntaxNode) -> Holds:
        match node:
            case syntax.AnyOf():
                return _any([self.boolean(operand) for operand in node.operands])
            case syntax.AllOf():
                return _all([self.boolean(operand) for operand in node.operands])
            case syntax.Opposite():
                opposite = self.boolean(node.operand)
                return lambda telemetry: not opposite(telemetry)
            case syntax.Comparing():
                return self._comparison(node)
            case syntax.FunctionCall(keys=()) if self._resolver.is_root_check(node):
                return self._root_check(node)
        return _checked(self._value(node))

    def _value(self, node: syntax.SyntaxNode) -> Getter:
        constant = self._constant(node)
        return self._computed(node) if constant is _NO_CONSTANT else _always(constant)

    def _constant(self, node: syntax.SyntaxNode) -> object:
        """Return the value of what is the same for every span, else `_NO_CONSTANT`."""
        match node:
            case syntax.Constant():
                return node.value
            case syntax.Enum():
                return self._resolver.enum(node)
            case syntax.ListDisplay():
                items = [self._constant(item) for item in node.items]
                return _NO_CONSTANT if _NO_CONSTANT in items else items
        return _NO_CONSTANT

    def _computed(self, node: syntax.SyntaxNode) -> Getter:
        match node:
            case syntax.Path():
                return self._path(node)
            case syntax.FunctionCall():
                found = self._call(node)
                return indexed(found, self._keys(node.keys)) if node.keys else found
            case syntax.ListDisplay():
                items = [self._value(item) for item in node.items]
                return lambda telemetry: [item(telemetry) for item in items]
            case syntax.MapDisplay():
                pairs = [(key, self._value(item)) for key, item in node.items]
                return lambda telemetry: {key: item(telemetry) for key, item in pairs}
            case syntax.Arithmetic():
                return self._arithmetic(node)
            case syntax.Negative():
                operand = self._value(node.operand)
                return lambda telemetry: negative(operand(telemetry))
        raise AssertionError(node)

    def _path(self, path: syntax.Path) -> Getter:
        field, keys = self._resolver.path(path)
        if field.reads:
            self.reads.add(field.reads)
        return field.keyed(self._keys(keys)) if keys and field.keyed else field.get

    def _keys(self, keys: Sequence[syntax.SyntaxNode]) -> list[IndexKey]:
        found = []
        for key in keys:
            constant = self._constant(key)
            found.append(IndexKey(self._value(key), None if constant is _NO_CONSTANT else constant))
        return found

    def _arithmetic(self, node: syntax.Arithmetic) -> Getter:
        first = self._value(node.first)
        steps = [(step.operator, self._value(step.operand)) for step in node.steps]
        if len(steps) == 1:
            ((sign, second),) = steps
            return lambda telemetry: calculate(first(telemetry), sign, second(telemetry))

        def compute(telemetry: Telemetry) -> object:
            value = first(telemetry)
            for sign, operand in steps:
                value = calculate(value, sign, operand(telemetry))
            return value

        return compute

    def _comparison(self, node: syntax.Comparing) -> Holds:
        left, right = self._constant(node.left), self._constant(node.right)
        if right is not _NO_CONSTANT:
            return _compared(self._value(node.left), node.operator, right)
        if left is not _NO_CONSTANT:
            return _compared(self._value(node.right), _MIRRORED[node.operator], left)
        get, other, compare = self._value(node.left), self._value(node.right), COMPARATORS[node.operator]
        return lambda telemetry: compare(get(telemetry), other(telemetry))

    def _call(self, call: syntax.FunctionCall) -> Getter:
        if self._resolver.is_root_check(call):
            return self._root_check(call)
        if self._resolver.is_clock(call):
            return self._clock(call)
        function = self._resolver.function(call)
        arguments = self._resolver.arguments(function, call)
        constants = {
            parameter: self._taken(parameter, node, constant)
            for parameter, node in arguments.items()
            if (constant := self._constant(node)) is not _NO_CONSTANT
        }
        if function.check:
            try:
                function.check({parameter.name: value for parameter, value in constants.items()})
            except ValueError as error:
                raise self._resolver.fail(f"{function.name}: {error}", call.at) from None
        if len(constants) == len(arguments):
            return _folded(function, constants)
        getters = {
            parameter: _always(constants[parameter])
            if parameter in constants
            else _taking(parameter, self._computed(node))
            for parameter, node in arguments.items()
        }
        return _applied(function, getters)

    def _clock(self, call: syntax.FunctionCall) -> Getter:
        if call.arguments:
            raise self._resolver.fail(f"{call.name} takes no arguments", call.at)
        return lambda telemetry: PointInTime(telemetry.now)

    def _root_check(self, call: syntax.FunctionCall) -> Holds:
        if call.arguments:
            raise self._resolver.fail(f"{call.name} takes no arguments", call.at)
        self.reads.add("parent_span_id")
        return lambda telemetry: not any(telemetry.span.parent_span_id)

    def _taken(self, parameter: Parameter, node: syntax.SyntaxNode, constant: object) -> object:
        try:
            return parameter.read(constant)
        except EvaluationError as error:
            raise self._resolver.fail(f"{parameter.name}: {error}", node.at) from None


def _always(value: object) -> Getter:
    return lambda _: value


def _taking(parameter: Parameter, get: Getter) -> Getter:
    read = parameter.read
    return lambda telemetry: read(get(telemetry))


def _folded(function: Function, constants: dict[Parameter, object]) -> Getter:
    """Call a function once if what it takes is always the same; if that fails, it fails on each span."""
    getters = {parameter: _always(value) for parameter, value in constants.items()}
    apply = _applied(function, getters)
    try:
        return _always(apply(Telemetry()))
    except EvaluationError:
        return apply


def _applied(function: Function, getters: dict[Parameter, Getter]) -> Getter:
    call = function.call
    required = [get for parameter, get in getters.items() if not parameter.optional]
    optional = {parameter.name: get for parameter, get in getters.items() if parameter.optional}
    if not optional and len(required) == 1:
        (only,) = required
        return lambda telemetry: call(only(telemetry))
    if not optional and len(required) == 2:
        first, second = required
        return lambda telemetry: call(first(telemetry), second(telemetry))

    def apply(telemetry: Telemetry) -> object:
        named = {name: get(telemetry) for name, get in optional.items()}
        return call(*[get(telemetry) for get in required], **named)

    return apply


def _compared(get: Getter, sign: str, constant: object) -> Holds:
    """Compare with a constant: what is asked most is asked without detours."""
    if constant is None and sign == "==":
        return lambda telemetry: is_nil(get(telemetry))
    if constant is None and sign == "!=":
        return lambda telemetry: not is_nil(get(telemetry))
    if isinstance(constant, str) and sign == "==":
        return lambda telemetry: get(telemetry) == constant
    if isinstance(constant, str) and sign == "!=":
        return lambda telemetry: get(telemetry) != constant
    if is_number(constant) and abs(constant) < _EXACT and sign in _ORDERS:
        return partial(_number_ordered, get, _ORDERS[sign], constant)
    if is_number(constant) and abs(constant) < _EXACT and sign == "==":
        return partial(_number_equal, get, constant)
    compare = COMPARATORS[sign]
    return lambda telemetry: compare(get(telemetry), constant)


def _number_ordered(get: Getter, holds: Callable[[float, float], bool], constant: float, telemetry: Telemetry) -> bool:
    value = get(telemetry)
    return is_number(value) and holds(value, constant)


def _number_equal(get: Getter, constant: float, telemetry: Telemetry) -> bool:
    value = get(telemetry)
    return value == constant and type(value) is not bool


def _any(operands: Sequence[Holds]) -> Holds:
    """Return `or`. Halves of halves: that is asked faster than a loop."""
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    first, second = _any(operands[:middle]), _any(operands[middle:])
    return lambda telemetry: first(telemetry) or second(telemetry)


def _all(operands: Sequence[Holds]) -> Holds:
    """Return `and`, made as `or` is."""
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    first, second = _all(operands[:middle]), _all(operands[middle:])
    return lambda telemetry: first(telemetry) and second(telemetry)


def _checked(get: Getter) -> Holds:
    """Return what must be a boolean."""

    def check(telemetry: Telemetry) -> bool:
        value = get(telemetry)
        if isinstance(value, bool):
            return value
        raise EvaluationError(f"expected a boolean but got {kind_of(value)}")

    return check
