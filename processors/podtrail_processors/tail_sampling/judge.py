"""The judge: asks the policies about a trace and says what becomes of it, counting what the Collector counts."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from podtrail.otlp import Decision
from podtrail_processors.tail_sampling.config import TopPolicy
from podtrail_processors.tail_sampling.evidence import Evidence, Readers, Reads
from podtrail_processors.tail_sampling.instruments import Instruments, label_of
from podtrail_processors.tail_sampling.policy import Policy

_MOST_VOTES = 4096


class Judgement(NamedTuple):
    """What becomes of a trace, and why."""

    decision: Decision
    policy: str
    """The first policy that gave the decision; "" when none did."""
    reason: str
    votes: Mapping[str, Decision]


class _Voter(NamedTuple):
    name: str
    policy: Policy
    yes: Judgement
    """The judgement when this policy decides, without the votes."""
    tally: dict[Decision, int]
    """Its votes since the last report."""


class Judge:
    """Asks drop policies first, as the Collector does, then the others in their order."""

    def __init__(self, configs: Sequence[TopPolicy], *, first_match: bool, component_id: str) -> None:
        ordered = sorted(configs, key=lambda config: config.type != "drop")
        self._voters = [_voter(config) for config in ordered]
        self._labels = [label_of(component_id, config.name) for config in ordered]
        self._first_match = first_match
        self._seen: dict[tuple[Decision, ...], Mapping[str, Decision]] = {}
        self._judged: dict[Decision, int] = {}
        self.readers = Readers(Reads.union(voter.policy.reads for voter in self._voters))

    def judge(self, trace: Evidence) -> Judgement:
        """Return what becomes of a trace."""
        votes: list[Decision] = []
        winner: _Voter | None = None
        for voter in self._voters:
            vote = voter.policy.vote(trace)
            votes.append(vote)
            voter.tally[vote] += 1
            if vote == "dropped":
                winner = voter
                break
            if vote == "sampled" and winner is None:
                winner = voter
                if self._first_match:
                    break
        known = self._known(tuple(votes))
        if winner is None:
            judgement = Judgement("not_sampled", "", "no policy said yes", known)
        else:
            judgement = winner.yes._replace(votes=known)
        self._judged[judgement.decision] = self._judged.get(judgement.decision, 0) + 1
        return judgement

    def _known(self, votes: tuple[Decision, ...]) -> Mapping[str, Decision]:
        known = self._seen.get(votes)
        if known is None:
            if len(self._seen) >= _MOST_VOTES:
                self._seen.clear()
            names = [voter.name for voter in self._voters[: len(votes)]]
            known = self._seen[votes] = MappingProxyType(dict(zip(names, votes, strict=True)))
        return known

    def report(self, instruments: Instruments) -> None:
        """Count what was judged since the last report."""
        for decision, traces in self._judged.items():
            instruments.decided.add(traces, _sampled(decision), decision)
        self._judged.clear()
        for voter, label in zip(self._voters, self._labels, strict=True):
            for decision, traces in voter.tally.items():
                if traces:
                    instruments.votes.add(traces, label, _sampled(decision), decision)
                    instruments.executions.add(traces, label)
                    voter.tally[decision] = 0


def _voter(config: TopPolicy) -> _Voter:
    policy = config.create()
    yes = Judgement("dropped" if config.type == "drop" else "sampled", config.name, policy.reason, {})
    return _Voter(config.name, policy, yes, {"sampled": 0, "not_sampled": 0, "dropped": 0})


def _sampled(decision: Decision) -> str:
    return "true" if decision == "sampled" else "false"
