"""The state machine: traces come in, wait for their time, are judged and leave, as a whole or not at all."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from podtrail.component import Context, Taken
from podtrail.config.types import SECOND
from podtrail.otlp import Batch, Group
from podtrail.otlp.columns import column_reader
from podtrail.otlp.native import has_root
from podtrail.state import PartlyRestored, StateError, StateShape, known_version
from podtrail_processors.evidence.evidence import Evidence, Header
from podtrail_processors.evidence.sizes import Meter
from podtrail_processors.tail_sampling.config.sampler import Config
from podtrail_processors.tail_sampling.holding.bounds import Bounds
from podtrail_processors.tail_sampling.holding.evicted import Evicted
from podtrail_processors.tail_sampling.holding.held_trace import (
    CHUNK_WEIGHT,
    FORGOTTEN,
    FinalDecision,
    HeldTrace,
    SavedTrace,
    TraceTable,
)
from podtrail_processors.tail_sampling.holding.trace_memory import SavedMemory, TraceMemory
from podtrail_processors.tail_sampling.judging.instruments import Instruments
from podtrail_processors.tail_sampling.judging.judge import Judge, Judgement, SavedPolicies
from podtrail_processors.tail_sampling.judging.shadow import judge_of
from podtrail_processors.tail_sampling.judging.timing import DecisionTimer
from podtrail_processors.tail_sampling.leaving.releaser import Released, Releaser, SavedReleaser
from podtrail_processors.tail_sampling.leaving.stress_relief import SavedStress, StressRelief
from podtrail_processors.tail_sampling.remembering.decisions import TAIL
from podtrail_processors.tail_sampling.weighing import TRACE_COST, Weighing

_SLICE = 4096
"""How many spans leave in one batch at shutdown."""
_NO_PARENT = bytes(8)
_TOO_LARGE = Judgement("not_sampled", "", "it is larger than maximum_trace_size_bytes", {})
_EVICTED = Judgement("dropped", "", "evicted undecided: num_traces", {})
_PENDING = Judgement("dropped", "", "undecided at shutdown: drop_pending_traces_on_shutdown", {})


class _Filing:
    """What one batch has to be filed: its groups, and what is known of them so far."""

    __slots__ = ("arrived", "due", "followed", "groups", "message", "meter", "now", "opened", "out", "rest")

    def __init__(self, groups: Sequence[Group], arrived: int, due: int, now: int, out: Released) -> None:
        self.groups = iter(groups)
        """Those that are left."""
        self.arrived = arrived
        self.due = due
        """When traces that begin with it are decided."""
        self.now = now
        self.out = out
        self.message = 0
        """The number of the ResourceSpans message that is being filed."""
        self.followed: set[tuple[int, bytes]] = set()
        """Messages and traces of which late spans have been counted."""
        self.meter = Meter()
        self.opened = 0
        """How many traces began."""
        self.rest: Sequence[Group] = ()
        """What there was no room for."""


class SavedSampler(NamedTuple):
    """A sampler in a saved state; traces by their numbers."""

    traces: tuple[SavedTrace, ...]
    memory: SavedMemory
    weighing: tuple[tuple[int, ...], int]
    giant: int | None
    evicted: tuple[tuple[bytes, int], ...]
    releaser: SavedReleaser
    stress: SavedStress | None
    judge: SavedPolicies


_SHAPE: Final = StateShape[SavedSampler](SavedSampler)


class TailSampling:
    """Holds traces until they are due, then keeps or drops each as a whole."""

    judge_type: ClassVar = Judge

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._wait = _whole_seconds(config.decision_wait) or SECOND
        after_root = config.decision_wait_after_root_received
        self._wait_after_root = _whole_seconds(after_root) or max(0, after_root)
        self._room = max(1, config.num_traces)
        self._blocks = config.block_on_overflow
        self._bounds = Bounds(config, context.metrics)
        self._parents = column_reader({"parent_span_id"})
        self._instruments = Instruments(context.metrics, lambda: len(self.memory.traces), context.gates)
        self._judge = judge_of(self.judge_type, config, self._instruments, context)
        self._timer = DecisionTimer(self._instruments.timer_latency, context.stopwatch)
        self._measures = bool(config.maximum_trace_size_bytes or self._judge.measures)
        self._inspects = bool(self._wait_after_root or self._measures or config.decision_idle or self._bounds.watches)
        self.memory = TraceMemory(idle=config.decision_idle, weighs_headers=bool(config.maximum_held_mib))
        self._weighing = Weighing(self._judge, self.memory.waiting, self._evidence)
        weighs = self._judge.weighs or self._judge.dynamic
        self.releaser = _releaser_of(config)(config, context, self._instruments, self.memory, weighs=weighs)
        self.releaser.weighs_late = self._judge.dynamic
        self._judge.forgetting.include(self.releaser.changes)
        self._evicted = Evicted(config.most_evicted)
        self._stress_relief: StressRelief | None = None
        if config.stress_relief.mode != "off":
            self._stress_relief = StressRelief(config, context, self._instruments, self.releaser, weighs=weighs)

    def add(self, batch: Batch, now: int) -> Taken:
        """File spans under their traces. Late spans of kept traces leave at once, so do verdicts on evicted ones.

        Where `block_on_overflow` is on, spans are left over while all of `num_traces` are undecided.
        """
        out = Released([], list(batch.verdicts))
        memory, arrived = self.memory, batch.arrived
        memory.note_arrival(arrived, now + self._wait)
        groups = self._stress_relief.take(batch.groups, arrived, now, out) if self._stress_relief else batch.groups
        filing = _Filing(groups, arrived, now + self._wait, now, out)
        self._file(filing)
        if filing.opened:
            self._instruments.new_traces.add(filing.opened)
        if self._bounds.exceeded(memory):
            self._decide_to_fit(now, out)
        self._judge.forgetting.watch()  # traces may have been decided early
        self.releaser.report()
        return Taken(out.batches(arrived), Batch(filing.rest, arrived) if filing.rest else None)

    def _file(self, filing: "_Filing") -> None:
        """Put spans where they belong. What is done for each group stands here, what for a few in methods."""
        memory, remembered, inspects = self.memory, self.releaser.remembered, self._inspects
        traces, intern = memory.traces, memory.headers.intern
        remembers, kept, others = remembered.any, remembered.kept.tails, remembered.others.tails
        under_resource = under_scope = b""
        header = intern(under_resource, under_scope)
        spans = weights = 0
        for group in filing.groups:
            resource, scope, trace_id, chunk, count = group
            if remembers and ((tail := trace_id[TAIL]) in kept or tail in others):
                self.releaser.late_remembered(group, filing.now, filing.out)
                continue
            if resource is not under_resource or scope is not under_scope:
                filing.message += resource is not under_resource
                under_resource, under_scope = resource, scope
                header = intern(resource, scope)
            trace = traces.get(trace_id)
            if trace is None or trace.state is not None:
                if (trace := self._open(group, header, trace, filing)) is None:
                    continue
            elif trace.header is not header:
                memory.turn(trace, header)
            weight = len(chunk) + CHUNK_WEIGHT
            trace.chunks.append(chunk)
            trace.span_count += count
            trace.weight += weight
            spans += count
            weights += weight
            if inspects:
                self._inspect(trace, group, filing)
        memory.spans += spans
        memory.bytes += weights

    def _open(self, group: Group, header: Header, trace: HeldTrace | None, filing: "_Filing") -> HeldTrace | None:
        """Return a new trace for spans; None when theirs is decided (`trace`, or a remembered one), or has no room."""
        if trace is not None:
            self._follow(group, trace, filing)
            return None
        memory, releaser = self.memory, self.releaser
        if releaser.knows and releaser.claims(group, filing.now, filing.out):
            return None
        if len(memory.traces) >= self._room and not self._make_room(filing.now, filing.out):
            filing.rest = [group, *filing.groups]
            return None
        filing.opened += 1
        return memory.open(HeldTrace(group.trace_id, header, filing.arrived, filing.due, filing.now))

    def _follow(self, group: Group, trace: HeldTrace, filing: "_Filing") -> None:
        """Have late spans follow the decision on their trace; their age counts once for each message."""
        assert trace.state is not None, "it is decided"
        state, part = trace.state, (filing.message, group.trace_id)
        self.releaser.late(group, state, filing.now, filing.out)
        if part not in filing.followed:
            filing.followed.add(part)
            self._note_late(state, filing.now)

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        """Judge traces that are due, in the order in which they fell due, until about `limit` spans were looked at."""
        out = Released([], [])
        began = self._timer.begin()
        looked = self._stress_relief.look(now) if self._stress_relief else False
        counted = self._evicted.settle(now, self.memory.traces) if self._evicted else None
        if counted:
            self._instruments.too_early.add(counted)
        looked = self._judge.forgetting.expire(now) or looked
        due = self._weighing.last_tick(now)
        arrived, work = now, self._weighing.weigh_by(due, now, limit)
        while work < limit and (trace := self.memory.waiting.due_by(due)) is not None:
            work += trace.span_count + TRACE_COST
            if trace.arrived < arrived:
                arrived = trace.arrived
            self._decide(trace, now, out)
        departing = self.releaser.deadline()
        if work < limit and departing is not None and departing <= now:
            arrived = min(arrived, self.releaser.held_since() or now)
            work += self.releaser.expire(now, limit - work, out)
        if not work:
            return (Batch((), now),) if looked or counted is not None else ()
        self._judge.forgetting.watch()
        self._judge.report()
        self.releaser.report()
        self._timer.end(began, now)
        return out.batches(arrived) or (Batch((), now),)

    def deadline(self) -> int | None:
        """Return when the next trace falls due."""
        due = self.memory.waiting.deadline()
        if due is not None:
            due = self._weighing.tick_of(due)
        relief = self._stress_relief
        forgetting = (self._judge.forgetting.deadline(), relief.deadline() if relief else None)
        for other in (self._evicted.deadline(), self.releaser.deadline(), *forgetting):
            if other is not None and (due is None or other < due):
                due = other
        return due

    def held(self) -> int:
        """Return the number of spans inside."""
        return self.memory.spans + self.releaser.held()

    def held_since(self) -> int | None:
        """Return the arrival of the oldest span inside, or an earlier time if arrivals were out of order."""
        sinces = (self.memory.held_since(), self.releaser.held_since())
        return min((since for since in sinces if since is not None), default=None)

    state_version = 1

    def save_state(self) -> Any:
        """Return what it holds and remembers."""
        table = TraceTable()
        memory = self.memory.saved(table)
        others = (
            *(self._weighing.saved(table), self._bounds.saved(table), self._evicted.saved()),
            self.releaser.saved(table, self._judge),
            self._stress_relief.saved(self._judge) if self._stress_relief else None,
            self._judge.saved(),
        )
        return SavedSampler(table.saved(), memory, *others)

    def restore_state(self, version: int, state: Any) -> None:
        """Hold and remember what was saved. A policy that can't begins empty.

        Raises:
            StateError: it can't be read.
            PartlyRestored: a policy begins empty.
        """
        known_version(version, 1)
        saved = _SHAPE.read(state)
        intern = self.memory.headers.intern
        traces = [HeldTrace.restored(trace, intern) for trace in saved.traces]
        try:
            self.memory.restore(saved.memory, traces)
            self._weighing.restore(*saved.weighing, traces)
            self._bounds.restore(saved.giant, traces)
            self.releaser.restore(saved.releaser, traces, self._judge)
        except IndexError as error:
            raise StateError("it is damaged: it lacks a trace") from error
        self._evicted.restore(saved.evicted)
        if self._stress_relief and saved.stress:
            self._stress_relief.restore(saved.stress, self._judge)
        if problems := self._judge.restore(saved.judge):
            raise PartlyRestored(problems)

    def parts(self) -> "Sequence[TailSampling]":
        """Return the samplers that this one is made of: itself."""
        return (self,)

    def take_over(self, predecessor: "Divisible", now: int) -> None:
        """Take what another sampler holds and remembers. Times stay as they were, the policies are these."""
        others = predecessor.parts()
        if len(others) > 1:
            redistribute(others, [self], lambda _: 0, now)
            return
        (other,) = others
        self._judge.take_over(other._judge)
        if self._stress_relief and other._stress_relief:
            self._stress_relief.take_over(other._stress_relief)
        self.releaser.take_over([other.releaser], lambda _: True, now)
        self.memory.take_over(other.memory)
        self._evicted, other._evicted = other._evicted, self._evicted
        self._forget_surplus(now)

    def _forget_surplus(self, now: int) -> None:
        memory = self.memory
        while len(memory.traces) > self._room and memory.oldest().state is not None:
            self.releaser.forget(memory.oldest(), now)

    def drain(self, now: int) -> Sequence[Batch]:
        """Judge everything on what is there, or lose it where `drop_pending_traces_on_shutdown` says so."""
        batches: list[Batch] = []
        pending = self._config.drop_pending_traces_on_shutdown
        out, arrived, work = Released([], []), now, 0
        for trace in self._weighing.remaining(now):
            arrived = min(arrived, trace.arrived)
            work += trace.span_count + TRACE_COST
            if pending:
                self.releaser.lost(trace, _PENDING, "undecided_at_shutdown", now, out)
                trace.close(FORGOTTEN)
            else:
                self._decide(trace, now, out)
            if work >= _SLICE:
                batches += out.batches(arrived)
                out, arrived, work = Released([], []), now, 0
        self.releaser.drain(now, out)
        batches += out.batches(arrived)
        evicted = self._evicted.settle_all(self.memory.traces)
        if evicted and not pending:
            self._instruments.too_early.add(evicted)
        self._judge.report()
        self.releaser.report()
        return batches

    def _make_room(self, now: int, out: Released) -> bool:
        """Let go of the oldest trace in memory; if it is undecided, it is lost, or stays where that is to block.

        Returns:
            Whether there is room now.
        """
        oldest = self.memory.oldest()
        if oldest.state is None:
            if self._blocks:
                return False
            counted = self._evicted.add(oldest.trace_id, oldest.due, self.memory.traces)
            if counted:
                self._instruments.too_early.add(counted)
            self.releaser.lost(oldest, _EVICTED, "evicted_undecided", now, out)
        self.releaser.forget(oldest, now)
        return True

    def _note_late(self, decided: FinalDecision, now: int) -> None:
        if decided.at is not None:
            self._instruments.late_age.observe((now - decided.at) // SECOND)

    def _inspect(self, trace: HeldTrace, group: Group, filing: "_Filing") -> None:
        """See whether these spans, just added to their trace, bring its decision nearer."""
        trace.last, out = (now := filing.now), filing.out
        if self._measures:
            trace.size = filing.meter.grown(trace.size, filing.message, group)
        if self._wait_after_root:
            self._advance_at_root(trace, group, now)
        if self._is_too_large(trace):
            self._refuse(trace, None, now, out)
        elif self._bounds.watches and self._bounds.outgrown(trace):
            self._decide_early(trace, now, out)
            self._judge.report()

    def _advance_at_root(self, trace: HeldTrace, group: Group, now: int) -> None:
        """Bring a trace's decision nearer if its root is among these spans."""
        found = has_root(group.spans)
        if found is None:
            parents = self._parents(group.spans).parent_span_id
            found = len(parents) < group.span_count or _NO_PARENT in parents
        if found:
            self.memory.waiting.advance(trace, now + self._wait_after_root)

    def _is_too_large(self, trace: HeldTrace) -> bool:
        most = self._config.maximum_trace_size_bytes
        return bool(most) and trace.size.messages > most

    def _refuse(self, trace: HeldTrace, decided_at: int | None, now: int, out: Released) -> None:
        """Let go of a trace that is too large, without a vote."""
        self._instruments.too_large.add(1)
        self.releaser.refused(trace, _TOO_LARGE, decided_at, now, out)

    def _decide_to_fit(self, now: int, out: Released) -> None:
        """Decide traces until the rest stays within the bound."""
        early = 0
        while (trace := self._bounds.next_to_go(self.memory)) is not None:
            self._decide_early(trace, now, out)
            early += 1
        self._instruments.decided_early.add(early)
        self._judge.report()

    def _decide_early(self, trace: HeldTrace, now: int, out: Released) -> None:
        """Decide on a trace before its time."""
        self._weighing.weigh_alone(trace, now)
        self._decide(trace, now, out)

    def _decide(self, trace: HeldTrace, now: int, out: Released) -> None:
        chunks = trace.chunks
        joined = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        evidence = self._evidence(trace, joined, now)
        self.releaser.decided(trace, self._judge.judge(evidence), evidence, trace.groups(joined), now, out)

    def _evidence(self, trace: HeldTrace, joined: bytes, now: int) -> Evidence:
        """Return what a trace says. `joined`: its chunks put together."""
        return Evidence(
            trace.trace_id,
            joined,
            trace.span_count,
            trace.headers(),
            trace.counts(),
            self._judge.readers,
            now,
            trace.size,
        )


