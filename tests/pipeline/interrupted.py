"""Chains fed with arrivals, and moved to another chain by a checkpoint on the way."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from podtrail.component.metrics import Gauge
from podtrail.otlp import Batch, Intake
from podtrail.otlp.decisions import decision_line
from podtrail.pipeline.checkpoint import Checkpointer
from podtrail.pipeline.settings import Settings
from podtrail.replay.replayer import Replayer

Arrival = tuple[int, Intake]


@dataclass
class Told:
    """What a run lets out, and what it says of itself at the end."""

    out: list[Any] = field(default_factory=list)
    gauges: dict[str, Any] = field(default_factory=dict)

    def take(self, pipeline: str, batch: Batch) -> None:
        decided = [(decision_line(verdict), verdict.explained()) for verdict in batch.verdicts]
        self.out.append((pipeline, batch.arrived, [tuple(group) for group in batch.groups], repr(decided)))


class Run:
    """The pipelines of a configuration."""

    def __init__(self, settings: Settings, told: Told, gates: Collection[str] = (), now: int = 0) -> None:
        self.replayer = Replayer(settings, told.take, gates)
        self.replayer.now = now
        self.chains = list(self.replayer.chains.values())
        self.checkpointers = [Checkpointer(chain) for chain in self.chains]

    def feed(self, arrivals: Iterable[Arrival]) -> None:
        for arrival, intake in arrivals:
            self.replayer.add(arrival, intake)

    def taken(self) -> list[bytes]:
        return [b"".join(checkpointer.take().pieces()) for checkpointer in self.checkpointers]

    def restore(self, states: Sequence[bytes]) -> None:
        for checkpointer, state in zip(self.checkpointers, states, strict=True):
            assert not checkpointer.restore(state)

    def take_over(self, predecessor: "Run") -> None:
        for ours, theirs in zip(self.chains, predecessor.chains, strict=True):
            every = [(at, at) for at in range(len(ours.processors))]
            ours.take_over(theirs, every, predecessor.replayer.now)

    def says(self) -> Any:
        """What can be asked of what is inside."""
        gauges = {
            instrument.name: dict(sorted(instrument.values().items()))
            for instrument in self.replayer.host.metrics
            if isinstance(instrument, Gauge)
        }
        asked = [(chain.held(), chain.deadline(), chain.blocked) for chain in self.chains]
        since = [processor.held_since() for chain in self.chains for processor in chain.processors]
        return gauges, asked, since
