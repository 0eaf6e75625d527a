"""Which spans `include` and `exclude` mean."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from podtrail.config.re2 import finder
from podtrail.otlp import Group, SpanFields, Value
from podtrail.otlp.surroundings import resource_fields, scope_fields
from podtrail_processors.attributes.config import SPAN_KINDS, Match, WantedAttribute
from podtrail_processors.ottl import EvaluationError
from podtrail_processors.ottl.functions.parameters import element_text

_NAMELESS = "<nil-service-name>"
"""What a resource without a service is called, as in the Collector."""

Matches = Callable[[str], bool]
Attributes = Mapping[str, Value]


class WantedValue(NamedTuple):
    """An attribute that must be there."""

    key: str
    fits: Callable[[Value], bool]


class Matcher:
    """Says which groups and spans a `Match` means."""

    def __init__(self, config: Match) -> None:
        texts = _any_of if config.match_type == "strict" else _any_expression
        self._services = texts(config.services)
        self._names = texts(config.span_names)
        self._kinds = texts(config.span_kinds)
        self._attributes = [_wanted(item, config.match_type) for item in config.attributes]
        self._resources = [_wanted(item, config.match_type) for item in config.resources]
        self._libraries = [
            (texts([library.name]), None if library.version is None else texts([library.version]))
            for library in config.libraries
        ]

    def may_match(self, group: Group) -> bool:
        """Say whether resource and scope of a group are meant."""
        resource = resource_fields(group.resource).attributes
        scope = scope_fields(group.scope)
        service = _text(resource["service.name"]) if "service.name" in resource else _NAMELESS
        return (
            self._services(service)
            and _all_there(self._resources, resource)
            and all(name(scope.name) and (not version or version(scope.version)) for name, version in self._libraries)
        )

    def matches(self, span: SpanFields, attributes: Attributes) -> bool:
        """Say whether a span of a group that may match is meant."""
        kind = SPAN_KINDS[span.kind] if 0 <= span.kind < len(SPAN_KINDS) else ""
        return self._names(span.name.decode()) and self._kinds(kind) and _all_there(self._attributes, attributes)


def _any_of(texts: Sequence[str]) -> Matches:
    return frozenset(texts).__contains__ if texts else lambda _: True


def _any_expression(texts: Sequence[str]) -> Matches:
    return finder(texts) if texts else lambda _: True


def _wanted(item: WantedAttribute, match_type: str) -> WantedValue:
    if item.value is None:
        return WantedValue(item.key, lambda _: True)
    if match_type == "strict":
        return WantedValue(item.key, lambda value: type(value) is type(item.value) and value == item.value)
    matches = finder([item.value])
    return WantedValue(item.key, lambda value: _plain(value) and matches(_text(value)))


def _text(value: Value) -> str:
    """Return a value as text; none for what has no JSON, such as infinity."""
    try:
        return element_text(value)
    except EvaluationError:
        return ""


def _plain(value: Value) -> bool:
    return isinstance(value, str | bool | int | float)


def _all_there(wanted: Sequence[WantedValue], attributes: Attributes) -> bool:
    return all(item.key in attributes and item.fits(attributes[item.key]) for item in wanted)
