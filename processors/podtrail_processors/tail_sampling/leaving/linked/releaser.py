"""Leaving where linked traces are kept together: what no policy kept rests, and is rescued or let go."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from podtrail.component import Context
from podtrail.otlp import Group
from podtrail.state import StateError, StateShape
from podtrail_processors.evidence.evidence import Evidence, headers_of
from podtrail_processors.tail_sampling.config.sampler import Config
from podtrail_processors.tail_sampling.holding.held_trace import FinalDecision, HeldTrace, TraceTable
from podtrail_processors.tail_sampling.holding.trace_memory import TraceMemory
from podtrail_processors.tail_sampling.judging.instruments import Instruments
from podtrail_processors.tail_sampling.judging.judge import Judge, Judgement
from podtrail_processors.tail_sampling.leaving.linked.grace import Grace, SavedGrace
from podtrail_processors.tail_sampling.leaving.linked.instruments import LinkInstruments
from podtrail_processors.tail_sampling.leaving.linked.joins import LINK, JoinReader, join_of
from podtrail_processors.tail_sampling.leaving.linked.kin import Kin, SavedKin
from podtrail_processors.tail_sampling.leaving.linked.web import Founder, LinkedTrace, SavedWeb, Tie, Web, WebTable
from podtrail_processors.tail_sampling.leaving.releaser import Released, Releaser, Resting

POLICY: Final = "linked_traces"
"""What a verdict names in place of a policy."""

_EVER = 1 << 64
_STEPS = 64
"""What rests leaves at times that are this part of `grace_period` apart, many at once."""


class _SavedLinks(NamedTuple):
    kin: SavedKin
    grace: SavedGrace
    web: SavedWeb


_SHAPE: Final = StateShape[_SavedLinks](_SavedLinks)


class LinkedReleaser(Releaser):
    """Keeps with a trace what is linked with it.

    A trace that no policy kept looks for one that is kept; finding none it rests, nothing of it told or remembered,
    until one that it is linked with is kept, its time is over, or there is no more room. A trace that a drop policy
    dropped, that was too large or that was evicted leaves at once.
    """

    def __init__(
        self, config: Config, context: Context, instruments: Instruments, memory: TraceMemory, *, weighs: bool
    ) -> None:
        """Let traces of this memory go, as `Releaser` does."""
        super().__init__(config, context, instruments, memory, weighs=weighs)
        self._compact = self.knows
        self.knows = True
        self._caches = self.remembered.active
        settings = config.linked_traces
        self._period = settings.grace_period
        self._remembered = settings.grace_period + config.decision_wait
        """What came within the grace period may be decided so much later."""
        self._together = max(1, self._period // _STEPS)
        self._most_bytes = settings.grace_max_bytes
        self._quota = settings.max_linked_traces
        self._reader = JoinReader(settings.join_on)
        self._unkept = settings.max_hops + 1
        self._grace = Grace()
        self._counted = LinkInstruments(context.metrics)
        self._kin = Kin(
            self._reader,
            Web(settings.max_hops, whole_pods=settings.whole_pods),
            settings.most_remembered(context.memory_budget),
            self._counted.forgotten,
            self._counted.refused,
        )
        context.enriching.register(self._kin)
        self._counted.watch(
            traces=lambda: len(self._grace), size=lambda: self._grace.bytes, keys=lambda: self._kin.kept_keys
        )

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
        """Let a trace go with those that it rescues, or let it rest."""
        decision = judgement.decision
        if decision == "dropped":
            super().decided(trace, judgement, evidence, groups, now, out, earlier)
            return
        judgement = self.by_configuration(trace, judgement, evidence, groups, now)
        decision = judgement.decision
        kin, raw, trace_id = self._kin, evidence.raw, trace.trace_id
        if kin.due <= now:
            kin.forget_until(now)
        joins = self._reader.read(trace_id, raw, evidence.headers, evidence.links)
        if decision == "sampled":
            founder = Founder(judgement.policy, trace_id, self._quota)
            node = LinkedTrace(trace_id, joins, 0, founder, now + self._remembered)
        else:
            until = now + self._period
            node = LinkedTrace(trace_id, joins, self._unkept, None, until - until % -self._together)
        ties = kin.enter(node, joins.nameless, raw)
        if ties:
            own = next((tie for tie in ties if tie.node is node), None)
            self._rescue([tie for tie in ties if tie is not own], now, out)
            if own is not None:
                node.until = now + self._remembered
                judgement = linked(judgement, own)
                self._counted.kept_by(own)
        if node.founder is not None:
            kin.remember(node, groups)
            super().decided(trace, judgement, evidence, groups, now, out, earlier)
            return
        self.memory.let_go(trace)
        grace = self._grace
        grace.rest(node, trace, judgement, groups, now, len(raw))
        if self._caches:
            self.forget(trace, now)
        else:
            trace.close(FinalDecision(decision, now))
        if grace.bytes > self._most_bytes:
            self._bound(now, out)

    def _rescue(self, ties: Sequence[Tie], now: int, out: Released) -> None:
        """Let go traces that rested and are kept now, in order of their arrival."""
        rescued = [(self._grace.take(tie.node), tie) for tie in ties]
        rescued.sort(key=lambda one: one[0].arrived)
        for trace, tie in rescued:
            self._counted.kept_by(tie)
            self._keep(trace, tie.node, linked(tie.node.judgement, tie), now, out)

    def _keep(self, trace: HeldTrace, node: LinkedTrace, judgement: Judgement, now: int, out: Released) -> None:
        node.until = now + self._remembered
        self._kin.remember(node, node.groups)
        out.since = min(out.since, trace.arrived)
        groups, node.groups = node.groups, ()
        self.conclude(trace, judgement, self.inscribed(groups, judgement), node.at, now, out)

    def _bound(self, now: int, out: Released) -> None:
        while self._grace.bytes > self._most_bytes and (node := self._grace.oldest()) is not None:
            self._counted.pushed_out.add(1)
            self._let_go(node, now, out)

    def _let_go(self, node: LinkedTrace, now: int, out: Released) -> int:
        trace = self._grace.take(node)
        self._kin.web.remove(node)
        self.conclude(trace, node.judgement, node.groups, node.at, now, out)
        return trace.span_count

    def late(self, group: Group, decided: FinalDecision, now: int, out: Released) -> None:
        """Have late spans follow the decision, or rest with their trace; they may link it with others."""
        if not self._joined(group, now, out):
            super().late(group, decided, now, out)

    def late_remembered(self, group: Group, now: int, out: Released) -> None:
        """Have late spans follow the remembered decision; they may link their trace with others."""
        node = self._kin.node(group.trace_id)
        if node is not None and node.trace is None:
            self._learn(node, group, now, out)
        super().late_remembered(group, now, out)

    def late_unkept(self, group: Group, now: int, out: Released) -> Judgement | None:
        """Let late spans of a trace go that rests no more; if they rescue it, they rescue those linked with it, too."""
        rescue = super().late_unkept(group, now, out)
        if rescue is not None:
            self.kept_unheld(group.trace_id, rescue.policy, [group], now, out)
        return rescue

    def kept_unheld(self, trace_id: bytes, policy: str, groups: Sequence[Group], now: int, out: Released) -> None:
        """Let go what rests and is linked with a trace that was kept of which no more than this is known."""
        spans = b"".join([group.spans for group in groups])
        joins = self._reader.read(trace_id, spans, headers_of(groups))
        node = LinkedTrace(trace_id, joins, 0, Founder(policy, trace_id, self._quota), now + self._remembered)
        self._kin.forget_until(now)
        self._rescue(self._kin.enter(node, joins.nameless, spans), now, out)
        self._kin.remember(node, groups)

    def claims(self, group: Group, now: int, out: Released) -> bool:
        """Take late spans of a trace that rests, or that is remembered here alone."""
        if group.trace_id not in self._kin.web.nodes:
            return self._compact and super().claims(group, now, out)
        if self._joined(group, now, out) or super().claims(group, now, out):
            return True
        if self._kin.node(group.trace_id) is None:
            return False
        out.groups.append(group)
        return True

    def _joined(self, group: Group, now: int, out: Released) -> bool:
        """Learn from late spans, and let them rest with their trace if it does; return whether they did."""
        node = self._kin.node(group.trace_id)
        if node is None:
            return False
        rests = node.trace is not None
        if rests:
            self._grace.join(node, group)
            rescue = self.rescue_by(group)
            if rescue is not None:
                self._rescue_by_policy(node, rescue, now, out)
        self._learn(node, group, now, out)
        self._bound(now, out)
        return rests

    def _rescue_by_policy(self, node: LinkedTrace, rescue: Judgement, now: int, out: Released) -> None:
        """Keep a resting trace for what came late, as one that a policy kept."""
        trace = self._grace.take(node)
        self._rescue(self._kin.found(node, Founder(rescue.policy, node.trace_id, self._quota)), now, out)
        self._keep(trace, node, rescue, now, out)

    def _learn(self, node: LinkedTrace, group: Group, now: int, out: Released) -> None:
        self._kin.forget_until(now)
        if self._kin.node(node.trace_id) is not node:
            return
        joins = self._reader.read(group.trace_id, group.spans, headers_of([group]))
        self._rescue(self._kin.extend(node, joins, group.spans), now, out)

    def take_over(self, others: "Sequence[Releaser]", mine: Callable[[bytes], bool], now: int) -> None:
        """Take what rests with others and what they remember. Times stay as they were, bounds are these."""
        for other in others:
            if isinstance(other, LinkedReleaser):
                self._kin.take_over(other._kin)
                self._grace.take_over(other._grace)
        super().take_over(others, mine, now)

    def release(self, theirs: Callable[[bytes], bool]) -> Sequence[Resting]:
        """Part with what rests here of the traces that are `theirs`."""
        nodes = [node for node in self._grace if theirs(node.trace_id)]
        resting = [Resting(self._grace.take(node), node.judgement, node.groups, node.at) for node in nodes]
        return [*super().release(theirs), *resting]

    def saved_links(self, table: TraceTable, judge: Judge) -> Any:
        """Return what rests, and who is linked with whom."""
        nodes = WebTable()
        kin = self._kin.saved(nodes)
        grace = self._grace.saved(nodes, table, judge)
        return _SavedLinks(kin, grace, self._kin.web.saved(nodes))

    def restore_links(self, saved: Any, traces: Sequence[HeldTrace], judge: Judge) -> None:
        """Have rest what rested, linked as it was.

        Raises:
            StateError: it is damaged.
        """
        links = _SHAPE.read(saved)
        if any(len(levels) != self._unkept for _, levels in links.web.kept):
            raise StateError("it is damaged: max_hops was another")
        nodes = self._kin.web.restore(links.web)
        self._kin.restore(links.kin, nodes)
        self._grace.restore(links.grace, nodes, traces, judge)

    def held(self) -> int:
        """Return the number of spans that rest here."""
        return super().held() + self._grace.spans

    def held_since(self) -> int | None:
        """Return the arrival of the oldest span here."""
        sinces = (super().held_since(), self._grace.since())
        return min((since for since in sinces if since is not None), default=None)

    def deadline(self) -> int | None:
        """Return when the first of what rests leaves, or the first kept traces are forgotten: many at once."""
        if self._left_over:
            return self._left_over_due
        oldest, forgetting = self._grace.oldest(), self._kin.forgetting
        if forgetting is not None:
            forgetting -= forgetting % -self._together
        if oldest is None or (forgetting is not None and forgetting < oldest.until):
            return forgetting
        return oldest.until

    def expire(self, now: int, limit: int, out: Released) -> int:
        """Let go of what has rested for long enough, about `limit` spans of it; return how many."""
        spans = super().expire(now, limit, out) if super().deadline() is not None else 0
        for node in self._grace.due(now):
            if spans >= limit:
                break
            spans += self._let_go(node, now, out)
        if spans < limit and self._kin.due <= now:
            spans += self._kin.forget_until(now)
        return spans

    def drain(self, now: int, out: Released) -> int:
        """Let go of everything; return how many spans that were."""
        spans = super().drain(now, out)
        for node in self._grace.due(_EVER):
            spans += self._let_go(node, now, out)
        return spans


def linked(judgement: Judgement, tie: Tie) -> Judgement:
    """Return the judgement on a trace that no policy kept and that is kept for the sake of a neighbour."""
    neighbour, founder = tie.neighbour, tie.neighbour.founder
    by = "a link" if (join := join_of(tie.key)) == LINK else join
    assert founder is not None, "the neighbour is kept"
    is_founder = neighbour.trace_id == founder.trace_id
    whose = f"policy {founder.policy} kept" if is_founder else f"is linked with one that policy {founder.policy} kept"
    reason = f"linked by {by} with trace {neighbour.trace_id.hex()}, which {whose}"
    return judgement._replace(decision="sampled", policy=POLICY, reason=reason)
