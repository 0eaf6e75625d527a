"""Policies that are tried before they are trusted: their votes are counted and shown, and change nothing.

A policy of the list with `shadow: true` is asked about every trace after the others, even where they stopped at the
first match; `shadow_policies` is a whole list beside the one that decides, judged by its own precedence.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from podtrail.component import Context, Counter, Metrics
from podtrail.otlp import Decision, Explainer, PolicyVote, Shadow, Verdict
from podtrail.state import StateError
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.config.sampler import Config
from podtrail_processors.tail_sampling.judging.explanations import Asked, Explanations, SavedExplainer, VotesAlone
from podtrail_processors.tail_sampling.judging.forgetting import Forgetting
from podtrail_processors.tail_sampling.judging.instruments import PREFIX, Instruments
from podtrail_processors.tail_sampling.judging.judge import Judge, Judgement, asked_for
from podtrail_processors.tail_sampling.judging.timing import EVERY, PolicyTimes
from podtrail_processors.tail_sampling.voting.evaluator import NamedEvaluator, PolicyMemory, label_of


def judge_of(kind: type[Judge], config: Config, instruments: Instruments, context: Context) -> Judge:
    """Return the judge of a configuration, with shadows if it has any."""
    if config.shadow_policies or any(policy.shadow for policy in config.policies):
        return ShadowedJudge(config, instruments, context)
    return kind(config, config.policies, instruments, context)


class ShadowedJudge(Judge):
    """Judges as the others do, and has the shadows vote behind that."""

    def __init__(self, config: Config, instruments: Instruments, context: Context) -> None:
        shadows = [policy for policy in config.policies if policy.shadow]
        asked = [Asked(policy.name, policy.type, policy.create()) for policy in shadows]
        reads = Reads.union(one.policy.reads for one in asked)
        self._alternative = _alternative(config, context)
        besides = Reads.union([reads, self._alternative.reads]) if self._alternative else reads
        active = [policy for policy in config.policies if not policy.shadow]
        super().__init__(config, active, instruments, context, besides=besides)
        if self._alternative:
            self._alternative.read_with(self.readers)
        self._shadows = asked
        self.forgetting = Forgetting(self._memories_with_shadows())
        self._shadow_learners = [learner for one in asked for learner in one.policy.learners()]
        self._shadow_labels = [label_of(context.id, one.name) for one in asked]
        self._shadow_explanations = Explanations(asked, len, reads, weighs=self.weighs)
        self._by_tick += [one.policy for one in asked if one.policy.by_tick and self.weighs]
        votes = [one.policy.vote for one in asked]
        self._shadow_times = PolicyTimes(votes, self._shadow_labels, instruments.execution_times, context.stopwatch)
        self._shadowed = 0
        self._counted = _ShadowInstruments(context.metrics)
        apart = replace(context, rng=copy(context.rng))
        for one in asked:
            one.policy.attach(apart, one.name)

    def _memories_with_shadows(self) -> list[PolicyMemory]:
        shadows = [memory for one in self._shadows for memory in one.policy.memories()]
        return [*self._memories(), *shadows, *(self._alternative._memories() if self._alternative else ())]

    @property
    def by_tick(self) -> bool:
        """Whether traces are weighed, be it by shadows."""
        return super().by_tick or (self._alternative is not None and self._alternative.by_tick)

    def weigh(self, trace: Evidence) -> None:
        """Show a trace to all that weigh traces."""
        super().weigh(trace)
        if self._alternative:
            self._alternative.weigh(trace)

    def settle(self, now: int) -> None:
        """Have them choose."""
        super().settle(now)
        if self._alternative:
            self._alternative.settle(now)

    def judge(self, trace: Evidence) -> Judgement:
        """Return what becomes of a trace, with what the shadows would have said."""
        judgement = super().judge(trace)
        composite_policy = trace.composite_policy
        for learn in self._shadow_learners:
            learn(trace)
        votes: dict[str, Decision] = {}
        for one, label, ask in zip(self._shadows, self._shadow_labels, self._shadow_times.asks, strict=True):
            vote = asked_for(ask, trace)
            self._counted.voted(label, vote, judgement.decision, trace)
            self._instruments.voted(label, vote, 1, trace.total_spans, trace.size.messages)
            if vote:
                votes[one.name] = vote
        shadow = Shadow(votes)
        self._shadowed += 1
        if self._alternative:
            other = self._alternative.judge(trace)
            self._counted.judged(other, judgement.decision, trace)
            shadow = Shadow(votes, other.decision, other.policy, other.reason, other.votes)
        trace.composite_policy = composite_policy
        return judgement._replace(explainer=_Explained(self, shadow))

    def report(self) -> None:
        """Count what was judged since the last report."""
        super().report()
        if self._shadow_times.runs and self._shadowed >= EVERY:
            self._shadow_times.settle([self._shadowed] * len(self._shadows))
            self._shadowed = 0
        if self._alternative:
            self._alternative.report()

    def explain(self, verdict: Verdict, shadow: Shadow) -> Sequence[PolicyVote]:
        """Return all votes, those of the shadows behind the others."""
        told = [
            self.explanations.explain(verdict),
            self._shadow_explanations.told(verdict, shadow.votes, shadow=True),
        ]
        if self._alternative:
            told.append(self._alternative.explanations.told(verdict, shadow.set_votes, shadow=True))
        return [*chain(*told)]

    def names(self) -> VotesAlone:
        """Return what is left to be told when the policies are no more."""
        others = self._alternative.explanations.names().asked if self._alternative else []
        return VotesAlone(self.explanations.names().asked, self._shadow_explanations.names().asked, others)

    def lists(self) -> Sequence[Sequence[Asked]]:
        """Return the policies, the shadows, and those of the alternative list."""
        return [*super().lists(), self._shadows, *(self._alternative.lists() if self._alternative else ())]

    def take_over(self, other: Judge) -> None:
        """On reload: have policies go on from memory, shadows that are trusted now as well."""
        super().take_over(other)
        if self._alternative and isinstance(other, ShadowedJudge) and other._alternative:
            self._alternative.take_over(other._alternative)
        self.forgetting.plan()

    def named(self) -> Sequence[NamedEvaluator]:
        """Return the policies of the list, shadows included."""
        return [*super().named(), *(NamedEvaluator(one.name, one.policy) for one in self._shadows)]


class _Explained(NamedTuple):
    """Says why of one verdict, with what the shadows voted on it."""

    judge: "ShadowedJudge | VotesAlone"
    shadow: Shadow

    def explain(self, verdict: Verdict) -> Sequence[PolicyVote]:
        return self.judge.explain(verdict, self.shadow)


class SavedJudgement(NamedTuple):
    """A judgement in a saved state."""

    decision: Decision
    policy: str
    reason: str
    votes: dict[str, Decision]
    threshold: int
    explainer: SavedExplainer | None

    @classmethod
    def of(cls, judgement: Judgement, judge: Judge) -> "SavedJudgement":
        """Return a judgement of this judge, or of one that it has replaced."""
        decision, policy, reason, votes, threshold, explainer = judgement
        saved = None if explainer is None else _saved(explainer, judge)
        return cls(decision, policy, reason, dict(votes), threshold, saved)

    def restored(self, judge: Judge) -> Judgement:
        """Return the judgement; this judge explains it if it was its own."""
        told = self.explainer
        explainer: Explainer | None = None
        if told is not None:
            if told.shadow is not None:
                present = judge if isinstance(judge, ShadowedJudge) else judge.explanations.names()
                explainer = _Explained(VotesAlone(*told.votes) if told.votes else present, Shadow(*told.shadow))
            else:
                explainer = VotesAlone(*told.votes) if told.votes else judge.explanations
        return Judgement(self.decision, self.policy, self.reason, self.votes, self.threshold, explainer)


def _saved(explainer: Explainer, judge: Judge) -> SavedExplainer:
    match explainer:
        case _Explained():
            votes, decision, policy, reason, others = explainer.shadow
            names = None if explainer.judge is judge else explainer.judge.names()
            return SavedExplainer(_plain(names), (dict(votes), decision, policy, reason, dict(others)))
        case Explanations() | VotesAlone():
            return SavedExplainer(_plain(None if explainer is judge.explanations else explainer.names()), None)
    raise StateError(f"a {type(explainer).__name__} explains a judgement, which can't be saved")


def _plain(names: VotesAlone | None) -> Any:
    return None if names is None else tuple(tuple(map(tuple, part)) for part in names)


class _ShadowInstruments:
    """What the shadows would have changed. Traces, spans, and bytes as they came."""

    def __init__(self, metrics: Metrics) -> None:
        self._voted = _counters(metrics, "shadow", "by what a shadow would have changed", ("policy", "change"))
        labels = ("kept_by", "policy")
        self._judged = _counters(
            metrics, "shadow_policies", "by who keeps them: both, current, shadow, neither", labels
        )

    def voted(self, label: str, vote: Decision | None, decision: Decision, trace: Evidence) -> None:
        change = "none"
        if vote == "sampled" and decision == "not_sampled":
            change = "added"
        elif vote == "dropped" and decision == "sampled":
            change = "dropped"
        self._voted.traces.add(1, label, change)
        self._voted.spans.add(trace.total_spans, label, change)
        self._voted.bytes.add(len(trace.raw), label, change)

    def judged(self, other: Judgement, decision: Decision, trace: Evidence) -> None:
        current, shadow = decision == "sampled", other.decision == "sampled"
        kept_by = ("both" if shadow else "current") if current else ("shadow" if shadow else "neither")
        self._judged.traces.add(1, kept_by, other.policy)
        self._judged.spans.add(trace.total_spans, kept_by, other.policy)
        self._judged.bytes.add(len(trace.raw), kept_by, other.policy)


class _Counters(NamedTuple):
    traces: Counter
    spans: Counter
    bytes: Counter


def _counters(metrics: Metrics, name: str, how: str, labels: tuple[str, ...]) -> _Counters:
    kinds = ("traces", "spans", "bytes")
    return _Counters(*(metrics.counter(f"{PREFIX}{name}_{kind}", f"{kind.title()} {how}.", labels) for kind in kinds))


def _alternative(config: Config, context: Context) -> Judge | None:
    """Return the judge of the alternative list; what it counts of itself nobody sees."""
    if not config.shadow_policies:
        return None
    id = f"{context.id}{'.' if '/' in context.id else '/'}shadow"
    unseen = Instruments(Metrics(), lambda: 0, context.gates)
    return Judge(config, config.shadow_policies, unseen, replace(context, id=id, rng=copy(context.rng)))
