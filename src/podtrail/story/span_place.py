"""One span of a trace with its links, told without the rest of the trace."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from podtrail.otlp import Group, Link, SpanView, split
from podtrail.story.link import BackLink, LinkStory, Resolve, tell_links
from podtrail.story.span import SpanStory, tell_span
from podtrail.story.tree import AMENDMENT


@dataclass(frozen=True, slots=True)
class SpanPlace:
    """A span and what it is linked with."""

    span: SpanStory
    links: tuple[LinkStory, ...]


def tell_place(
    groups: Iterable[Group], span_id: bytes, arriving: Sequence[BackLink], resolve: Resolve
) -> SpanPlace | None:
    """Return a span of a trace; None where it is not among its groups."""
    if not span_id:
        return None
    found: SpanStory | None = None
    leaving: list[tuple[bytes, Link]] = []
    for group in groups:
        for raw in split(group.spans) if span_id in group.spans else ():
            if span_id not in raw:
                continue
            span = SpanView(raw)
            if span.span_id == span_id and found is None:
                found = tell_span(raw, group)
                leaving += [(span_id, link) for link in span.links]
            elif span.parent_span_id == span_id and span.name.encode() == AMENDMENT:
                leaving += [(span_id, link) for link in span.links]
    if found is None:
        return None
    here = [link for link in arriving if link.here == span_id]
    return SpanPlace(found, tuple(tell_links(leaving, here, resolve)))
