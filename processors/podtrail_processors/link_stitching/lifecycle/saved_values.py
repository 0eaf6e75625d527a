"""Links and attributes of spans in a saved state."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from podtrail.otlp import Link, Value


class SavedLink(NamedTuple):
    """The fields of a `Link`."""

    trace_id: bytes
    span_id: bytes
    attributes: dict[str, Any]
    trace_state: str
    flags: int


def saved_link(link: Link) -> SavedLink:
    """Return a link as it is saved."""
    return SavedLink(link.trace_id, link.span_id, dict(link.attributes), link.trace_state, link.flags)


def restored_link(saved: SavedLink) -> Link:
    """Return a link that was saved."""
    return Link(saved.trace_id, saved.span_id, restored_attributes(saved.attributes), saved.trace_state, saved.flags)


def restored_attributes(saved: Mapping[str, Any]) -> dict[str, Value]:
    """Return attributes that were saved: with lists, which a saved state has as tuples."""
    return {key: _value(value) for key, value in saved.items()}


def _value(value: Any) -> Value:
    match value:
        case tuple():
            return [*map(_value, value)]
        case dict():
            return restored_attributes(value)
        case _:
            plain: Value = value
            return plain
