"""The scheduler's configuration changed while a Pod waited: between which attempts, and who changed it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from podtrail.otlp import SpanView
from podtrail.story.attempt import AttemptStory
from podtrail.story.lines import Line, TextPiece, dim, line, safe, strong
from podtrail.story.link import SpanFate
from podtrail.story.values import text

_SHOWN = 6
"""Characters of a generation, as long as they tell the two apart."""


class ConfigurationChange(NamedTuple):
    """Two attempts, of those known one behind the other, that were made with different configurations."""

    before: AttemptStory
    after: AttemptStory


class Changer(NamedTuple):
    """The span that made a configuration, as far as it is held here."""

    trace_id: bytes
    name: str
    """What was done; "" where it is not held."""
    about: str
    """The object that it was done to: `Scheduler default/podtrail`; "" where the span does not say."""
    became: str
    """Why it is not held; "" when it is."""


def configuration_changes(attempts: Sequence[AttemptStory]) -> list[ConfigurationChange]:
    """Return the changes between attempts, the earliest first; an attempt that does not say is passed over."""
    told = [attempt for attempt in attempts if attempt.generation]
    return [ConfigurationChange(*pair) for pair in pairwise(told) if pair[0].generation != pair[1].generation]


def change_that_made(attempts: Sequence[AttemptStory], attempt: AttemptStory | None) -> bytes:
    """Return trace and span id of what made the configuration of an attempt, or of the one behind the last change."""
    changes = configuration_changes(attempts)
    made = attempt or (changes[-1].after if changes else None)
    return made.change if made is not None else b""


def read_changer(trace_id: bytes, span: SpanView | None, fate: SpanFate) -> Changer:
    """Return who changed the configuration, from their span if it is held."""
    if span is None:
        return Changer(trace_id, "", "", fate.words)
    attributes = span.attributes
    name, namespace = text(attributes.get("k8s.object.name")), text(attributes.get("k8s.namespace.name"))
    kind = text(attributes.get("k8s.object.kind"))
    place = f"{namespace}/{name}" if namespace and name else name
    return Changer(trace_id, span.name, f"{kind} {place}".strip() if place else "", "")


def change_line(change: ConfigurationChange, changer: Changer | None, earlier: int = 0) -> Line:
    """Return a change in words; `earlier` is how many there were before it. What spans say is made harmless."""
    before, after = (safe(each.generation, 40) for each in change)
    if before[:_SHOWN] != after[:_SHOWN]:
        before, after = before[:_SHOWN], after[:_SHOWN]
    pieces: list[str | TextPiece] = [
        f"The scheduler's configuration changed between attempt {change.before.number} and {change.after.number} (",
        strong(f"{before} → {after}"),
        ")",
    ]
    if changer is not None:
        of = f" of {safe(changer.about, 120)}" if changer.about else ""
        who = (
            f"{safe(changer.name, 80)}{of}"
            if changer.name
            else f"a span that is not held ({safe(changer.became, 200)})"
        )
        pieces += [f", by {who}", dim(f", trace {changer.trace_id.hex()}")]
    pieces.append(f"; {earlier:,} more before." if earlier else ".")
    return line(*pieces)
