"""The judge: asks the policies about a trace and says what becomes of it, counting what the Collector counts."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from podtrail.component import Context
from podtrail.config.feature_gates import USE_TRACE_STATE
from podtrail.otlp import Decision, Explainer
from podtrail.state import StateError
from podtrail_processors.evidence.evidence import Evidence, Readers, Reads
from podtrail_processors.probability import ALWAYS
from podtrail_processors.tail_sampling.config.sampler import Config, TopPolicy
from podtrail_processors.tail_sampling.judging.explanations import Asked, Explanations
from podtrail_processors.tail_sampling.judging.forgetting import Forgetting
from podtrail_processors.tail_sampling.judging.gates import Gates
from podtrail_processors.tail_sampling.judging.instruments import Instruments, sampled
from podtrail_processors.tail_sampling.judging.timing import EVERY, PolicyTimes
from podtrail_processors.tail_sampling.voting.evaluator import (
    Evaluator,
    NamedEvaluator,
    NoVote,
    PolicyMemory,
    carry_over,
    label_of,
)

_MOST_ROWS = 4096
_NOTHING = Reads()
_LINKS = Reads(columns=frozenset({"links"}))

Row = tuple[Decision | None, ...]
"""The votes of the policies that were asked; None of one that failed."""


class Judgement(NamedTuple):
    """What becomes of a trace, and why."""

    decision: Decision
    policy: str
    """The first policy that gave the decision; "" when none did."""
    reason: str
    votes: Mapping[str, Decision]
    threshold: int = ALWAYS
    """The lowest threshold of the policies that said yes."""
    explainer: Explainer | None = None
    """Who can say why each policy voted as it did; None where none was asked."""


class SavedPolicies(NamedTuple):
    """What policies remember in a saved state."""

    policies: tuple[tuple[int, str, str, int, Any], ...]
    """List, name, type, version and state of each that remembers anything."""
    forgetting: int | None


class _RowOutcome:
    """What follows from a row of votes, and how often it did since the last report."""

    __slots__ = ("bytes", "judgement", "spans", "times", "unsettled", "winner")

    def __init__(self, judgement: Judgement, winner: Evaluator | None) -> None:
        self.judgement = judgement
        self.winner = winner
        self.times = self.spans = self.bytes = 0
        self.unsettled = 0
        """How often, of the times whose duration is not counted yet."""


class Judge:
    """Asks drop policies first, as the Collector does, then the others in their order.

    All but the votes themselves is done once for each row of votes, not once a trace.
    """

    _final: frozenset[Decision] = frozenset({"sampled", "not_sampled", "dropped"})
    """What counts as a decision."""

    def __init__(
        self,
        config: Config,
        policies: Sequence[TopPolicy],
        instruments: Instruments,
        context: Context,
        *,
        besides: Reads = _NOTHING,
    ) -> None:
        """Judge by some of the policies of a configuration. `besides`: what others read of the same evidence."""
        ordered = sorted(policies, key=lambda config: config.type != "drop")
        self._policies = [config.create() for config in ordered]
        self.reads = Reads.union(policy.reads for policy in self._policies)
        self.weighs = USE_TRACE_STATE in context.gates
        """Whether the Collector's probability sampling in trace states is on."""
        reads = Reads.union([self.reads, besides, _LINKS if config.linked_traces.keep else _NOTHING])
        self.readers = Readers(reads, weighs=self.weighs, tells=config.record_reason)
        self._counts_sizes = not (instruments.voted_spans is None and instruments.voted_bytes is None)
        self.measures = reads.size or instruments.voted_bytes is not None
        """Whether the size of traces is asked for."""
        self._gates = Gates(self._policies, self.readers)
        self._drops = sum(config.type == "drop" for config in policies)
        self._learners = [learner for policy in self._policies for learner in policy.learners()]
        self.forgetting = Forgetting(self._memories())
        """When policies forget what they remember of earlier traces."""
        self._names = [config.name for config in ordered]
        self._labels = [label_of(context.id, config.name) for config in ordered]
        self._instruments = instruments
        votes = [policy.vote for policy in self._policies]
        self._times = PolicyTimes(votes, self._labels, instruments.execution_times, context.stopwatch)
        self._unsettled = 0
        self._last_words: tuple[Decision, ...] = (
            ("dropped", "sampled") if config.sample_on_first_match else ("dropped",)
        )
        self._outcomes: dict[Row, _RowOutcome] = {}
        self.dynamic = any(policy.dynamic for policy in self._policies)
        """Whether policies choose with probabilities of their own making, which kept spans should tell."""
        self._by_tick = [policy for policy in self._policies if policy.by_tick and self.weighs]
        self._moves = self.dynamic or bool(self._by_tick)
        """Whether thresholds differ from trace to trace."""
        for policy, name in zip(self._policies, self._names, strict=True):
            policy.attach(context, name)
        self._asked = [Asked(c.name, c.type, p) for c, p in zip(ordered, self._policies, strict=True)]
        self.explanations = Explanations(self._asked, self._reach, self.reads, weighs=self.weighs)

    def _memories(self) -> list[PolicyMemory]:
        return [memory for policy in self._policies for memory in policy.memories()]

    def read_with(self, readers: Readers) -> None:
        """Judge evidence of these readers from now on; they must read all that the policies do."""
        self.readers = readers
        self._gates = Gates(self._policies, readers)

    @property
    def by_tick(self) -> bool:
        """Whether traces that fall due together have to be weighed against each other ahead of their judgement."""
        return bool(self._by_tick)

    def weigh(self, trace: Evidence) -> None:
        """Show a trace that is about to be judged, unless it will be dropped, to the policies that weigh traces."""
        if any(asked_for(policy.revote, trace) == "dropped" for policy in self._policies[: self._drops]):
            return
        for policy in self._by_tick:
            with suppress(NoVote):
                policy.weigh(trace)

    def settle(self, now: int) -> None:
        """Have them choose among what was weighed."""
        for policy in self._by_tick:
            policy.settle(now)

    def judge(self, trace: Evidence) -> Judgement:
        """Return what becomes of a trace."""
        for learn in self._learners:
            learn(trace)
        places = self._gates.open_for(trace) if self._gates.guarded else self._gates.always
        asks, last_words = self._times.asks, self._last_words
        votes: list[Decision | None] = ["not_sampled"] * len(asks)
        for at in places:
            try:  # as `asked_for` does, without a call for each vote: 400 instructions
                votes[at] = vote = asks[at](trace)
            except NoVote:
                votes[at] = None
                continue
            if vote in last_words:
                del votes[at + 1 :]
                break
        return self._follow(tuple(votes), trace)

    def _reach(self, votes: Row) -> int:
        """Return how many policies were asked, if these would have been the votes of all."""
        return next((at for at, vote in enumerate(votes, 1) if vote in self._last_words), len(votes))

    def _follow(self, row: Row, trace: Evidence) -> Judgement:
        outcome = self._outcomes.get(row)
        if outcome is None:
            outcome = self._learn(row)
        outcome.times += 1
        if self._counts_sizes:
            outcome.spans += trace.total_spans
            outcome.bytes += trace.size.messages
        if outcome.winner is None:
            return outcome.judgement
        decision, policy, _, known, threshold, explainer = outcome.judgement
        if self._moves:
            threshold = min(
                p.threshold_of(trace) for p, vote in zip(self._policies, row, strict=False) if vote == decision
            )
        return Judgement(decision, policy, outcome.winner.because(trace), known, threshold, explainer)

    def _learn(self, votes: Row) -> _RowOutcome:
        if len(self._outcomes) >= _MOST_ROWS:
            self.report()
            self._settle_times()
            self._outcomes.clear()
        known = MappingProxyType({name: vote for name, vote in zip(self._names, votes, strict=False) if vote})
        nobody = Judgement("not_sampled", "", self._nobody_said_yes(votes), known, ALWAYS, self.explanations)
        outcome = _RowOutcome(nobody, None)
        for decision in ("dropped", "sampled"):
            if decision in votes:
                first = votes.index(decision)
                lowest = min(p.threshold for p, vote in zip(self._policies, votes, strict=False) if vote == decision)
                judgement = Judgement(decision, self._names[first], "", known, lowest, self.explanations)
                outcome = _RowOutcome(judgement, self._policies[first])
                break
        self._outcomes[votes] = outcome
        return outcome

    @cached_property
    def never_matched(self) -> Judgement:
        """The judgement on a trace, judged part by part, when none of them decided."""
        said_no: Decision = "not_sampled"
        known = dict.fromkeys(self._names[: self._reach((said_no,) * len(self._names))], said_no)
        return Judgement(said_no, "", "no policy said yes to any part of it", known, ALWAYS, self.explanations)

    def _nobody_said_yes(self, votes: Row) -> str:
        failed = [name for name, vote in zip(self._names, votes, strict=False) if vote is None]
        return "no policy said yes" + (f"; without a vote, for they failed: {', '.join(failed)}" if failed else "")

    def named(self) -> Sequence[NamedEvaluator]:
        """Return the policies."""
        return [NamedEvaluator(name, policy) for name, policy in zip(self._names, self._policies, strict=True)]

    def lists(self) -> Sequence[Sequence[Asked]]:
        """Return the policies by the lists that they are in."""
        return [self._asked]

    def saved(self) -> SavedPolicies:
        """Return what the policies remember."""
        rows = [
            (at, one.name, one.type, one.policy.state_version, state)
            for at, asked in enumerate(self.lists())
            for one in asked
            if (state := one.policy.save_state()) is not None
        ]
        return SavedPolicies(tuple(rows), self.forgetting.saved())

    def restore(self, saved: SavedPolicies) -> Sequence[str]:
        """Have policies remember what was saved; return what those are called that could not, with the reason."""
        problems: list[str] = []
        policies = {(at, one.name, one.type): one.policy for at, asked in enumerate(self.lists()) for one in asked}
        for at, name, type_, version, state in saved.policies:
            policy = policies.get((at, name, type_))
            try:
                if policy is None:
                    raise StateError("it is not configured")
                policy.restore_state(version, state)
            except StateError as error:
                problems.append(f"policy {name}: {error}")
        self.forgetting.restore(saved.forgetting)
        return problems

    def take_over(self, other: "Judge") -> None:
        """On reload: have policies go on from what those of the same name and kind remember."""
        carry_over(self.named(), other.named())
        self.forgetting.plan()

    def report(self) -> None:
        """Count what was judged since the last report."""
        for votes, outcome in self._outcomes.items():
            if not outcome.times:
                continue
            decision = outcome.judgement.decision
            if decision in self._final:
                self._instruments.decided.add(outcome.times, sampled(decision), decision)
            for vote, label in zip(votes, self._labels, strict=False):
                self._instruments.voted(label, vote, outcome.times, outcome.spans, outcome.bytes)
            outcome.unsettled += outcome.times
            self._unsettled += outcome.times
            outcome.times = outcome.spans = outcome.bytes = 0
        if self._unsettled >= EVERY:
            self._settle_times()

    def _settle_times(self) -> None:
        self._unsettled = 0
        if not self._times.runs:
            return
        asked = [0] * len(self._policies)
        for votes, outcome in self._outcomes.items():
            for at in range(len(votes)):
                asked[at] += outcome.unsettled
            outcome.unsettled = 0
        for at in set(range(len(asked))).difference(self._gates.always):
            asked[at] = max(0, asked[at] - self._gates.shut)
        self._gates.shut = 0
        self._times.settle(asked)


class IngestJudge(Judge):
    """Judges a part of a trace, of which more may come: `not_sampled` means that nothing is decided yet."""

    _final = frozenset({"sampled", "dropped"})

    def judge(self, trace: Evidence) -> Judgement:
        """Return what becomes of a trace, as far as this part of it decides."""
        votes: list[Decision | None] = []
        for at, ask in enumerate(self._times.asks):
            if at == self._drops and "not_sampled" in votes:
                break
            votes.append(vote := asked_for(ask, trace))
            if vote not in ("not_sampled", None):
                break
        return self._follow(tuple(votes), trace)

    def _reach(self, votes: Row) -> int:
        if "not_sampled" in votes[: self._drops]:
            return self._drops
        return next((at for at, vote in enumerate(votes, 1) if vote not in ("not_sampled", None)), len(votes))


def asked_for(ask: Callable[[Evidence], Decision | None], trace: Evidence) -> Decision | None:
    """Return a policy's vote; None when it fails."""
    try:
        return ask(trace)
    except NoVote:
        return None
