"""Facts of a Pod from a watch: creation, gates, condition, node, deletion."""

from dataclasses import replace
from typing import Final

from podtrail.otlp.pod_transition import NOT_READY_FOR_SCHEDULING, SCHEDULING_GATED
from podtrail.story.node_record import NodeRecord, NodeStep
from podtrail.story.pod_facts import PodFacts

_HELD: Final = frozenset({SCHEDULING_GATED, NOT_READY_FOR_SCHEDULING})


def seen_by_watch(facts: PodFacts, record: NodeRecord) -> PodFacts:
    """Return the facts of a Pod with those that the transitions in its record show."""
    of: dict[str, list[NodeStep]] = {}
    for step in record.in_order():
        of.setdefault(step.kind, []).append(step)
    created, scheduled = (next(iter(of.get(kind, ())), None) for kind in ("created", "scheduled"))
    deleted = next(iter(of.get("deleted", ())), None)
    if deleted and of.get("created", [deleted])[-1].start_unix_nano > deleted.start_unix_nano:
        deleted = None  # the mirror of a static Pod, which was made again
    facts = replace(
        facts,
        created=facts.created or (created.start_unix_nano if created else None),
        bound=facts.bound or scheduled is not None,
        bound_at=facts.bound_at or (scheduled.start_unix_nano if scheduled else None),
        node=facts.node or (record.node if scheduled else ""),
        deleted=deleted.start_unix_nano if deleted else None if record.mirror_uid else facts.deleted,
    )
    return _held(facts, of.get("unscheduled", []), of.get("gated", []))


def _held(facts: PodFacts, unscheduled: list[NodeStep], gated: list[NodeStep]) -> PodFacts:
    """Return the facts with the gates and PreEnqueue plugins that hold the Pod, now and before."""
    if not unscheduled and not gated:
        return facts
    names = [step.what for step in (*unscheduled, *gated) if step.what]
    since = [step.start_unix_nano for step in (*unscheduled, *gated) if step.kind == "gated" or step.reason in _HELD]
    over = max((step.end for step in gated), default=0)
    last = unscheduled[-1] if unscheduled else None
    held = last is not None and last.reason in _HELD and last.start_unix_nano >= over and not facts.bound
    gates = tuple(last.what.split(", ")) if held and last is not None and last.what else ()
    return replace(
        facts,
        gates=gates,
        past_gates=tuple(names[-1].split(", ")) if names and not gates else facts.past_gates,
        held_by=last.error if held and last is not None and not gates else "",
        condition=last.reason if last is not None and not facts.bound else "",
        condition_message=last.error if last is not None and not facts.bound else "",
        gated_since=facts.gated_since or min(since, default=None),
        gated_until=None if held else over or facts.gated_until,
    )
