"""Why each policy voted as it did, found out when somebody asks: from the recorded votes and the spans themselves."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from podtrail.otlp import Decision, Group, PolicyVote, Shadow, Verdict
from podtrail_processors.evidence.evidence import Evidence, Readers, Reads
from podtrail_processors.evidence.sizes import Meter, Size
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, NoVote
from podtrail_processors.tail_sampling.voting.words import cut

NO_SHADOW: Final = Shadow({})
_LONGEST = 2000
"""Characters of one policy's reasons."""


class Asked(NamedTuple):
    """A policy as it stands in the configuration."""

    name: str
    type: str
    policy: Evaluator


class Explanations:
    """Says why, for all verdicts of one judge.

    No vote is taken again of a policy for which that would count: of those only what they told is repeated.
    """

    shadow: Shadow | None = None

    def __init__(
        self,
        asked: Sequence[Asked],
        reach: Callable[[tuple[Decision | None, ...]], int],
        reads: Reads,
        *,
        weighs: bool = False,
    ) -> None:
        """Explain the votes of these policies, in the order in which they are asked.

        `reach` tells from the votes how many of them were asked.
        """
        self._asked = asked
        self._reach = reach
        self._reads = reads
        self._weighs = weighs

    def explain(self, verdict: Verdict) -> Sequence[PolicyVote]:
        """Return the vote of each policy."""
        return self.told(verdict, verdict.votes)

    def told(self, verdict: Verdict, recorded: Mapping[str, Decision], *, shadow: bool = False) -> Sequence[PolicyVote]:
        """Return the vote of each policy about a verdict's trace, where these are the votes that were given."""
        votes = tuple(recorded.get(one.name) for one in self._asked)
        reached = self._reach(votes)
        trace = self.evidence_of(verdict) if verdict.groups else None
        return [
            PolicyVote(one.name, one.type, vote, self._why(one.policy, vote, trace, asked=at < reached), shadow)
            for at, (one, vote) in enumerate(zip(self._asked, votes, strict=True))
        ]

    def _why(self, policy: Evaluator, vote: Decision | None, trace: Evidence | None, *, asked: bool) -> str:
        if not asked:
            return "it was not asked: another policy had the last word before"
        if trace is None:
            return "" if vote else "it failed"
        return cut(why(policy, vote, trace), _LONGEST)

    def names(self) -> "VotesAlone":
        """Return what is left to be told when the policies are no more."""
        return VotesAlone([(one.name, one.type) for one in self._asked], [], [])

    @cached_property
    def _readers(self) -> Readers:
        return Readers(self._reads, weighs=self._weighs, tells=True)

    def evidence_of(self, verdict: Verdict) -> Evidence:
        """Return the trace as it was when it was decided."""
        groups = verdict.groups
        size = _size_of(groups) if self._reads.size else Size()
        return Evidence.of(groups, self._readers, verdict.decided_at, size)


class VotesAlone(NamedTuple):
    """Tells the votes of policies that a configuration had before: what they are, not why."""

    asked: Sequence[tuple[str, str]]
    """Names and types."""
    shadows: Sequence[tuple[str, str]]
    others: Sequence[tuple[str, str]]
    """Those of the list that was only tried."""

    def names(self) -> "VotesAlone":
        """Return itself."""
        return self

    @property
    def shadow(self) -> None:
        """Nothing: one explainer for all verdicts."""

    def explain(self, verdict: Verdict, shadow: Shadow = NO_SHADOW) -> Sequence[PolicyVote]:
        """Return the vote of each policy."""
        return [
            PolicyVote(name, type, votes.get(name), "the configuration that had this policy is no more", tried)
            for asked, votes, tried in (
                (self.asked, verdict.votes, False),
                (self.shadows, shadow.votes, True),
                (self.others, shadow.set_votes, True),
            )
            for name, type in asked
        ]


_Names = tuple[tuple[str, str], ...]


class SavedExplainer(NamedTuple):
    """Who says why in a saved state."""

    votes: tuple[_Names, _Names, _Names] | None
    """The names of `VotesAlone`, of policies that have been replaced; None: the present ones."""
    shadow: tuple[dict[str, Decision], Decision | None, str, str, dict[str, Decision]] | None
    """What shadows said, if there are any."""


def why(policy: Evaluator, vote: Decision | None, trace: Evidence) -> str:
    """Return why a policy gave this vote; None: it gave none."""
    try:
        again = policy.revote(trace)
    except NoVote as error:
        return f"it failed: {error}"
    if vote is None:
        return "it failed"
    if again not in (None, vote):
        return "it said so of the trace as it was when it was asked"
    return policy.why_not(trace) if vote == "not_sampled" else policy.because(trace)


def _size_of(groups: Sequence[Group]) -> Size:
    """Return the size of a trace. The messages it came in are no longer known: each resource counts as one."""
    meter, size, message = Meter(), Size(), 0
    for before, group in zip([None, *groups], groups, strict=False):
        message += before is not None and before.resource != group.resource
        size = meter.grown(size, message, group)
    return size
