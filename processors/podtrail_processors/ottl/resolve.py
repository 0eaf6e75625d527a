"""Finding what paths and functions mean, before any span is seen."""

from difflib import get_close_matches
from typing import NamedTuple

from podtrail_processors.ottl import syntax
from podtrail_processors.ottl.collector_functions import only_there
from podtrail_processors.ottl.functions import FUNCTIONS
from podtrail_processors.ottl.functions.parameters import Function, Parameter
from podtrail_processors.ottl.paths import ENUMS, Field, PathContext
from podtrail_processors.ottl.values.errors import ConditionError

ROOT_CHECK = "IsRootSpan"
NOW = "Now"
_PREFIXES = ("span", "spanevent", "resource", "scope", "instrumentation_scope")


class Resolved(NamedTuple):
    """A path, and the keys into what it leads to."""

    field: Field
    keys: tuple[syntax.SyntaxNode, ...]


class Resolver:
    """Finds what the names in a condition stand for. All methods raise ConditionError, which says where."""

    def __init__(self, text: str, context: PathContext) -> None:
        self._text = text
        self._context = context
        self.is_of_events = context.own == "spanevent"
        """Whether a condition is asked of events."""

    def fail(self, problem: str, at: int) -> ConditionError:
        """Return an error at a place of the condition."""
        return ConditionError(problem, self._text, at)

    def path(self, path: syntax.Path) -> Resolved:
        """Return what a path leads to, with or without the prefix of its context."""
        *above, last = path.segments
        for segment in above:
            if segment.keys:
                raise self.fail(f"{segment.name} takes no key here", segment.at)
        written = str(path)
        known = bool(above) and path.segments[0].name in _PREFIXES
        full = written if known else f"{self._context.own}.{written}"
        field = self._context.fields.get(full)
        if field is None:
            raise self.fail(self._unknown_path(full), path.at)
        if last.keys and field.keyed is None:
            raise self.fail(f"{written} takes no key", last.keys[0].at)
        return Resolved(field, last.keys)

    def _unknown_path(self, full: str) -> str:
        close = get_close_matches(full, self._context.fields, 1)
        suggestion = f", did you mean {close[0]!r}?" if close else ";"
        return (
            f"unknown path {full!r} in a condition on a {self._context.name}{suggestion} "
            f"there are {', '.join(sorted(self._context.fields))}"
        )

    def enum(self, enum: syntax.Enum) -> int:
        """Return the number that a name stands for."""
        if enum.name not in ENUMS:
            raise self.fail(f"unknown name {enum.name!r}; there are {', '.join(ENUMS)}", enum.at)
        return ENUMS[enum.name]

    def is_root_check(self, node: syntax.SyntaxNode) -> bool:
        """Say whether a node asks if the span is a root."""
        return isinstance(node, syntax.FunctionCall) and node.name == ROOT_CHECK and self._context.has_roots

    def is_clock(self, node: syntax.SyntaxNode) -> bool:
        """Say whether a node asks for the time."""
        return isinstance(node, syntax.FunctionCall) and node.name == NOW

    def function(self, call: syntax.FunctionCall) -> Function:
        """Return the function that a call names."""
        function = FUNCTIONS.get(call.name)
        if function is None:
            known = sorted([*FUNCTIONS, NOW, *([ROOT_CHECK] if self._context.has_roots else [])])
            if sentence := only_there(call.name):
                raise self.fail(sentence, call.at)
            close = get_close_matches(call.name, known, n=1, cutoff=0.75)
            meant = f" did you mean {close[0]}?" if close else ""
            raise self.fail(f"unknown function {call.name!r};{meant} there are {', '.join(known)}", call.at)
        return function

    def arguments(self, function: Function, call: syntax.FunctionCall) -> dict[Parameter, syntax.SyntaxNode]:
        """Return a call's arguments by parameter, in the order of the parameters."""
        by_name = {_bare(parameter.name): parameter for parameter in function.parameters}
        given: dict[Parameter, syntax.SyntaxNode] = {}
        named = False
        for index, argument in enumerate(call.arguments):
            if argument.name:
                named = True
                parameter = by_name.get(_bare(argument.name))
                if parameter is None or parameter in given:
                    raise self.fail(f"{function.name} takes no (further) {argument.name!r}", argument.at)
            elif named:
                raise self.fail("an argument without name follows one with a name", argument.at)
            elif index >= len(function.parameters):
                raise self._wrong_number(function, call)
            else:
                parameter = function.parameters[index]
            given[parameter] = argument.value
        if any(not parameter.optional and parameter not in given for parameter in function.parameters):
            raise self._wrong_number(function, call)
        return {parameter: given[parameter] for parameter in function.parameters if parameter in given}

    def _wrong_number(self, function: Function, call: syntax.FunctionCall) -> ConditionError:
        takes = ", ".join(f"[{p.name}]" if p.optional else p.name for p in function.parameters)
        return self.fail(f"{function.name}({takes}) is given {len(call.arguments)} arguments", call.at)


def _bare(name: str) -> str:
    return name.replace("_", "").lower()
