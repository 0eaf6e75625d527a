"""What is done with the attributes of a span, as the Collector does it."""

import hashlib
import struct
from collections.abc import Callable, Collection, Iterable, Mapping

from podtrail.config.re2 import NamedGroups, finder
from podtrail.otlp import Value
from podtrail_processors.attributes.config import AttributeAction
from podtrail_processors.ottl import EvaluationError
from podtrail_processors.ottl.functions.parameters import double_like, element_text, integer_like


class Edited:
    """The attributes of a span, and what was changed of them."""

    def __init__(self, attributes: Mapping[str, Value]) -> None:
        self.now = dict(attributes)
        self.changed: dict[str, Value] = {}
        self.removed: set[str] = set()

    def set(self, key: str, value: Value) -> None:
        """Set an attribute."""
        self.now[key] = self.changed[key] = value
        self.removed.discard(key)

    def remove(self, key: str) -> None:
        """Remove an attribute if it is there."""
        if key in self.now:
            del self.now[key]
            self.changed.pop(key, None)
            self.removed.add(key)


Edit = Callable[[Edited], None]
_Names = Callable[[Collection[str]], Iterable[str]]


def edit_of(action: AttributeAction) -> Edit:
    """Return what carries out an action."""
    match action.action:
        case "delete":
            meant = _meant(action)
            return lambda span: _delete(span, meant)
        case "hash":
            meant = _meant(action)
            return lambda span: _hash(span, meant)
        case "extract":
            groups = NamedGroups(action.pattern)
            return lambda span: _extract(span, action.key, groups)
        case "convert":
            convert = _CONVERSIONS[action.converted_type or "string"]
            return lambda span: _convert(span, action.key, convert)
    return lambda span: _put(span, action)


def key_needed(action: AttributeAction) -> str:
    """Return the attribute without which an action has no effect; "" when there is none."""
    if action.action == "insert" or (action.pattern and action.action != "extract"):
        return ""
    if action.action == "upsert":
        return action.from_attribute if action.default_value is None else ""
    return action.key


def _put(span: Edited, action: AttributeAction) -> None:
    value = action.value
    if action.from_attribute:
        value = span.now.get(action.from_attribute)
        if action.from_attribute not in span.now:
            if action.default_value is None:
                return
            value = action.default_value
    elif value is None:
        value = action.default_value
    there = action.key in span.now
    if action.action == "upsert" or there == (action.action == "update"):
        span.set(action.key, value)


def _delete(span: Edited, meant: _Names) -> None:
    for name in meant(span.now):
        span.remove(name)


def _hash(span: Edited, meant: _Names) -> None:
    # The key first and then all that the pattern finds: one that is meant by both is hashed twice, as there.
    for name in meant(span.now):
        span.set(name, _hashed(span.now[name]))


def _meant(action: AttributeAction) -> _Names:
    key = action.key
    matches = finder([action.pattern] if action.pattern else [])
    return lambda there: [*([key] if key in there else []), *filter(matches, there)]


def _hashed(value: Value) -> str:
    match value:
        case str():
            raw = value.encode("utf-8", "surrogateescape")
        case bool():
            raw = bytes([value])
        case int():
            raw = value.to_bytes(8, "little", signed=True)
        case float():
            raw = struct.pack("<d", value)
        case _:
            raw = b""
    return hashlib.sha256(raw).hexdigest() if raw else ""


def _extract(span: Edited, key: str, groups: NamedGroups) -> None:
    value = span.now.get(key)
    found = groups.find(value) if isinstance(value, str) else None
    for name, text in (found or {}).items():
        span.set(name, text)


def _convert(span: Edited, key: str, convert: Callable[[Value], Value]) -> None:
    if key in span.now:
        before = span.now[key]
        try:
            after = convert(before)
        except EvaluationError:
            return
        if type(after) is not type(before):
            span.set(key, after)


def _to_int(value: Value) -> Value:
    return integer_like(value) if isinstance(value, bool | int | float | str) else value


def _to_double(value: Value) -> Value:
    return double_like(value) if isinstance(value, bool | int | float | str) else value


_CONVERSIONS: Mapping[str, Callable[[Value], Value]] = {"int": _to_int, "double": _to_double, "string": element_text}
