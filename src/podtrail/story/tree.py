"""A trace as a tree of rows with its links both ways: what a waterfall draws."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podtrail.otlp import Group, Link, SpanView, raw_span_reader, split
from podtrail.otlp.reader import SpanFields
from podtrail.story.critical_path import SpanTime, critical_path
from podtrail.story.link import BackLink, LinkStory, Resolve, tell_links
from podtrail.story.span import SpanStory, service_of, tell_span

_read = raw_span_reader(("span_id", "parent_span_id", "name", "start_time_unix_nano", "end_time_unix_nano", "links"))
AMENDMENT = b"podtrail.amendment"
"""A span that only carries a link which its parent, gone by then, was told of."""
_MAX_LINKS = 200


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
    critical: bool = False
    """It is on the critical path of the trace's first root."""


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
    first_row: int = 0
    """How many rows stand on pages before."""


class TraceRows(NamedTuple):
    """Rows of a trace, some of all; times in nanoseconds."""

    span_count: int
    duration: int
    rows: tuple[SpanRow, ...]


class _TreeNode(NamedTuple):
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
    first: int | None = None,
) -> TraceStory | None:
    """Return the story of one trace from its groups, at most `limit` rows; None when there is no span.

    Deeper levels are left out first, and counted on the row above them. A span whose parent is missing stands at the
    left; parents that form a ring are cut at the earliest span.

    Args:
        groups: Of the trace.
        resolve: Tells what became of a span at the other end of a link.
        arriving: Links of other traces to it.
        span_id: The span to be told in full.
        limit: The most rows.
        first: The rows are those of one page, all levels: from this place on; at -1 the page with `span_id`.
    """
    nodes, amendments = _nodes(groups)
    if not nodes:
        return None
    start, end = _stretch(nodes)
    order = _depth_first(nodes)
    page = 0 if first is None else _page(order, first, limit, span_id)
    shown, hidden = _fold(order, limit) if first is None else (order[page : page + limit], {})
    path = _critical(nodes, order)
    leaving = [(node.fields.span_id, link) for node in nodes.values() for link in _links(node)]
    leaving += [(node.fields.parent_span_id, link) for node in amendments for link in _links(node)]
    links = tell_links(leaving, arriving, resolve)
    at_row: dict[bytes, int] = {}
    for link in links:
        at_row[link.here] = at_row.get(link.here, 0) + 1
    rows = [
        _row(nodes, where, start, path, hidden.get(where.span_id, 0), at_row.get(where.span_id, 0)) for where in shown
    ]
    chosen = nodes.get(span_id) or nodes[order[0].span_id]
    top = order[0].span_id
    return TraceStory(
        trace_id=nodes[top].group.trace_id,
        title=SpanView(nodes[top].raw).name,
        start_unix_nano=start,
        duration=end - start,
        span_count=len(nodes),
        rows=tuple(rows),
        chosen=tell_span(chosen.raw, chosen.group),
        links=tuple(links[:_MAX_LINKS]),
        more_links=max(0, len(links) - _MAX_LINKS),
        first_row=page,
    )


def _stretch(nodes: Mapping[bytes, _TreeNode]) -> tuple[int, int]:
    """Return when the first begins and the last ends."""
    fields = [node.fields for node in nodes.values()]
    start = min(one.start_time_unix_nano for one in fields)
    return start, max(max(one.end_time_unix_nano, one.start_time_unix_nano) for one in fields)


def trace_rows(groups: Iterable[Group], first: int, limit: int) -> TraceRows:
    """Return the rows of a trace from place `first` on, at most `limit`; their links are not counted."""
    nodes, _ = _nodes(groups)
    if not nodes:
        return TraceRows(0, 0, ())
    start, end = _stretch(nodes)
    order = _depth_first(nodes)
    path = _critical(nodes, order)
    some = order[first : first + limit]
    rows = [_row(nodes, where, start, path, 0, len(_links(nodes[where.span_id]))) for where in some]
    return TraceRows(len(nodes), end - start, tuple(rows))


def _page(order: Sequence["_TreePlace"], first: int, limit: int, span_id: bytes) -> int:
    """Return the place at which a page begins."""
    if first >= 0:
        return min(first, len(order) - 1)
    at = next((at for at, place in enumerate(order) if place.span_id == span_id), 0)
    return at // limit * limit


def _critical(nodes: Mapping[bytes, _TreeNode], order: Sequence["_TreePlace"]) -> set[bytes]:
    times = {
        span_id: SpanTime(node.fields.start_time_unix_nano, node.fields.end_time_unix_nano)
        for span_id, node in nodes.items()
    }
    below: dict[bytes, list[bytes]] = {}
    for place in order:
        if place.parent:
            below.setdefault(place.parent, []).append(place.span_id)
    return critical_path(order[0].span_id, times, below)


def _nodes(groups: Iterable[Group]) -> tuple[dict[bytes, _TreeNode], list[_TreeNode]]:
    """Return the spans by id, in order of start, of several with one id the first; and amendments to them apart."""
    found: dict[bytes, _TreeNode] = {}
    for group in groups:
        for fields, raw in zip(_read(group.spans), split(group.spans), strict=True):
            found.setdefault(fields.span_id, _TreeNode(fields, raw, group))
    amending = [
        span_id
        for span_id, node in found.items()
        if bytes(node.fields.name) == AMENDMENT and node.fields.parent_span_id in found
    ]
    amendments = [found.pop(span_id) for span_id in amending] if len(amending) < len(found) else []
    return dict(sorted(found.items(), key=lambda item: item[1].fields.start_time_unix_nano)), amendments


class _TreePlace(NamedTuple):
    span_id: bytes
    depth: int
    parent: bytes
    orphan: bool
    children: int


def _depth_first(nodes: Mapping[bytes, _TreeNode]) -> list[_TreePlace]:
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
    order: list[_TreePlace] = []
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
            order.append(_TreePlace(span_id, depth, parent, orphan, len(below)))
            stack += [(child, depth + 1, span_id) for child in reversed(below)]
    return order


def _fold(order: Sequence[_TreePlace], limit: int) -> tuple[list[_TreePlace], dict[bytes, int]]:
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
    shown: list[_TreePlace] = []
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


def _row(
    nodes: Mapping[bytes, _TreeNode],
    place: _TreePlace,
    start: int,
    path: Container[bytes],
    hidden: int,
    links: int,
) -> SpanRow:
    node = nodes[place.span_id]
    span = SpanView(node.raw)
    return SpanRow(
        span_id=place.span_id,
        depth=place.depth,
        name=span.name,
        service=service_of(node.group),
        offset=span.start - start,
        duration=span.duration,
        error=span.status.code == 2,
        orphan=place.orphan,
        children=place.children,
        hidden=hidden,
        links=links,
        critical=place.span_id in path,
    )


def _links(node: _TreeNode) -> Sequence[Link]:
    return SpanView(node.raw).links if node.fields.links else ()
