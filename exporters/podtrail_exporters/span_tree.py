"""Traces as trees of text, in the words of the Collector's `debug` exporter: what `verbosity: detailed` shows."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from podtrail.config import printable
from podtrail.otlp import KINDS, Group, SpanView, Value, resource_attributes, scope_name, split

_INDENT: Final = "  "
_MARGIN: Final = "     "
"""Before what a span tells of itself, so that names stand out."""
_DEEPEST: Final = 40
"""Levels that are indented; what is deeper stands as deep."""
_STATUS: Final = ("Unset", "Ok", "Error")
_UNITS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))


class _Node(NamedTuple):
    """A span with where it came from."""

    span: SpanView
    resource: bytes
    scope: bytes


def trees(groups: Sequence[Group]) -> Iterator[str]:
    """Yield each trace as lines: spans below their parents, by start; each with what it tells."""
    traces: dict[bytes, list[_Node]] = {}
    for group in groups:
        for raw in split(group.spans):
            traces.setdefault(group.trace_id, []).append(_Node(SpanView(raw), group.resource, group.scope))
    for trace_id, nodes in traces.items():
        yield f"Trace ID: {trace_id.hex()}"
        yield from _tree(nodes)


def _tree(nodes: Sequence[_Node]) -> Iterator[str]:
    known = {node.span.span_id for node in nodes}
    children: dict[bytes, list[int]] = {}
    roots: list[int] = []
    for at in sorted(range(len(nodes)), key=lambda at: nodes[at].span.start):
        parent = nodes[at].span.parent_span_id
        if parent in known:
            children.setdefault(parent, []).append(at)
        else:
            roots.append(at)
    seen: set[int] = set()
    # Spans that are each other's parents hang below no root: they follow as if they were roots.
    for first in (*roots, *range(len(nodes))):
        open_: list[tuple[int, int, _Node | None]] = [(first, 0, None)]
        while open_:
            at, depth, above = open_.pop()
            if at in seen:
                continue
            seen.add(at)
            node = nodes[at]
            yield from _told(node, above, _INDENT * (1 + min(depth, _DEEPEST)))
            below = children.get(node.span.span_id, ())
            open_ += [(child, depth + 1, node) for child in reversed(below)]


def _told(node: _Node, above: _Node | None, indent: str) -> Iterator[str]:
    span = node.span
    yield f"{indent}{_text(span.name) or '(no name)'}  {_length(span.duration)}"
    inner = indent + _MARGIN
    parent = f", Parent ID: {span.parent_span_id.hex()}, not in this batch" if _is_lost(span, above) else ""
    kind = KINDS[span.kind].capitalize() if 0 <= span.kind < len(KINDS) else str(span.kind)
    yield f"{inner}ID: {span.span_id.hex()}, Kind: {kind}{parent}"
    yield f"{inner}Start time: {_time(span.start)}, End time: {_time(span.end)}"
    status = _STATUS[span.status.code] if 0 <= span.status.code < len(_STATUS) else str(span.status.code)
    if span.status.code or span.status.message:
        yield f"{inner}Status code: {status}, Status message: {_text(span.status.message)}"
    if span.trace_state or span.flags:
        yield f"{inner}TraceState: {_text(span.trace_state)}, Flags: {span.flags:#x}"
    if above is None or above.resource != node.resource:
        yield from _attributes("Resource attributes", resource_attributes(node.resource), inner)
    if above is None or above.scope != node.scope:
        yield f"{inner}InstrumentationScope {_text(scope_name(node.scope))}".rstrip()
    yield from _attributes("Attributes", span.attributes, inner)
    for event in span.events:
        yield from _attributes(f"Event {_text(event.name)}, {_after(event.time, span.start)}", event.attributes, inner)
    for link in span.links:
        to = f"Link to Trace ID: {link.trace_id.hex()}, ID: {link.span_id.hex()}"
        yield from _attributes(to, link.attributes, inner)


def _is_lost(span: SpanView, above: _Node | None) -> bool:
    return above is None and bool(span.parent_span_id.strip(b"\0"))


def _attributes(head: str, attributes: Mapping[str, Value], indent: str) -> Iterable[str]:
    if not attributes and head.endswith("ttributes"):
        return []
    lines = [f"{indent}{_INDENT}-> {_text(key)}: {_value(value)}" for key, value in attributes.items()]
    return [f"{indent}{head}{':' if lines else ''}", *lines]


def _value(value: Value) -> str:
    """Return a value with its type, as the Collector writes it."""
    match value:
        case None:
            return "Empty()"
        case bool():
            return f"Bool({str(value).lower()})"
        case int():
            return f"Int({value})"
        case float():
            return f"Double({value:g})"
        case str():
            return f"Str({_text(value)})"
        case bytes():
            return f"Bytes({value.hex()})"
        case dict():
            return f"Map({_text(json.dumps(value, default=_plain))})"
        case _:
            return f"Slice({_text(json.dumps(value, default=_plain))})"


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _text(text: str) -> str:
    r"""Return text in one line, without power over a terminal: a line feed is `\n`."""
    return printable(text).replace("\n", "\\n")


def _length(nanoseconds: int | None) -> str:
    if nanoseconds is None:
        return "duration unknown"
    for size, unit in _UNITS:
        if nanoseconds >= size:
            return f"{nanoseconds / size:.4g} {unit}"
    return f"{nanoseconds} ns"


def _after(moment: int, start: int) -> str:
    return (
        f"Timestamp: {_time(moment)} (+{_length(moment - start)})" if moment >= start else f"Timestamp: {_time(moment)}"
    )


def _time(unix_nano: int) -> str:
    try:
        moment = datetime.fromtimestamp(unix_nano // 1_000_000_000, UTC)
    except (OverflowError, OSError, ValueError):
        return str(unix_nano)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{unix_nano % 1_000_000_000:09} +0000 UTC"
