"""What all components of a running podtrail (or of one replay) share, and how they are made with it."""

import logging
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from podtrail.component import Context, Fact, FactListener, IncomingBytes, Ledger, Metrics, Processor, StartError
from podtrail.component.enrichment import EnrichingMemories
from podtrail.component.factory import Reclaim, nothing_reclaimed
from podtrail.component.failures import FailureReporter
from podtrail.component.refusals import RefusalWatch
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.settings import ComponentSettings, PipelineSettings, Settings

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

_LOG = logging.getLogger("podtrail")


def _unmeasured() -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Host:
    """Shared by all components; outlives a reload."""

    metrics: Metrics = field(default_factory=Metrics)
    gates: frozenset[str] = frozenset()
    memory_used: Callable[[], int] = _unmeasured
    reclaim_memory: Reclaim = nothing_reclaimed
    enriching: EnrichingMemories = field(default_factory=EnrichingMemories)
    """Of all components: `memory_limiter` has them shrink before it refuses spans."""
    memory_budget: int = 0
    """Bytes that all components together may hold; 0: unlimited."""
    refusals: RefusalWatch = field(default_factory=RefusalWatch)
    """Whether everything that is sent is refused."""
    arriving: IncomingBytes = field(default_factory=IncomingBytes)
    stopwatch: Callable[[], int] = _unmeasured
    """Measures what work takes, in nanoseconds."""
    seed: int | str | None = None
    """Of all randomness; None draws one."""
    support_files: Callable[[], Mapping[str, str]] = dict
    """What the process tells of itself for a support bundle."""
    tracer: "Tracer | None" = None
    """Makes podtrail's own spans; None where nobody wants any."""
    listeners: list[FactListener] = field(default_factory=list)
    """Who takes the facts that receivers tell; the running graph's."""

    def tell(self, fact: Fact) -> None:
        """Tell every listener."""
        for listener in self.listeners:
            listener.note(fact)

    def context(
        self,
        id: str,
        pipeline: str = "",
        ledger: Ledger | None = None,
        *,
        resumed: bool = False,
        lag: Callable[[], int] = _unmeasured,
    ) -> Context:
        """Return the context of one component instance. `lag`: how late its pipeline is."""
        seed = None if self.seed is None else f"{self.seed}/{pipeline}/{id}"
        return Context(
            id=id,
            pipeline=pipeline,
            ledger=ledger or Ledger(),
            metrics=self.metrics,
            log=_log(id, pipeline),
            rng=random.Random(seed),  # noqa: S311 - sampling and jitter, not secrets
            resumed=resumed,
            gates=self.gates,
            memory_used=self.memory_used,
            reclaim_memory=self.reclaim_memory,
            enriching=self.enriching,
            refusals=self.refusals,
            memory_budget=self.memory_budget,
            arriving=self.arriving,
            stopwatch=self.stopwatch,
            lag=lag,
            tell=self.tell,
            support_files=self.support_files,
        )

    def failures(self, id: str, pipeline: str = "") -> FailureReporter:
        """Return where the failures of one component instance are reported."""
        return FailureReporter(id, self.metrics, _log(id, pipeline), pipeline)

    def make(self, settings: ComponentSettings, context: Context) -> Any:
        """Make a component.

        Raises:
            StartError: it can't be made; the text names it.
        """
        try:
            made = settings.factory.create(settings.config, context)
            if made is None:
                raise StartError("create returned None, which is no component")
        except Exception as error:
            raise self.failures(context.id, context.pipeline).start_error(settings.factory.kind, error) from error
        return made


def _log(id: str, pipeline: str) -> logging.LoggerAdapter[logging.Logger]:
    return logging.LoggerAdapter(_LOG, {"component": id, "pipeline": pipeline})


def _bare(processor: Processor, _: Context) -> Processor:
    return processor


def make_chain(
    pipeline: PipelineSettings,
    settings: Settings,
    host: Host,
    ledger: Ledger,
    lag: Callable[[], int] = _unmeasured,
    around: Callable[[Processor, Context], Processor] = _bare,
    tick: int = 1,
) -> ProcessorChain:
    """Return the processors of one pipeline, an instance of each for it alone.

    Args:
        pipeline: says which processors, in which order.
        settings: has their configurations.
        host: makes them.
        ledger: the pipeline's.
        lag: by how many nanoseconds the pipeline is late.
        around: given each processor and its context, returns what takes its place in the chain.
        tick: what falls due is done at the next multiple of so many nanoseconds.

    Raises:
        StartError: a processor can't be made; it names which.
    """
    processors: list[Processor] = []
    for id in pipeline.processors:
        context = host.context(id, pipeline.id, ledger, lag=lag)
        processors.append(around(host.make(settings.processors[id], context), context))
    return ProcessorChain(processors, ledger, tick, pipeline.processors)


def matching(ours: Sequence[str], theirs: Sequence[str], new: Settings, old: Settings) -> list[tuple[int, int]]:
    """Return the positions `(ours, theirs)` of processors of two pipelines that follow each other.

    They are of the same id and type; or one was renamed: of its type just one is left over on each side.
    """
    pairs = [
        (at, list(theirs).index(id))
        for at, id in enumerate(ours)
        if id in theirs and new.processors[id].factory is old.processors[id].factory
    ]
    left = _by_type(ours, new, {at for at, _ in pairs})
    theirs_left = _by_type(theirs, old, {at for _, at in pairs})
    for type_, places in left.items():
        if len(places) == len(others := theirs_left.get(type_, [])) == 1:
            pairs.append((places[0], others[0]))
    return sorted(pairs)


def _by_type(ids: Sequence[str], settings: Settings, paired: set[int]) -> Mapping[str, list[int]]:
    """Return the places of the other processors by their type."""
    found: dict[str, list[int]] = {}
    for at, id in enumerate(ids):
        if at not in paired:
            found.setdefault(settings.processors[id].factory.type, []).append(at)
    return found


def left_over(ids: Sequence[str], chain: ProcessorChain, taken: Collection[int] = ()) -> Mapping[str, int]:
    """Return the spans that processors of a chain hold and no other takes over, by the id of the processor.

    Args:
        ids: Of the processors.
        chain: They themselves.
        taken: The places of those that are taken over.
    """
    held = [(at, id, processor.held()) for at, (id, processor) in enumerate(zip(ids, chain.processors, strict=True))]
    return {id: spans for at, id, spans in held if spans and at not in taken}


def report_decided_early(metrics: Metrics, pipeline: str, left: Mapping[str, int]) -> None:
    """Log and count the spans of processors that no other one takes over (`left_over`): they are decided now."""
    counter = metrics.counter(
        "podtrail_decided_early_spans_total",
        "Number of spans decided early because a new configuration has no processor that takes them over.",
        ("pipeline", "processor"),
    )
    for id, spans in left.items():
        counter.add(spans, pipeline, id)
        _log(id, pipeline).warning(
            "decides %d spans early: in the new configuration no processor takes them over (one of the same name and "
            "type, or the only other one of its type, in the same pipeline)",
            spans,
        )
