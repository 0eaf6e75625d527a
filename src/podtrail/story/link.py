"""Links between traces, seen from one of them: both directions, and what became of the other end."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from podtrail.otlp import Link

CONFIGURATION = "configuration"
"""The type of the link from an attempt to what made the scheduler's configuration."""
NOT_RECEIVED = "not received"
"""The words for a target that nothing is known of."""


class SpanFate(NamedTuple):
    """What became of the span at the other end of a link."""

    held: bool
    """It can be opened."""
    label: str
    """What it is, where that is known: `SchedulePod, attempt 6 of default/web-0`."""
    words: str
    """Why it can't be opened: `not kept (no policy said yes)`, `not received`, …; "" when it can."""
    decided: bool = False
    """A decision about its trace is held, of one that can't be opened."""


Resolve = Callable[[bytes, bytes], SpanFate]
"""From trace id and span id to what became of that span."""


def unresolved(_trace_id: bytes, _span_id: bytes) -> SpanFate:
    """Say of a span that nothing is known of it: where a trace is told apart from what is held, in a thread."""
    return SpanFate(held=False, label="", words=NOT_RECEIVED)


def resolved(told: SpanFate, known: SpanFate) -> SpanFate:
    """Return what became of a span; what the link itself `told` counts where nothing else is `known`."""
    return known if known.held or known.words != NOT_RECEIVED else known._replace(words=told.words)


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
    fate: SpanFate


class BackLink(NamedTuple):
    """A link elsewhere that points at a span of this trace."""

    here: bytes
    trace_id: bytes
    span_id: bytes
    type: str


def link_type(link: Link) -> str:
    """Return what a link means; "" where it does not say."""
    kind = link.attributes.get("podtrail.link.type")
    return kind if isinstance(kind, str) else ""


def is_back_link(link: Link) -> bool:
    """Return whether a link is the other side of one that another span has."""
    return link.attributes.get("podtrail.link.back") is True


def tell_links(
    leaving: Iterable[tuple[bytes, Link]], arriving: Iterable[BackLink], resolve: Resolve
) -> list[LinkStory]:
    """Return the links of a trace with what became of their other ends, each pair of both directions once.

    Args:
        leaving: Spans of the trace (their ids) with the links that they have.
        arriving: Links of other traces to it.
        resolve: Tells what became of a span.
    """
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


def _fate(link: Link, fate: SpanFate) -> SpanFate:
    """Take the link's own word for a target that nothing else is known of."""
    reason = link.attributes.get("podtrail.link.target.reason")
    if fate.held or fate.words != NOT_RECEIVED or link.attributes.get("podtrail.link.target") != "dropped":
        return fate
    return fate._replace(words=f"not kept ({reason})" if reason and isinstance(reason, str) else "not kept")
