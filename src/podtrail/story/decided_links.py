"""Links of traces whose spans are held for their decision alone: those that were not kept."""

from collections.abc import Iterable, Iterator
from typing import Final

from podtrail.otlp import Group, SpanView, split
from podtrail.story.decisions import DecisionEntry
from podtrail.story.link import BackLink, is_back_link, link_type

_MOST_BYTES: Final = 16 << 20
"""Of spans that are looked through, the latest: all that the default memory holds, in about 4 ms."""
_MOST_LINKS: Final = 200


def links_to(trace_id: bytes, decided: Iterable[DecisionEntry]) -> list[BackLink]:
    """Return the links that point at a trace from spans that others were decided on, in the order of the decisions.

    A thread may look for them: what is decided meanwhile, or let go of, is no matter.
    """
    found: dict[BackLink, None] = {}
    looked = 0
    for entry in decided:
        verdict = entry.verdict
        for group in verdict.groups if verdict else ():
            looked += len(group.spans)
            if looked > _MOST_BYTES or len(found) >= _MOST_LINKS:
                return [*found][:_MOST_LINKS]
            # The search for an id among bytes is what makes this cheap: spans that have none are not parted.
            if group.trace_id != trace_id and trace_id in group.spans:
                found |= dict.fromkeys(_links(group, trace_id))
    return [*found][:_MOST_LINKS]


def _links(group: Group, trace_id: bytes) -> Iterator[BackLink]:
    for raw in split(group.spans):
        if trace_id in raw:
            span = SpanView(raw)
            for link in span.links:
                if link.trace_id == trace_id and not is_back_link(link):
                    yield BackLink(link.span_id, group.trace_id, span.span_id, link_type(link))
