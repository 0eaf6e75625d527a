"""Functions on lists and maps."""

from collections.abc import Mapping, Sequence

from podtrail_processors.ottl.functions.parameters import (
    Function,
    Parameter,
    a_list,
    a_map,
    anything,
    boolean,
    element_text,
    text,
)
from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import is_number, kind_of

_MISSING = object()


def _coalesce(values: list[object]) -> object:
    return next((value for value in values if value is not None), None)


def _sort(target: object, order: str | None = None) -> object:
    """Return a list sorted, as numbers if it has only these, else as texts. What can't be sorted stays as it is."""
    if not isinstance(target, list) or not all(isinstance(v, str | bool | int | float | None) for v in target):
        return target
    descending = order == "desc"
    if all(type(value) is int for value in target):
        return sorted(target, reverse=descending)
    if all(map(is_number, target)):
        return sorted(map(float, target), reverse=descending)
    return sorted(map(element_text, target), reverse=descending)


def _check_order(constants: Mapping[str, object]) -> None:
    order = constants.get("order")
    if order not in (None, "asc", "desc"):
        raise ValueError(f"the order is asc or desc, not {order!r}")


def _to_key_value_string(
    target: dict[str, object], delimiter: str = "=", pair_delimiter: str = " ", sort_output: bool = False
) -> str:
    def quoted(text: str) -> str:
        escaped = text.replace('"', '\\"')
        return f'"{escaped}"' if delimiter in escaped or pair_delimiter in escaped else escaped

    items = sorted(target.items()) if sort_output else target.items()
    return pair_delimiter.join(f"{quoted(key)}{delimiter}{quoted(element_text(value))}" for key, value in items)


def check_delimiters(constants: Mapping[str, object]) -> None:
    """Refuse delimiters by which pairs can't be told from their parts.

    Raises:
        ValueError: they are equal, or one is empty.
    """
    delimiter, pair_delimiter = constants.get("delimiter", "="), constants.get("pair_delimiter", " ")
    if delimiter == pair_delimiter:
        raise ValueError("the two delimiters must differ")
    if "" in (delimiter, pair_delimiter):
        raise ValueError("a delimiter must not be empty")


def _slice_to_map(
    target: list[object], key_path: Sequence[object] | None = None, value_path: Sequence[object] | None = None
) -> dict[str, object]:
    found: dict[str, object] = {}
    for index, item in enumerate(target):
        key = str(index) if not key_path else _below(item, key_path)
        value = item if not value_path else _below(item, value_path)
        if isinstance(key, str) and value is not _MISSING:
            found[key] = value
    return found


def _below(item: object, path: Sequence[object]) -> object:
    for name in path:
        if not isinstance(item, dict):
            return _MISSING
        item = item.get(name, _MISSING)
    return item


def _text_list(value: object) -> object:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise EvaluationError(f"expected a list of strings but got {kind_of(value)}")


FUNCTIONS = (
    Function("Coalesce", (Parameter("values", a_list),), _coalesce),
    Function("Keys", (Parameter("target", a_map),), list),
    Function(
        "SliceToMap",
        (
            Parameter("target", a_list),
            Parameter("key_path", _text_list, True),
            Parameter("value_path", _text_list, True),
        ),
        _slice_to_map,
    ),
    Function("Sort", (Parameter("target", anything), Parameter("order", text, True)), _sort, _check_order),
    Function(
        "ToKeyValueString",
        (
            Parameter("target", a_map),
            Parameter("delimiter", text, True),
            Parameter("pair_delimiter", text, True),
            Parameter("sort_output", boolean, True),
        ),
        _to_key_value_string,
        check_delimiters,
    ),
    Function("Values", (Parameter("target", a_map),), lambda target: list(target.values())),
)
"""Functions on lists and maps."""
