"""What is done with attributes, as the Collector does it."""

import hashlib
import struct
from collections.abc import Callable, Collection, Iterable, Mapping

from podtrail.config.re2 import NamedGroups, finder
from podtrail.otlp import Value
from podtrail_processors.attribute_actions.action import AttributeAction
from podtrail_processors.ottl import EvaluationError
from podtrail_processors.ottl.functions.parameters import double_like, element_text, integer_like


class Edited:
    """The attributes of a span or a resource, and what was changed of them."""

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
            return lambda one: _delete(one, meant)
        case "hash":
            meant = _meant(action)
            return lambda one: _hash(one, meant)
        case "extract":
            groups = NamedGroups(action.pattern)
            return lambda one: _extract(one, action.key, groups)
        case "convert":
            convert = _CONVERSIONS[action.converted_type or "string"]
            return lambda one: _convert(one, action.key, convert)
    return lambda one: _put(one, action)


def edited(attributes: Mapping[str, Value], edits: Iterable[Edit]) -> Edited | None:
    """Return attributes with all that is done to them, in this order; None where nothing changes."""
    result = Edited(attributes)
    for edit in edits:
        edit(result)
    return result if result.changed or result.removed else None


def key_needed(action: AttributeAction) -> str:
    """Return the attribute without which an action has no effect; "" when there is none."""
    if action.action == "insert" or (action.pattern and action.action != "extract"):
        return ""
    if action.action == "upsert":
        return action.from_attribute if action.default_value is None else ""
    return action.key


def _put(one: Edited, action: AttributeAction) -> None:
    value = action.value
    if action.from_attribute:
        value = one.now.get(action.from_attribute)
        if action.from_attribute not in one.now:
            if action.default_value is None:
                return
            value = action.default_value
    elif value is None:
        value = action.default_value
    there = action.key in one.now
    if action.action == "upsert" or there == (action.action == "update"):
        one.set(action.key, value)


def _delete(one: Edited, meant: _Names) -> None:
    for name in meant(one.now):
        one.remove(name)


def _hash(one: Edited, meant: _Names) -> None:
    # The key first and then all that the pattern finds: one that is meant by both is hashed twice, as there.
    for name in meant(one.now):
        one.set(name, _hashed(one.now[name]))


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


def _extract(one: Edited, key: str, groups: NamedGroups) -> None:
    value = one.now.get(key)
    found = groups.find(value) if isinstance(value, str) else None
    for name, text in (found or {}).items():
        one.set(name, text)


def _convert(one: Edited, key: str, convert: Callable[[Value], Value]) -> None:
    if key in one.now:
        before = one.now[key]
        try:
            after = convert(before)
        except EvaluationError:
            return
        if type(after) is not type(before):
            one.set(key, after)


def _to_int(value: Value) -> Value:
    return integer_like(value) if isinstance(value, bool | int | float | str) else value


def _to_double(value: Value) -> Value:
    return double_like(value) if isinstance(value, bool | int | float | str) else value


_CONVERSIONS: Mapping[str, Callable[[Value], Value]] = {"int": _to_int, "double": _to_double, "string": element_text}
