"""A trace as a tree of rows with its links both ways: what a waterfall draws."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from podtrail.otlp import KINDS, Group, Link, SpanView, Value, resource_attributes, scope_name, span_reader, split
from podtrail.otlp.reader import SpanFields
from podtrail.story.view import to_json

_read = span_reader(("span_id", "parent_span_id", "name", "start_time_unix_nano", "end_time_unix_nano", "links"))
_AMENDMENT = b"podtrail.amendment"
"""A span that only carries a link which its parent, gone by then, was told of."""
_MAX_LINKS = 200
NOT_RECEIVED = "not received"
"""The words for a target that nothing is known of."""
_MAX_VALUE = 4096
_MAX_PAIRS = 128


class Fate(NamedTuple):
    """What became of the span at the other end of a link."""

    held: bool
    """It can be opened."""
    label: str
    """What it is, where that is known: `SchedulePod, attempt 6 of default/web-0`."""
    words: str
    """Why it can't be opened: `not kept (no policy said yes)`, `not received`, …; "" when it can."""


Resolve = Callable[[bytes, bytes], Fate]
"""From trace id and span id to what became of that span."""


@dataclass(frozen=True, slots=True)
class LinkStory:
    """A link that leaves this trace (`to`) or arrives at it (`from`)."""

    direction: Literal["to", "from"]
    here: bytes
    """The span of this trace."""
    trace_id: bytes
    span_id: bytes
    """The span at the other end."""
    type: str
    """`previous-attempt`, `creation`, …; "" where the link does not say."""
    inferred: bool
    """No span carried it: it was concluded from names, uids and times."""
    fate: Fate


class BackLink(NamedTuple):
    """A link elsewhere that points at a span of this trace."""

    here: bytes
    trace_id: bytes
    span_id: bytes
    type: str


@dataclass(frozen=True, slots=True)
class SpanRow:
    """One row of the waterfall. Times are nanoseconds."""

    span_id: bytes
    depth: int
    name: str
    service: str
    offset: int
    """From the start of the trace."""
    duration: int | None
    error: bool
    orphan: bool
    """It names a parent that was not received."""
    children: int
    hidden: int
    """Spans below it that are not shown."""
    links: int


@dataclass(frozen=True, slots=True)
class EventStory:
    """A moment within a span."""

    offset: int
    """Nanoseconds from the start of the span."""
    name: str
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SpanStory:
    """One span in full."""

    span_id: bytes
    parent_span_id: bytes
    name: str
    kind: str
    service: str
    scope: str
    trace_state: str
    start_unix_nano: int
    duration: int | None
    status: Literal["unset", "ok", "error"]
    message: str
    attributes: tuple[tuple[str, str], ...]
    resource: tuple[tuple[str, str], ...]
    events: tuple[EventStory, ...]


@dataclass(frozen=True, slots=True)
class TraceStory:
    """A trace as it is shown."""

    trace_id: bytes
    title: str
    """The name of its first root."""
    start_unix_nano: int
    duration: int
    """Nanoseconds from the first start to the last end."""
    span_count: int
    rows: tuple[SpanRow, ...]
    """Depth first, by start."""
    chosen: SpanStory
    """The span asked for, else the first row's."""
    links: tuple[LinkStory, ...]
    more_links: int


class _Node(NamedTuple):
    fields: SpanFields
    raw: bytes
    group: Group


