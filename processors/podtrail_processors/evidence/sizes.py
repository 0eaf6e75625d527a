"""The size of traces as the Collector measures it, for limits in bytes.

It cuts a request up into one ResourceSpans message a trace and writes spans anew, and always writes resource, scope,
parent and status, be they empty: 2 bytes each. (Schema URLs, which it loses, count here.)
"""

from dataclasses import dataclass
from typing import NamedTuple

from podtrail.otlp import Group, raw_span_reader, split

_EMPTY_FIELD = 2
_ALWAYS_WRITTEN = ("parent_span_id", "status")
_read = raw_span_reader(_ALWAYS_WRITTEN)


class Size(NamedTuple):
    """The bytes of a trace."""

    messages: int = 0
    """Of its ResourceSpans messages, one for each that it came in."""
    frames: int = 0
    """What one message around them all would add."""


@dataclass(slots=True)
class _Part:
    """What a trace has in one ResourceSpans message."""

    scope: bytes | None = None
    closed: int = 0
    """The bytes of the resource and of all scopes but the last, frames included."""
    open: int = 0
    """The bytes of the last scope with its spans."""


class Meter:
    """Measures the traces of one request, group by group as they come."""

    def __init__(self) -> None:
        self._parts: dict[tuple[int, bytes], _Part] = {}

    def grown(self, size: Size, message: int, group: Group) -> Size:
        """Return the size of a trace after a group of it. `message`: the number of the ResourceSpans it came in."""
        part = self._parts.get((message, group.trace_id))
        if part is None:
            part = self._parts[(message, group.trace_id)] = _Part(closed=len(group.resource) or _EMPTY_FIELD)
            before = Size()
        else:
            before = _size_of(part)
        if part.scope is not group.scope:
            part.closed += _framed(part.open) if part.open else 0
            part.open = len(group.scope) or _EMPTY_FIELD
            part.scope = group.scope
        part.open += sum(map(_framed, _span_sizes(group)))
        after = _size_of(part)
        return Size(size.messages + after.messages - before.messages, size.frames + after.frames - before.frames)


def _size_of(part: _Part) -> Size:
    messages = part.closed + _framed(part.open)
    return Size(messages, _framed(messages) - messages)


def _span_sizes(group: Group) -> list[int]:
    return [
        len(raw) + _EMPTY_FIELD * sum(not span.HasField(field) for field in _ALWAYS_WRITTEN)
        for raw, span in zip(split(group.spans), _read(group.spans), strict=True)
    ]


def _framed(size: int) -> int:
    """Return the bytes of a message with its tag and length before it."""
    return 1 + max(1, -(-size.bit_length() // 7)) + size
