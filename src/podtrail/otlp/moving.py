"""Moving spans into another trace: ids of trace and parent, and of the traces that links lead to, are written anew."""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from podtrail.otlp.edit import append_attributes
from podtrail.otlp.lite import SPAN, lite_type
from podtrail.otlp.values import Value

_LINK: Final = {"trace_id": None}
# With the ids, so that these still stand first in what is written.
_SPAN: Final = cast(
    "Any", lite_type(SPAN, {**dict.fromkeys(("trace_id", "span_id", "parent_span_id")), "links": _LINK})
)
_LINKS: Final = cast("Any", lite_type(SPAN, {**dict.fromkeys(("trace_id", "span_id")), "links": _LINK}))

MovedTo = Callable[[bytes], bytes]
"""Returns the trace that the spans of a trace are moved to; b"" for one whose spans stay."""


def move_span(
    span: bytes, trace_id: bytes, parent_span_id: bytes, attributes: Mapping[str, Value], moved_to: MovedTo
) -> bytes:
    """Return a span's bytes in another trace, below another parent, with these attributes set."""
    message = _SPAN.FromString(span)
    message.trace_id = trace_id
    message.parent_span_id = parent_span_id
    _relink(message, moved_to)
    return append_attributes(message.SerializeToString(), attributes)


def relink_span(span: bytes, moved_to: MovedTo) -> bytes:
    """Return a span's bytes with links that lead to where their targets were moved."""
    message = _LINKS.FromString(span)
    changed: bytes = message.SerializeToString() if _relink(message, moved_to) else span
    return changed


def _relink(message: Any, moved_to: MovedTo) -> bool:
    changed = False
    for link in message.links:
        if trace_id := moved_to(link.trace_id):
            link.trace_id = trace_id
            changed = True
    return changed
