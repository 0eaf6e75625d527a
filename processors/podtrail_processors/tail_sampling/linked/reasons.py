"""Why a linked trace is kept, in words."""

from typing import Final

from podtrail_processors.tail_sampling.judge import Judgement
from podtrail_processors.tail_sampling.linked.joins import LINK, join_of
from podtrail_processors.tail_sampling.linked.web import Tie

POLICY: Final = "linked_traces"
"""What a verdict names in place of a policy."""


def linked(judgement: Judgement, tie: Tie) -> Judgement:
    """Return the judgement on a trace that no policy kept and that is kept for the sake of a neighbour."""
    neighbour, founder = tie.neighbour, tie.neighbour.founder
    by = "a link" if (join := join_of(tie.key)) == LINK else join
    policy = founder.policy if founder else ""
    whose = f"policy {policy} kept" if neighbour.hop == 0 else f"is linked with one that policy {policy} kept"
    reason = f"linked by {by} with trace {neighbour.trace_id.hex()}, which {whose}"
    return judgement._replace(decision="sampled", policy=POLICY, reason=reason)
