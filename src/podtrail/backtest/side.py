"""One side of a comparison: a configuration run over the recording, or the recording itself, of which all is kept."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from podtrail.backtest.breakdown import PolicyTable
from podtrail.backtest.weight import WeightedTotal
from podtrail.component import DecidingConfig
from podtrail.otlp import Batch, Group, Intake, Link, SpanView, Verdict, raw_span_reader, split
from podtrail.pipeline.settings import Settings
from podtrail.replay.flows import Flows
from podtrail.replay.replayer import Replayer
from podtrail.replay.rootless import Rootless

_read_links = raw_span_reader({"links"})


@dataclass(frozen=True, slots=True)
class Contender:
    """A configuration to be compared."""

    name: str
    """`baseline`, `candidate`."""
    source: str
    """Where it was read from."""
    settings: Settings
    gates: Collection[str] = ()


@dataclass(slots=True)
class SideOutput:
    """Counts of what leaves the pipelines of one side."""

    spans: int = 0
    size: int = 0
    """Bytes of OTLP, uncompressed, as batched by the configuration."""
    dry_runs: int = 0
    """Decisions that nothing was made of."""
    weighed: WeightedTotal = field(default_factory=WeightedTotal)
    """Spans of the traces it keeps, for what they stand for."""

    def add(self, groups: Collection[Group]) -> None:
        """Count what leaves together."""
        before: Group | None = None
        for group in groups:
            self.spans += group.span_count
            self.size += len(group.spans)
            if before is None or before.resource is not group.resource:
                self.size += len(group.resource) + len(group.scope)
            elif before.scope is not group.scope:
                self.size += len(group.scope)
            before = group


TellDecision = Callable[[Verdict], None]
TellLink = Callable[[bytes, bytes], None]


class Side:
    """Takes the recording, tells decisions and links as they come."""

    def __init__(self, contender: Contender | None, told: TellDecision, linked: TellLink, seed: int = 0) -> None:
        """Run a configuration; None is the recording itself."""
        self.contender = contender
        self.output = SideOutput()
        self.rootless = Rootless()
        self._told = told
        self._linked = linked
        settings = contender.settings if contender is not None else None
        samplers = _samplers(settings) if settings is not None else []
        self.decides = bool(samplers) and all(samplers)
        """Whether every pipeline has a sampler; else everything counts as kept."""
        configs = [config for pipeline in samplers for config in pipeline]
        self.policies = PolicyTable(
            list(dict.fromkeys(name for config in configs for name in config.policy_names)),
            asks_all=all(config.asks_all_policies for config in configs),
        )
        self.flows = Flows("contain")
        """What became of the spans in each processor."""
        self._replayer: Replayer | None = None
        if contender is not None:
            self._replayer = Replayer(contender.settings, self._sink, contender.gates, seed, self.flows.around)

    @property
    def name(self) -> str:
        """How it is called."""
        return self.contender.name if self.contender is not None else "recording"

    def add(self, arrival: int, intake: Intake) -> None:
        """Take a request."""
        if self._replayer is None:
            self.output.add(intake.groups)
        else:
            self._replayer.add(arrival, intake)

    def finish(self) -> None:
        """Let all be decided."""
        if self._replayer is not None:
            self._replayer.finish()

    def _sink(self, _pipeline: str, batch: Batch) -> None:
        self.output.add(batch.groups)
        for verdict in batch.verdicts:
            self.output.dry_runs += verdict.dry_run
            self.policies.add(verdict)
            self.rootless.add(verdict)
            self._told(verdict)
        for group in batch.groups:
            for link in links_of(group):
                self._linked(group.trace_id, link.trace_id)


def links_of(group: Group) -> list[Link]:
    """Return the links of a group's spans."""
    fields = _read_links(group.spans)
    if not any(span.links for span in fields):
        return []
    raws = split(group.spans)
    return [link for raw, span in zip(raws, fields, strict=True) if span.links for link in SpanView(raw).links]


def _samplers(settings: Settings) -> list[list[DecidingConfig]]:
    """Return, by pipeline, the configurations of processors that decide."""
    configs = [[settings.processors[id].config for id in pipeline.processors] for pipeline in settings.pipelines]
    return [[c for c in some if isinstance(c, DecidingConfig) and c.policy_names] for some in configs]
