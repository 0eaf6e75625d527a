"""The oracle: the same arrivals at the same times through the same processors, as replay does it; nothing breaks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from podtrail.component import Ledger
from podtrail.otlp import Batch, read_request, split
from podtrail.pipeline.chain import SLICE_SPANS, ProcessorChain
from podtrail.pipeline.host import Host, make_chain, matching
from podtrail.pipeline.settings import PipelineSettings, Settings
from tests.reliability.simulation.scenario import Setup
from tests.reliability.simulation.witness import Arrived, Decided, Drained, Step, TakenOver, configured, decided


@dataclass(slots=True)
class Uninterrupted:
    """What a run without crashes lets out."""

    decisions: set[Decided] = field(default_factory=set)
    exported: dict[str, list[bytes]] = field(default_factory=dict)
    """By exporter: the spans, in order."""


class _Chain:
    """The chain of one pipeline, driven in virtual time."""

    def __init__(self, id: str, settings: Settings, seed: int, out: Uninterrupted) -> None:
        self.id = id
        self._seed = seed
        self._out = out
        self.settings = settings
        self._pipeline, self._chain = self._made(settings)

    def _made(self, settings: Settings) -> tuple[PipelineSettings, ProcessorChain]:
        pipeline = next(p for p in settings.pipelines if p.id == self.id)
        return pipeline, make_chain(pipeline, settings, Host(seed=self._seed), Ledger())

    def add(self, batch: Batch, now: int) -> None:
        self._advance(now)
        self._chain.add(batch, now)
        self._carry()

    def take_over(self, settings: Settings, now: int, due: int | None) -> None:
        self._catch_up(now, due)
        before, old, theirs = self._chain, self.settings, self._pipeline
        self._pipeline, self._chain = self._made(settings)
        self.settings = settings
        self._chain.take_over(before, matching(self._pipeline.processors, theirs.processors, settings, old), now)
        before.drain(now)
        while before.outbox:
            self._emit(before.outbox.popleft())
        self._carry()

    def _catch_up(self, now: int, due: int | None) -> None:
        """Do all that the other has done, who would do next what is `due`."""
        while (mine := self._chain.deadline()) is not None and mine <= now and (due is None or mine < due):
            self._advance(mine)

    def drain(self, now: int, due: int | None) -> None:
        self._catch_up(now, due)
        self._chain.drain(now)
        self._carry()

    def finish(self) -> None:
        """Let time pass until nothing is held any more."""
        while self._chain.held() and (due := self._chain.deadline()) is not None:
            self._advance(due)

    def _advance(self, now: int) -> None:
        while self._chain.advance(now, SLICE_SPANS):
            self._carry()
        self._carry()

    def _carry(self) -> None:
        while self._chain.outbox:
            self._emit(self._chain.outbox.popleft())

    def _emit(self, batch: Batch) -> None:
        self._out.decisions.update(decided(self.id, verdict) for verdict in batch.verdicts)
        for group in batch.groups:
            for exporter in self._pipeline.exporters:
                self._out.exported.setdefault(exporter, []).extend(split(group.spans))


def in_effect(
    steps: Sequence[Step], begun_with: Mapping[int, Setup], settings_of: Callable[[Setup], Settings]
) -> list[Step]:
    """Return steps without what is done again after a crash: arrivals, and reloads that were cut off.

    Which of the reloads that nothing came after were on disk when the crash came is told by what the next life takes
    over from first of all; if from nothing, it is configured as the last that was.
    """
    kept: list[Step] = []
    arrived: set[tuple[str, int, int]] = set()
    open_ended: dict[str, list[TakenOver]] = {}
    found: dict[tuple[int, str], str] = {}
    for step in steps:
        if isinstance(step, TakenOver):
            found.setdefault((step.life, step.pipeline), step.before)

    def settle(life: int, pipeline: str) -> None:
        candidates = open_ended.get(pipeline, [])
        if not candidates or candidates[-1].life == life:
            return
        on_disk = found.get((life, pipeline)) or configured(pipeline, settings_of(begun_with[life]))
        while candidates and configured(pipeline, settings_of(candidates[-1].setup)) != on_disk:
            kept.remove(candidates.pop())
        candidates.clear()

    for step in steps:
        if isinstance(step, Arrived):
            if (step.pipeline, step.now, step.request) in arrived:
                continue
            arrived.add((step.pipeline, step.now, step.request))
            settle(step.life, step.pipeline)
            open_ended.pop(step.pipeline, None)
        elif isinstance(step, TakenOver):
            settle(step.life, step.pipeline)
            open_ended.setdefault(step.pipeline, []).append(step)
        kept.append(step)
    for pipeline in open_ended:
        settle(max(begun_with), pipeline)
    return kept


def uninterrupted(
    steps: Sequence[Step],
    begun_with: Mapping[int, Setup],
    settings_of: Callable[[Setup], Settings],
    raw: Callable[[int], bytes],
    *,
    seed: int,
) -> Uninterrupted:
    """Return what the steps would have led to, each arrival done once.

    Args:
        steps: in order; what a recovery does again is in there again.
        begun_with: how each of the lives began.
        settings_of: gives those that a reload goes to.
        raw: gives the bytes of a request.
        seed: of the processors' randomness.
    """
    out = Uninterrupted()
    first = settings_of(begun_with[min(begun_with)])
    chains = {pipeline.id: _Chain(pipeline.id, first, seed, out) for pipeline in first.pipelines}
    for step in in_effect(steps, begun_with, settings_of):
        match step:
            case Arrived(_, pipeline, now, request):
                chains[pipeline].add(Batch(read_request(raw(request)).groups, now), now)
            case TakenOver(_, pipeline, now, setup, due, _):
                chains[pipeline].take_over(settings_of(setup), now, due)
            case Drained(_, pipeline, now, due):
                chains[pipeline].drain(now, due)
    for chain in chains.values():
        chain.finish()
    return out
