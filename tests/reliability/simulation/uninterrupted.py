"""The oracle: the same arrivals at the same times through the same processors, as replay does it; nothing breaks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from podtrail.component import Ledger
from podtrail.otlp import Batch, read_request, split
from podtrail.pipeline.chain import SLICE_SPANS, ProcessorChain
from podtrail.pipeline.host import Host, make_chain, matching
from podtrail.pipeline.settings import PipelineSettings, Settings
from tests.reliability.simulation.scenario import Setup
from tests.reliability.simulation.witness import Arrived, Decided, Drained, Step, TakenOver, decided


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


def in_effect(steps: Iterable[Step]) -> list[Step]:
    """Return steps without what is done again after a crash: arrivals, and reloads that were cut off."""
    kept: list[Step] = []
    arrived: set[tuple[str, int, int]] = set()
    cut_off: dict[str, TakenOver] = {}
    for step in steps:
        if isinstance(step, Arrived):
            if (step.pipeline, step.now, step.request) in arrived:
                continue
            arrived.add((step.pipeline, step.now, step.request))
            cut_off.pop(step.pipeline, None)
        elif isinstance(step, TakenOver):
            before = cut_off.get(step.pipeline)
            if before is not None and before.life < step.life:
                kept.remove(before)
            cut_off[step.pipeline] = step
        kept.append(step)
    return kept


def uninterrupted(
    steps: Iterable[Step],
    first: Settings,
    settings_of: Callable[[Setup], Settings],
    raw: Callable[[int], bytes],
    *,
    seed: int,
) -> Uninterrupted:
    """Return what the steps would have led to, each arrival done once.

    Args:
        steps: in order; what a recovery does again is in there again.
        first: the settings of the beginning.
        settings_of: gives those that a reload goes to.
        raw: gives the bytes of a request.
        seed: of the processors' randomness.
    """
    out = Uninterrupted()
    chains = {pipeline.id: _Chain(pipeline.id, first, seed, out) for pipeline in first.pipelines}
    for step in in_effect(steps):
        match step:
            case Arrived(_, pipeline, now, request):
                chains[pipeline].add(Batch(read_request(raw(request)).groups, now), now)
            case TakenOver(_, pipeline, now, setup, due):
                chains[pipeline].take_over(settings_of(setup), now, due)
            case Drained(_, pipeline, now, due):
                chains[pipeline].drain(now, due)
    for chain in chains.values():
        chain.finish()
    return out
