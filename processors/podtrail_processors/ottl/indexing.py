"""Access to parts of values: attributes by key, and what is within their values."""

from collections.abc import Callable, Mapping, Sequence

from podtrail.otlp import Value, read_key_value
from podtrail_processors.ottl.telemetry import Getter, Pairs, Telemetry
from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import kind_of

Maps = Callable[[Telemetry], Mapping[str, Value]]


class IndexKey:
    """What stands in brackets: a constant or a computed value."""

    def __init__(self, get: Getter, constant: object = None) -> None:
        """`constant`: the value, if it is always the same."""
        self.get = get
        self.constant = constant


def whole_map(pairs: Sequence[bytes]) -> dict[str, Value]:
    """Return attributes by key; of a key given twice the first counts."""
    return dict(map(read_key_value, reversed(pairs)))


def attribute_of_pairs(pairs: Pairs, keys: Sequence[IndexKey]) -> Getter:
    """Return what gets an attribute out of its encoded form, reading no other; nil when it is not there."""
    first = keys[0].constant
    if not isinstance(first, str):
        return attribute_of_map(lambda telemetry: whole_map(pairs(telemetry)), keys)
    key, encoded = first, first.encode("utf-8", "surrogateescape")

    def get(telemetry: Telemetry) -> object:
        for pair in pairs(telemetry):
            if encoded in pair:
                name, value = read_key_value(pair)
                if name == key:
                    return value
        return None

    return _descending(get, keys[1:]) if len(keys) > 1 else get


def attribute_of_map(attributes: Maps, keys: Sequence[IndexKey]) -> Getter:
    """Return what gets an attribute; nil when it is not there."""
    first = keys[0]

    def get(telemetry: Telemetry) -> object:
        key = first.get(telemetry)
        if not isinstance(key, str):
            raise EvaluationError(f"attributes have texts for keys, not {kind_of(key)}")
        return attributes(telemetry).get(key)

    return _descending(get, keys[1:]) if len(keys) > 1 else get


_MISSING = object()


def _descending(get: Getter, keys: Sequence[IndexKey]) -> Getter:
    """Return what follows the keys below an attribute. What is missing is nil, and so is what is below it."""

    def descend(telemetry: Telemetry) -> object:
        value = _attribute_or_missing(get, telemetry)
        for key in keys:
            if value is _MISSING:
                return None
            value = _part(value, key.get(telemetry))
        return None if value is _MISSING else value

    return descend


def _attribute_or_missing(get: Getter, telemetry: Telemetry) -> object:
    # An attribute without a value is taken as missing too: neither has anything below it.
    value = get(telemetry)
    return _MISSING if value is None else value


def indexed(get: Getter, keys: Sequence[IndexKey]) -> Getter:
    """Return what follows keys into a function's value. What is missing there is an error."""

    def descend(telemetry: Telemetry) -> object:
        value = get(telemetry)
        for key in keys:
            index = key.get(telemetry)
            value = _part(value, index)
            if value is _MISSING:
                raise EvaluationError(f"there is no key {index!r}")
        return value

    return descend


def _part(value: object, key: object) -> object:
    if isinstance(value, dict) and isinstance(key, str):
        found: object = value.get(key, _MISSING)
        return found
    if isinstance(value, list) and type(key) is int:
        if not 0 <= key < len(value):
            raise EvaluationError(f"index {key} of a list of {len(value)}")
        part: object = value[key]
        return part
    raise EvaluationError(f"{kind_of(value)} can't be indexed by {kind_of(key)}")
