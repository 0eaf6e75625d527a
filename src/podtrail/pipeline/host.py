"""What all components of a running podtrail (or of one replay) share, and how they are made with it."""

import logging
import random
from collections.abc import Callable, Mapping, Sequence
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
    return ProcessorChain(processors, ledger, tick)


def matching(ours: Sequence[str], theirs: Sequence[str], new: Settings, old: Settings) -> list[tuple[int, int]]:
    """Return the positions `(ours, theirs)` of the processors of the same id and type in two pipelines."""
    return [
        (at, list(theirs).index(id))
        for at, id in enumerate(ours)
        if id in theirs and new.processors[id].factory is old.processors[id].factory
    ]
