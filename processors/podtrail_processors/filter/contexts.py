"""What conditions of `filter` are about: the contexts there are, and which one a condition's paths ask for."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from podtrail_processors.filter.config import ContextName
from podtrail_processors.ottl import SPAN, SPAN_EVENT, Condition, ConditionError, PathContext, syntax
from podtrail_processors.ottl.parser import parse_condition
from podtrail_processors.ottl.resolve import ROOT_CHECK

_SCOPE_NAMES = ("scope.", "instrumentation_scope.")


def _above(name: str, prefixes: tuple[str, ...]) -> PathContext:
    found = {path: field for path, field in SPAN.fields.items() if path.startswith(prefixes)}
    return PathContext(name, name, found, has_roots=False)


_CONTEXTS: Mapping[ContextName, PathContext] = {
    "resource": _above("resource", ("resource.",)),
    "scope": _above("scope", ("resource.", *_SCOPE_NAMES)),
    "span": SPAN,
    "spanevent": SPAN_EVENT,
}
_LOWEST_FIRST: Mapping[str, ContextName] = {
    "spanevent": "spanevent",
    "span": "span",
    "scope": "scope",
    "instrumentation_scope": "scope",
    "resource": "resource",
}


@lru_cache(maxsize=256)
def compiled(text: str, context: ContextName) -> Condition:
    """Return a condition.

    Raises:
        ValueError: it can't be read; the text says where and why.
    """
    try:
        return Condition(text, _CONTEXTS[context])
    except ConditionError as error:
        raise ValueError(_placed(error, text)) from None


def context_of(conditions: Sequence[str]) -> ContextName:
    """Return what conditions are about: the lowest of what their paths begin with, as in the Collector.

    Raises:
        ValueError: a path does not say, or there are no conditions.
    """
    named: set[str] = set()
    for text in conditions:
        try:
            nodes = list(syntax.within(parse_condition(text)))
        except ConditionError as error:
            raise ValueError(_placed(error, text)) from None
        for node in nodes:
            if isinstance(node, syntax.Path):
                named.add(_prefix(node, text))
            elif isinstance(node, syntax.FunctionCall) and node.name == ROOT_CHECK:
                named.add("span")
    for name, context in _LOWEST_FIRST.items():
        if name in named:
            return context
    raise ValueError("no path says what the conditions are about; put them in a group with a context")


def _prefix(path: syntax.Path, text: str) -> str:
    first = path.segments[0].name
    if len(path.segments) == 1 or first not in _LOWEST_FIRST:
        known = ", ".join(f"{name}.{path}" for name, context in _CONTEXTS.items() if f"{name}.{path}" in context.fields)
        problem = f"the path {str(path)!r} does not say what it is of" + (f"; there are {known}" if known else "")
        raise ValueError(_placed(ConditionError(problem, text, path.at), text))
    return first


def _placed(error: ConditionError, text: str) -> str:
    return f"line {error.line}, column {error.column} of {text!r}: {error.problem}"
