"""What leaves the sampler: the one place where traces are kept or let go, told of and remembered.

`Releaser` lets go at once. A kind of them that has second thoughts overrides `decided` (to let a trace rest instead),
`claims` and `late_unkept` (late spans of what rests) and the four methods at the end, and ends with `conclude`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from podtrail.component import Context, Counter, Metrics
from podtrail.config.types import SECOND
from podtrail.otlp import ROOT_NAME, Batch, Group, Verdict
from podtrail.state import StateError
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.tail_sampling.config.sampler import Config
from podtrail_processors.tail_sampling.holding.held_trace import FORGOTTEN, FinalDecision, HeldTrace, TraceTable
from podtrail_processors.tail_sampling.holding.trace_memory import TraceMemory
from podtrail_processors.tail_sampling.judging.instruments import Instruments
from podtrail_processors.tail_sampling.judging.judge import Judge, Judgement
from podtrail_processors.tail_sampling.judging.shadow import SavedJudgement
from podtrail_processors.tail_sampling.leaving.configuration_changes import (
    ConfigurationChanges,
    SavedChanges,
    configuring,
)
from podtrail_processors.tail_sampling.leaving.failures import failure_in
from podtrail_processors.tail_sampling.leaving.inscriptions import marked, reasoned, records_policy, spared
from podtrail_processors.tail_sampling.remembering.decisions import Remembered, SavedRemembered
from podtrail_processors.thresholds import weighed

_ROOT = ROOT_NAME.encode()
_LATE = Judgement("not_sampled", "", "late: the trace was decided without its root", {})
_LATE_DROPPED = _LATE._replace(decision="dropped")
_RESCUER = "rescue_late_errors"


@dataclass(slots=True)
class Released:
    """What leaves."""

    groups: list[Group]
    verdicts: list[Verdict]
    since: int = 1 << 63
    """Some of it arrived then, if that is earlier than the rest did."""

    def batches(self, arrived: int) -> Sequence[Batch]:
        """Return it as at most one batch, arrived at a time or earlier."""
        if not self.groups and not self.verdicts:
            return ()
        return (Batch(self.groups, min(arrived, self.since), self.verdicts),)


class Resting(NamedTuple):
    """A trace that was not kept and could still be: nothing of it is booked, told or remembered yet."""

    trace: HeldTrace
    judgement: Judgement
    groups: Sequence[Group]
    at: int | None
    """When it was decided."""


class SavedResting(NamedTuple):
    """What rests, in a saved state."""

    trace: int
    judgement: SavedJudgement
    groups: tuple[Group, ...]
    at: int | None


class SavedReleaser(NamedTuple):
    """What rests and what is remembered, in a saved state."""

    remembered: SavedRemembered
    changes: SavedChanges
    left_over: tuple[SavedResting, ...]
    left_over_due: int
    links: Any


class Releaser:
    """Lets traces and late spans go, keeps the ledger, and remembers decisions for late spans.

    A trace that was let go may stay in memory, emptied, with its decision as its `state`; or be forgotten there and
    remembered in a decision cache.
    """

    def __init__(
        self, config: Config, context: Context, instruments: Instruments, memory: TraceMemory, *, weighs: bool
    ) -> None:
        """Let traces of this memory go. `weighs`: kept spans tell with what probability they were kept."""
        self.ledger = context.ledger
        self.instruments = instruments
        self.memory = memory
        self.remembered = Remembered(config, context)
        self.knows = self.remembered.compact is not None
        """Whether `claims` must be asked about ids that are neither in memory nor in a decision cache."""
        self.weighs_late = False
        """Whether late spans are told the threshold of their trace too, which the Collector's gate does not do."""
        self._records = records_policy(context.gates)
        self._weighs = weighs
        self._tells_reasons = config.record_reason
        self._passes_all = config.dry_run
        self._rescued = _rescued_counter(context.metrics) if config.rescue_late_errors else None
        self.changes = ConfigurationChanges()
        """Operators' traces that may be kept with an attempt that comes later."""
        self._left_over: list[Resting] = []
        self._left_over_due = 0
        self._ages: dict[int, int] = {}
        """How many traces were forgotten since the last report, by their age in seconds."""

    def decided(
        self,
        trace: HeldTrace,
        judgement: Judgement,
        evidence: Evidence,
        groups: Sequence[Group],
        now: int,
        out: Released,
        earlier: Sequence[Group] = (),
    ) -> None:
        """Let an undecided trace go that was voted on. `earlier`: groups that stand before those it was decided on."""
        judgement = self.by_configuration(trace, judgement, evidence, groups, now)
        if judgement.decision == "sampled":
            groups = self.inscribed(groups, judgement, evidence.composite_policy)
        groups = [*earlier, *groups] if earlier else groups
        self.memory.let_go(trace)
        self.conclude(trace, judgement, groups, now, now, out)

    def by_configuration(
        self, trace: HeldTrace, judgement: Judgement, evidence: Evidence, groups: Sequence[Group], now: int
    ) -> Judgement:
        """Return the judgement on a trace; one that changed the configuration of a kept attempt is kept, too.

        Others of operators are remembered: an attempt that was made with what they changed may be kept later.
        """
        if judgement.decision == "sampled" or self._passes_all:
            return judgement
        attempt = self.changes.wants(trace.trace_id)
        if attempt:
            return configuring(judgement, attempt)
        self.changes.remember(trace.trace_id, evidence.raw, groups, trace.arrived, trace.span_count, now)
        return judgement

    def _bring_back(self, trace_id: bytes, groups: Sequence[Group], now: int, out: Released) -> None:
        """Keep after all what changed the configuration that a kept trace was made with."""
        for target, change in self.changes.made(trace_id, groups, now):
            judgement = configuring(_LATE, trace_id)
            kept = self.inscribed(change.groups, judgement)
            out.groups.extend(kept)
            out.since = min(out.since, change.arrived)
            self.ledger.created += change.spans  # they were counted as sampled out when they were not kept
            self._tell(target, judgement, kept, change.spans, change.arrived, now, out, late=True)
            self.remembered.rescue(target, judgement.policy)
            known = self.memory.traces.get(target)
            if known is not None and known.state is not None:
                known.state = known.state._replace(decision="sampled")

    def refused(self, trace: HeldTrace, judgement: Judgement, at: int | None, now: int, out: Released) -> None:
        """Let an undecided trace go that is not kept, without a vote on all of it.

        `at`: when that was decided; None when not by policies.
        """
        groups = trace.groups(b"".join(trace.chunks))
        self.memory.let_go(trace)
        self.conclude(trace, judgement, groups, at, now, out)

    def lost(self, trace: HeldTrace, judgement: Judgement, reason: str, now: int, out: Released) -> None:
        """Lose an undecided trace. It is not remembered, and stays in memory until it is forgotten there."""
        groups = trace.groups(b"".join(trace.chunks))
        self.memory.let_go(trace)
        if self._passes_all:
            out.groups.extend(spared(groups, judgement))
        else:
            self.ledger.drop(reason, trace.span_count)
        self._tell(trace.trace_id, judgement, groups, trace.span_count, trace.arrived, now, out)

    def late(self, group: Group, decided: FinalDecision, now: int, out: Released) -> None:
        """Have late spans follow the decision on a trace that is still in memory."""
        if decided.decision == "sampled":
            out.groups.append(self._late_told(group, decided.threshold))
        elif decided.decision == "dropped":
            self._let_go_late(group, _LATE_DROPPED, now, out)
        else:
            self.late_unkept(group, now, out)

    def late_remembered(self, group: Group, now: int, out: Released) -> None:
        """Have late spans follow the decision that a cache remembers."""
        policy = self.remembered.kept.get(group.trace_id)
        if policy is not None:
            group = self._late_told(group, self.remembered.kept.threshold_of(group.trace_id))
            self._follow_kept(group, policy, out)
            return
        self.instruments.from_cache.add(group.span_count, "false")
        if self.remembered.others.get(group.trace_id):
            self._let_go_late(group, _LATE_DROPPED, now, out)  # a policy stands there only if it dropped the trace
        else:
            self.late_unkept(group, now, out)

    def claims(self, group: Group, now: int, out: Released) -> bool:
        """Take spans of a trace that is not in memory, if it is known here all the same; return whether it was."""
        compact = self.remembered.compact
        decision = None if compact is None else compact.get(group.trace_id)
        if decision is None:
            return False
        if decision == "sampled":
            self._follow_kept(group, "", out)
            return True
        self.instruments.from_cache.add(group.span_count, "false")
        if decision == "dropped":
            self._let_go_late(group, _LATE_DROPPED, now, out)
        else:
            self.late_unkept(group, now, out)
        return True

    def _late_told(self, group: Group, threshold: int) -> Group:
        return self._weighed(group, threshold) if self.weighs_late else group

    def _weighed(self, group: Group, threshold: int) -> Group:
        told = weighed(group, threshold)
        self.instruments.unparseable.add(told.unparseable)
        return told.group

    def _follow_kept(self, group: Group, policy: str, out: Released) -> None:
        out.groups.append(marked(group, policy, cached=True) if self._records else group)
        self.instruments.from_cache.add(group.span_count, "true")

    def late_unkept(self, group: Group, now: int, out: Released) -> Judgement | None:
        """Let late spans of a trace go that no policy kept; or rescue it by them, and return with what judgement."""
        rescue = self.rescue_by(group)
        if rescue is None:
            self._let_go_late(group, _LATE, now, out)
            return None
        groups = self.inscribed([group], rescue)
        out.groups.extend(groups)
        self._tell(group.trace_id, rescue, groups, group.span_count, now, now, out, late=True)
        self.remembered.rescue(group.trace_id, rescue.policy)
        trace = self.memory.traces.get(group.trace_id)
        if trace is not None and trace.state is not None:
            trace.state = trace.state._replace(decision="sampled")
        return rescue

    def kept_unheld(self, trace_id: bytes, policy: str, groups: Sequence[Group], now: int, out: Released) -> None:
        """Take note of a trace that a policy kept without its being held; of others that leave with it, too."""

    def rescue_by(self, group: Group) -> Judgement | None:
        """Return the judgement by which late spans rescue a trace that no policy kept; None when they do not.

        Whoever is told acts on it.
        """
        if self._rescued is None or not (failure := failure_in(group)):
            return None
        self._rescued.add(1)
        return Judgement("sampled", _RESCUER, f"late error: {failure}", {})

    def _let_go_late(self, group: Group, late: Judgement, now: int, out: Released) -> None:
        """Let late spans go. A late root of an attempt is told of once more: who numbers attempts has not seen it."""
        if self._passes_all:
            out.groups.extend(spared([group], late, late=True))
        else:
            self.ledger.sampled_out += group.span_count
        if _ROOT in group.spans:
            self._tell(group.trace_id, late, [group], group.span_count, now, now, out, late=True)

    def conclude(
        self, trace: HeldTrace, judgement: Judgement, groups: Sequence[Group], at: int | None, now: int, out: Released
    ) -> None:
        """Let a trace go for good: book it, pass it on if it is kept, tell of it, and remember the decision."""
        decision, policy, _, _, threshold, _ = judgement
        trace_id, spans = trace.trace_id, trace.span_count
        if decision == "sampled":
            out.groups.extend(groups)
            self.changes.forget(trace_id)
            self._bring_back(trace_id, groups, now, out)
        elif self._passes_all:
            out.groups.extend(spared(groups, judgement))
        else:
            self.ledger.sampled_out += spans
        self._tell(trace_id, judgement, groups, spans, trace.arrived, now, out)
        cached = self.remembered.active and self.remembered.put(trace_id, decision, policy, threshold)
        if trace.state is FORGOTTEN:
            return
        if cached:
            self.forget(trace, now)
        else:  # remembered by the emptied trace
            trace.close(FinalDecision(decision, at, threshold))

    def _tell(
        self,
        trace_id: bytes,
        judgement: Judgement,
        groups: Sequence[Group],
        spans: int,
        arrived: int,
        now: int,
        out: Released,
        *,
        late: bool = False,
    ) -> None:
        decision, policy, reason, votes, _, explainer = judgement
        dry = self._passes_all
        out.verdicts.append(
            Verdict(trace_id, decision, policy, reason, now, arrived, spans, votes, groups, explainer, dry, late)
        )

    def forget(self, trace: HeldTrace, now: int) -> None:
        """Forget a trace that is in memory."""
        self.memory.forget(trace)
        age = (now - trace.arrived) // SECOND
        self._ages[age] = self._ages.get(age, 0) + 1

    def report(self) -> None:
        """Count what was forgotten since the last report: most traces of a tick are of one age."""
        for age, times in self._ages.items():
            self.instruments.removal_age.observe(age, times=times)
        self._ages.clear()

    def inscribed(
        self, groups: Sequence[Group], judgement: Judgement, composite_policy: str | None = None
    ) -> Sequence[Group]:
        """Return the groups of a kept trace with what gates and `record_reason` have written into them."""
        if self._records:
            groups = [marked(group, judgement.policy, composite_policy) for group in groups]
        if self._weighs:
            groups = [self._weighed(group, judgement.threshold) for group in groups]
        if self._tells_reasons:
            groups = reasoned(groups, judgement)
        return groups

    def take_over(self, others: "Sequence[Releaser]", mine: Callable[[bytes], bool], now: int) -> None:
        """Remember what others remember, and take from them what rests there of the traces whose id is `mine`."""
        for other in others:
            self.remembered.take_over(other.remembered)
            self.changes.take_over(other.changes)
            self._left_over += other.release(mine)
        self._left_over_due = now

    def release(self, theirs: Callable[[bytes], bool]) -> Sequence[Resting]:
        """Part with what rests here of the traces that are `theirs`."""
        released = [one for one in self._left_over if theirs(one.trace.trace_id)]
        self._left_over = [one for one in self._left_over if not theirs(one.trace.trace_id)]
        return released

    def saved(self, table: TraceTable, judge: Judge) -> "SavedReleaser":
        """Return what rests here and what is remembered. `judge`: the present one."""
        left_over = [
            SavedResting(table.number(one.trace), SavedJudgement.of(one.judgement, judge), tuple(one.groups), one.at)
            for one in self._left_over
        ]
        return SavedReleaser(
            *(self.remembered.saved(), self.changes.saved(), tuple(left_over), self._left_over_due),
            self.saved_links(table, judge),
        )

    def restore(self, saved: "SavedReleaser", traces: Sequence[HeldTrace], judge: Judge) -> None:
        """Have rest here what rested, and remember what was remembered.

        Raises:
            StateError: it is damaged.
        """
        self.remembered.restore(saved.remembered)
        self.changes.restore(saved.changes)
        self._left_over = [
            Resting(traces[one.trace], one.judgement.restored(judge), one.groups, one.at) for one in saved.left_over
        ]
        self._left_over_due = saved.left_over_due
        if saved.links is not None:
            self.restore_links(saved.links, traces, judge)

    def saved_links(self, table: TraceTable, judge: Judge) -> Any:  # noqa: ARG002 - of those that know of links
        """Return what is known of links between traces; None for nothing."""
        return None

    def restore_links(self, saved: Any, traces: Sequence[HeldTrace], judge: Judge) -> None:  # noqa: ARG002
        """Know links between traces.

        Raises:
            StateError: it can't.
        """
        raise StateError("it keeps linked traces, which is not configured")

    def held(self) -> int:
        """Return the number of spans that rest here."""
        return sum(one.trace.span_count for one in self._left_over)

    def held_since(self) -> int | None:
        """Return the arrival of the oldest span here."""
        return min((one.trace.arrived for one in self._left_over), default=None)

    def deadline(self) -> int | None:
        """Return when `expire` next has work to do."""
        return self._left_over_due if self._left_over else None

    def expire(self, now: int, limit: int, out: Released) -> int:  # noqa: ARG002 - one who lets much rest heeds it
        """Let go what is due, about `limit` spans of it; return how many, at least 1 if anything was done."""
        return self.drain(now, out)

    def drain(self, now: int, out: Released) -> int:
        """Let go of everything; return how many spans that were."""
        left, self._left_over = self._left_over, []
        for one in left:
            self.conclude(one.trace, one.judgement, one.groups, one.at, now, out)
        return sum(one.trace.span_count for one in left)


def _rescued_counter(metrics: Metrics) -> Counter:
    return metrics.counter(
        "otelcol_processor_tail_sampling_traces_rescued_late", "Traces that were not kept until an error came late."
    )