def tell_trace(
    groups: Iterable[Group],
    resolve: Resolve,
    arriving: Sequence[BackLink] = (),
    *,
    span_id: bytes = b"",
    limit: int = 500,
) -> TraceStory | None:
    """Return the story of one trace from its groups, at most `limit` rows; None when there is no span.

    Deeper levels are left out first, and counted on the row above them. A span whose parent is missing stands at the
    left; parents that form a ring are cut at the earliest span.
    """
    nodes, amendments = _nodes(groups)
    if not nodes:
        return None
    start = min(node.fields.start_time_unix_nano for node in nodes.values())
    end = max(max(node.fields.end_time_unix_nano, node.fields.start_time_unix_nano) for node in nodes.values())
    order = _depth_first(nodes)
    shown, hidden = _fold(order, limit)
    leaving = [(node.fields.span_id, link) for node in nodes.values() for link in _links(node)]
    leaving += [(node.fields.parent_span_id, link) for node in amendments for link in _links(node)]
    links = _tell_links(leaving, arriving, resolve)
    at_row: dict[bytes, int] = {}
    for link in links:
        at_row[link.here] = at_row.get(link.here, 0) + 1
    rows = [_row(nodes, where, start, hidden.get(where.span_id, 0), at_row.get(where.span_id, 0)) for where in shown]
    chosen = nodes.get(span_id) or nodes[order[0].span_id]
    first = order[0].span_id
    return TraceStory(
        trace_id=nodes[first].group.trace_id,
        title=SpanView(nodes[first].raw).name,
        start_unix_nano=start,
        duration=end - start,
        span_count=len(nodes),
        rows=tuple(rows),
        chosen=_tell_span(chosen),
        links=tuple(links[:_MAX_LINKS]),
        more_links=max(0, len(links) - _MAX_LINKS),
    )


def _nodes(groups: Iterable[Group]) -> tuple[dict[bytes, _Node], list[_Node]]:
    """Return the spans by id, in order of start, of several with one id the first; and amendments to them apart."""
    found: dict[bytes, _Node] = {}
    for group in groups:
        for fields, raw in zip(_read(group.spans), split(group.spans), strict=True):
            found.setdefault(fields.span_id, _Node(fields, raw, group))
    amending = [
        span_id
        for span_id, node in found.items()
        if bytes(node.fields.name) == _AMENDMENT and node.fields.parent_span_id in found
    ]
    amendments = [found.pop(span_id) for span_id in amending] if len(amending) < len(found) else []
    return dict(sorted(found.items(), key=lambda item: item[1].fields.start_time_unix_nano)), amendments


class _Place(NamedTuple):
    span_id: bytes
    depth: int
    parent: bytes
    orphan: bool
    children: int


def _depth_first(nodes: Mapping[bytes, _Node]) -> list[_Place]:
    children: dict[bytes, list[bytes]] = {}
    roots: list[bytes] = []
    for span_id, node in nodes.items():
        parent = node.fields.parent_span_id
        if parent in nodes and parent != span_id:
            children.setdefault(parent, []).append(span_id)
        else:
            roots.append(span_id)
    # True roots first, then what hangs in the air.
    roots.sort(key=lambda span_id: bool(nodes[span_id].fields.parent_span_id.strip(b"\0")))
    order: list[_Place] = []
    seen: set[bytes] = set()
    for root in (*roots, *nodes):
        stack = [(root, 0, b"")]
        while stack:
            span_id, depth, parent = stack.pop()
            if span_id in seen:
                continue
            seen.add(span_id)
            below = children.get(span_id, [])
            orphan = depth == 0 and bool(nodes[span_id].fields.parent_span_id.strip(b"\0"))
            order.append(_Place(span_id, depth, parent, orphan, len(below)))
            stack += [(child, depth + 1, span_id) for child in reversed(below)]
    return order


def _fold(order: Sequence[_Place], limit: int) -> tuple[list[_Place], dict[bytes, int]]:
    """Return the rows to show and, by span id, how many spans are hidden below a shown one."""
    if len(order) <= limit:
        return list(order), {}
    at_depth: dict[int, int] = {}
    for place in order:
        at_depth[place.depth] = at_depth.get(place.depth, 0) + 1
    room, deepest = limit, 0
    while at_depth.get(deepest, 0) <= room and deepest in at_depth:
        room -= at_depth[deepest]
        deepest += 1
    shown: list[_Place] = []
    hidden: dict[bytes, int] = {}
    above: dict[bytes, bytes] = {}
    for place in order:
        if place.depth < deepest or (place.depth == deepest and room > 0):
            room -= place.depth == deepest
            shown.append(place)
            above[place.span_id] = place.span_id
        else:
            above[place.span_id] = over = above.get(place.parent, shown[-1].span_id)
            hidden[over] = hidden.get(over, 0) + 1
    return shown, hidden


