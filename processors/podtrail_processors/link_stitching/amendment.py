"""Spans of our own: what a span that has left would have been given, sent after it as its child."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

from podtrail.otlp import Group, Link, encode_span, frame, resource_header, scope_header

NAME: Final = "podtrail.amendment"
_RESOURCE: Final = resource_header({"service.name": "podtrail"})
_SCOPE: Final = scope_header("podtrail.link_stitching")


class Amendment(NamedTuple):
    """A back-link for a span that has left."""

    target: bytes
    """Trace and span id of the span, 24 bytes."""
    link: Link
    at: int
    """When by the clock of the target's trace, so that the amendment does not stretch it; Unix nanoseconds."""


def _encode(amendment: Amendment) -> bytes:
    trace_id, parent = amendment.target[:16], amendment.target[16:]
    kind = str(amendment.link.attributes.get("podtrail.link.type"))
    # The same amendment gets the same id whoever makes it: sent twice, it is one span to a backend.
    told = amendment.target + amendment.link.trace_id + amendment.link.span_id + kind.encode()
    return encode_span(
        trace_id=trace_id,
        span_id=blake2b(told, digest_size=8).digest(),
        parent_span_id=parent,
        name=NAME,
        start=amendment.at,
        end=amendment.at,
        links=[amendment.link],
    )


def amendment_groups(amendments: Iterable[Amendment]) -> Iterator[Group]:
    """Yield the amendments as groups, one a trace."""
    by_trace: dict[bytes, list[bytes]] = defaultdict(list)
    for amendment in amendments:
        by_trace[amendment.target[:16]].append(_encode(amendment))
    for trace_id, spans in by_trace.items():
        yield Group(_RESOURCE, _SCOPE, trace_id, frame(spans), len(spans))
