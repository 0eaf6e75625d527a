"""`dry_run`: what would have been dropped passes, marked with what would have become of it."""

from collections.abc import Sequence

from podtrail.otlp import Group, SpanView, append_attributes, frame, split
from podtrail_processors.tail_sampling.judge import Judgement


def spared(groups: Sequence[Group], judgement: Judgement) -> Sequence[Group]:
    """Return a trace that would not have been kept with that written on its root, or without one on its first span."""
    if not groups:
        return groups
    decision, policy, reason = judgement[:3]
    told = {"podtrail.sampling.decision": decision, "podtrail.sampling.reason": reason}
    if policy:
        told["podtrail.sampling.policy"] = policy
    spans = [split(group.spans) for group in groups]
    roots = ((at, place) for at, few in enumerate(spans) for place, raw in enumerate(few) if _is_root(raw))
    at, place = next(roots, (0, 0))
    changed = list(spans[at])
    changed[place] = append_attributes(changed[place], {**told})
    marked = list(groups)
    marked[at] = groups[at]._replace(spans=frame(changed))
    return marked


def _is_root(raw: bytes) -> bool:
    return not SpanView(raw).parent_span_id