def _row(nodes: Mapping[bytes, _Node], place: _Place, start: int, hidden: int, links: int) -> SpanRow:
    node = nodes[place.span_id]
    span = SpanView(node.raw)
    return SpanRow(
        span_id=place.span_id,
        depth=place.depth,
        name=span.name,
        service=_service(node.group),
        offset=span.start - start,
        duration=span.duration,
        error=span.status.code == 2,
        orphan=place.orphan,
        children=place.children,
        hidden=hidden,
        links=links,
    )


def _service(group: Group) -> str:
    name = resource_attributes(group.resource).get("service.name")
    return name if isinstance(name, str) else ""


def _links(node: _Node) -> Sequence[Link]:
    return SpanView(node.raw).links if node.fields.links else ()


def link_type(link: Link) -> str:
    """Return what a link means; "" where it does not say."""
    kind = link.attributes.get("podtrail.link.type")
    return kind if isinstance(kind, str) else ""


def is_back_link(link: Link) -> bool:
    """Return whether a link is the other side of one that another span has."""
    return link.attributes.get("podtrail.link.back") is True


def _tell_links(
    leaving: Iterable[tuple[bytes, Link]], arriving: Iterable[BackLink], resolve: Resolve
) -> list[LinkStory]:
    told: dict[tuple[bool, bytes, bytes, bytes], LinkStory] = {}
    for here, link in leaving:
        back = is_back_link(link)
        story = LinkStory(
            direction="from" if back else "to",
            here=here,
            trace_id=link.trace_id,
            span_id=link.span_id,
            type=link_type(link),
            inferred=link.attributes.get("podtrail.inferred") is True,
            fate=_fate(link, resolve(link.trace_id, link.span_id)),
        )
        told.setdefault((back, here, link.trace_id, link.span_id), story)
    for one in arriving:
        fate = resolve(one.trace_id, one.span_id)
        story = LinkStory("from", one.here, one.trace_id, one.span_id, one.type, inferred=False, fate=fate)
        told.setdefault((True, one.here, one.trace_id, one.span_id), story)
    return list(told.values())


def _fate(link: Link, fate: Fate) -> Fate:
    """Take the link's own word for a target that nothing else is known of."""
    reason = link.attributes.get("podtrail.link.target.reason")
    if fate.held or fate.words != NOT_RECEIVED or link.attributes.get("podtrail.link.target") != "dropped":
        return fate
    return fate._replace(words=f"not kept ({reason})" if reason and isinstance(reason, str) else "not kept")


def _tell_span(node: _Node) -> SpanStory:
    span = SpanView(node.raw)
    known = 0 <= span.kind < len(KINDS)
    return SpanStory(
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        name=span.name,
        kind=KINDS[span.kind] if known else str(span.kind),
        service=_service(node.group),
        scope=scope_name(node.group.scope),
        trace_state=span.trace_state,
        start_unix_nano=span.start,
        duration=span.duration,
        status=("unset", "ok", "error")[span.status.code] if span.status.code in (0, 1, 2) else "unset",
        message=span.status.message,
        attributes=_pairs(span.attributes),
        resource=_pairs(resource_attributes(node.group.resource)),
        events=tuple(
            EventStory(event.time - span.start, event.name, _pairs(event.attributes))
            for event in span.events[:_MAX_PAIRS]
        ),
    )


def _pairs(attributes: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
    pairs = [(key, _value(value)) for key, value in list(attributes.items())[:_MAX_PAIRS]]
    if len(attributes) > _MAX_PAIRS:
        pairs.append(("…", f"{len(attributes) - _MAX_PAIRS:,} more"))
    return tuple(pairs)


def _value(value: Value) -> str:
    shown = value if isinstance(value, str) else json.dumps(to_json(value), ensure_ascii=False)
    return shown if len(shown) <= _MAX_VALUE else f"{shown[:_MAX_VALUE]}… ({len(shown):,} characters)"
