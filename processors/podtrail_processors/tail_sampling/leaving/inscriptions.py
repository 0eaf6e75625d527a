"""What is written into spans that leave: which policy decided on their scope, and on the root why.

The Collector's gate `recordpolicy` has the scope name the policy. On the root stands with `record_reason` why a trace
was kept, and in a `dry_run` why it would not be.
"""

from collections.abc import Collection, Mapping, Sequence

from podtrail.otlp import Group, Value, append_attributes, frame, raw_span_reader, set_scope_attributes, split
from podtrail.otlp.remembering import remembering
from podtrail_processors.tail_sampling.judging.judge import Judgement
from podtrail_processors.tail_sampling.voting.words import cut

_GATE = "processor.tailsamplingprocessor.recordpolicy"

_DECISION = "podtrail.sampling.decision"
_POLICY = "podtrail.sampling.policy"
_REASON = "podtrail.sampling.reason"
_VOTES = "podtrail.sampling.votes"
_LONGEST_REASON = 500
_LONGEST_VOTES = 200
_NO_PARENT = (b"", bytes(8))
_read = raw_span_reader({"parent_span_id"})


def reasoned(groups: Sequence[Group], judgement: Judgement) -> Sequence[Group]:
    """Return the groups of a kept trace with the reason on the first root among its spans, without one on the first.

    `podtrail.sampling.votes` is left out when there are more policies than can be told shortly.
    """
    attributes: dict[str, Value] = {_POLICY: judgement.policy, _REASON: cut(judgement.reason, _LONGEST_REASON)}
    votes = ", ".join(f"{policy}: {vote}" for policy, vote in judgement.votes.items())
    if votes and len(votes) <= _LONGEST_VOTES:
        attributes[_VOTES] = votes
    return _on_root(groups, attributes)


def spared(groups: Sequence[Group], judgement: Judgement, *, late: bool = False) -> Sequence[Group]:
    """Return the groups of a trace that is not kept and passes all the same, with what would have become of it.

    `late`: they came after its first spans, so that they are marked only where they have the root.
    """
    if late and _root_in(groups) is None:
        return groups
    attributes: dict[str, Value] = {_DECISION: judgement.decision, _REASON: cut(judgement.reason, _LONGEST_REASON)}
    if judgement.policy:
        attributes[_POLICY] = judgement.policy
    return _on_root(groups, attributes)


def _on_root(groups: Sequence[Group], attributes: Mapping[str, Value]) -> Sequence[Group]:
    """Return groups with attributes on the first root among their spans, without one on the first span."""
    at, number = _root_in(groups) or (0, 0)
    spans = list(split(groups[at].spans))
    spans[number] = append_attributes(spans[number], attributes)
    return [*groups[:at], groups[at]._replace(spans=frame(spans)), *groups[at + 1 :]]


def _root_in(groups: Sequence[Group]) -> tuple[int, int] | None:
    """Return which group has the root, and where in it; None where none has."""
    for at, group in enumerate(groups):
        for number, span in enumerate(_read(group.spans)):
            if span.parent_span_id in _NO_PARENT:
                return at, number
    return None


def records_policy(gates: Collection[str]) -> bool:
    """Say whether the gate is on, under its full id or its last part."""
    return _GATE in gates or _GATE.rpartition(".")[2] in gates


def marked(group: Group, policy: str, composite_policy: str | None = None, *, cached: bool = False) -> Group:
    """Return a group whose scope names the policy and the part of a composite that said yes, if one did.

    `cached`: these spans follow a remembered decision.
    """
    return group._replace(scope=_marked(group.scope, policy, composite_policy, cached))


@remembering(256)
def _marked(scope: bytes, policy: str, composite_policy: str | None, cached: bool) -> bytes:
    attributes: dict[str, str | bool] = {"tailsampling.policy": policy} if policy else {}
    if composite_policy is not None:
        attributes["tailsampling.composite_policy"] = composite_policy
    if cached:
        attributes["tailsampling.cached_decision"] = True
    return set_scope_attributes(scope, {**attributes})
