"""`record_reason`: which policy kept a trace and why, written on its root span."""

from collections.abc import Sequence

from podtrail.otlp import Group, append_attributes, frame, span_reader, split
from podtrail_processors.tail_sampling.judge import Judgement
from podtrail_processors.tail_sampling.words import cut

_POLICY = "podtrail.sampling.policy"
_REASON = "podtrail.sampling.reason"
_VOTES = "podtrail.sampling.votes"
_LONGEST_REASON = 500
_LONGEST_VOTES = 200
_NO_PARENT = (b"", bytes(8))
_read = span_reader({"parent_span_id"})


def reasoned(groups: Sequence[Group], judgement: Judgement) -> Sequence[Group]:
    """Return the groups of a kept trace with the reason on the first root among its spans, without one on the first.

    `podtrail.sampling.votes` is left out when there are more policies than can be told shortly.
    """
    attributes = {_POLICY: judgement.policy, _REASON: cut(judgement.reason, _LONGEST_REASON)}
    votes = ", ".join(f"{policy}: {vote}" for policy, vote in judgement.votes.items())
    if votes and len(votes) <= _LONGEST_VOTES:
        attributes[_VOTES] = votes
    at, number = _root_in(groups)
    spans = list(split(groups[at].spans))
    spans[number] = append_attributes(spans[number], attributes)
    return [*groups[:at], groups[at]._replace(spans=frame(spans)), *groups[at + 1 :]]


def _root_in(groups: Sequence[Group]) -> tuple[int, int]:
    """Return which group has the root, and where in it."""
    for at, group in enumerate(groups):
        for number, span in enumerate(_read(group.spans)):
            if span.parent_span_id in _NO_PARENT:
                return at, number
    return 0, 0