def _releaser_of(config: Config) -> type[Releaser]:
    """Return what lets traces go: what knows of links is loaded only where they count."""
    if not config.linked_traces.keep:
        return Releaser
    from podtrail_processors.tail_sampling.leaving.linked.releaser import LinkedReleaser

    return LinkedReleaser


def _whole_seconds(duration: int) -> int:
    """Return a duration cut to whole seconds, as the Collector's timer does."""
    return max(0, duration // SECOND * SECOND)


class Divisible(Protocol):
    """A sampler, or several side by side."""

    def parts(self) -> Sequence[TailSampling]:
        """Return the samplers that it is made of."""


def redistribute(
    before: Sequence[TailSampling], after: Sequence[TailSampling], place_of: Callable[[bytes], int], now: int
) -> None:
    """Deal out by their ids what samplers hold; every one of the new remembers all decisions that it has room for.

    Args:
        before: The samplers that part with everything.
        after: Those that take it.
        place_of: Tells by a trace's id which of them is to have it.
        now: Pipeline time, Unix nanoseconds.
    """
    contents = [one.memory.release() for one in before]
    dealt: list[list[HeldTrace]] = [[] for _ in after]
    for trace in (trace for part in contents for trace in part.traces):
        dealt[place_of(trace.trace_id)].append(trace)
    missed = {key: due for one in before for key, due in one._evicted.release().items()}
    stress = [one._stress_relief for one in before if one._stress_relief]
    for at, sampler in enumerate(after):
        mine = partial(_is_at, at, place_of)
        sampler._judge.take_over(before[at % len(before)]._judge)
        if sampler._stress_relief:
            sampler._stress_relief.inherit(stress, mine)
        sampler.releaser.take_over([one.releaser for one in before], mine, now)
        sampler.memory.inherit(contents, dealt[at])
        sampler._evicted.inherit({key: due for key, due in missed.items() if place_of(key[1]) == at})
        sampler._forget_surplus(now)


def _is_at(at: int, place_of: Callable[[bytes], int], trace_id: bytes) -> bool:
    return place_of(trace_id) == at
