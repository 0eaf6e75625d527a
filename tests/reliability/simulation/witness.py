"""Sees what the pipelines' chains are given and what leaves them, without being a part of them."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unittest.mock import patch

from podtrail.component import Ledger
from podtrail.otlp import Batch, Verdict
from podtrail.pipeline import graph, host
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.settings import PipelineSettings, Settings
from tests.reliability.simulation.scenario import Setup
from tests.reliability.simulation.traffic import SpanKey, keys_of


class Arrived(NamedTuple):
    """A chain was given a request."""

    life: int
    pipeline: str
    now: int
    request: int


class TakenOver(NamedTuple):
    """A reload: a chain took over what its predecessor held."""

    life: int
    pipeline: str
    now: int
    setup: Setup
    due: int | None
    """What the predecessor would have done next: all before that it has done."""
    before: str
    """How the processors of the predecessor were configured."""


class Drained(NamedTuple):
    """A chain was shut down, and decided what was undecided."""

    life: int
    pipeline: str
    now: int
    due: int | None
    """What it would have done next."""


Step = Arrived | TakenOver | Drained


class Decided(NamedTuple):
    """A sampler's verdict, as far as it must not depend on crashes."""

    pipeline: str
    trace: bytes
    decision: str
    policy: str
    decided_at: int
    arrived: int
    spans: int


class Left(NamedTuple):
    """Spans left the processors of a pipeline."""

    life: int
    pipeline: str
    at: float
    """Virtual seconds."""
    keys: Sequence[SpanKey]


def decided(pipeline: str, verdict: Verdict) -> Decided:
    """Return what of a verdict is compared."""
    return Decided(
        pipeline,
        verdict.trace_id,
        verdict.decision,
        verdict.policy,
        verdict.decided_at,
        verdict.arrived,
        verdict.spans,
    )


def configured(pipeline: str, settings: Settings) -> str:
    """Return how a pipeline's processors are configured: for chains configured alike the same."""
    processors = next((p.processors for p in settings.pipelines if p.id == pipeline), ())
    return json.dumps([(id, settings.processors[id].written) for id in processors])


@dataclass(slots=True)
class Witness:
    """Remembers the steps of all chains of all lives."""

    life: int = 0
    setup: Setup | None = None
    """What a reload that is under way goes to."""
    stopping: bool = False
    steps: list[Step] = field(default_factory=list)
    decisions: list[tuple[int, Decided]] = field(default_factory=list)
    """With the life in which each was."""
    requests: dict[SpanKey, int] = field(default_factory=dict)
    """Which request has a span."""
    left: list[Left] = field(default_factory=list)
    now: Callable[[], float] = float
    """Virtual seconds."""
    over: bool = False
    """Whether the life is over: what a dead process does has not happened."""
    _names: dict[int, str] = field(default_factory=dict)
    _ledgers: list[Ledger] = field(default_factory=list)
    _made: dict[ProcessorChain, str] = field(default_factory=dict)
    """How the processors of chains are configured."""

    def meet(self, pipeline: str, ledger: Ledger) -> None:
        """Know a pipeline by its ledger, which all of its chains have."""
        self._ledgers.append(ledger)  # so that no other gets its address
        self._names[id(ledger)] = pipeline

    def _pipeline(self, chain: ProcessorChain) -> str | None:
        return None if self.over else self._names.get(id(chain.ledger))

    def observe(self, pipeline: str, batch: Batch) -> None:
        """See what leaves a pipeline."""
        if self.over:
            return
        if batch.groups:
            self.left.append(Left(self.life, pipeline, self.now(), keys_of(batch)))
        self.decisions += [(self.life, decided(pipeline, verdict)) for verdict in batch.verdicts]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """See everything in there."""
        add, take_over, drain = ProcessorChain.add, ProcessorChain.take_over, ProcessorChain.drain
        witness, make = self, host.make_chain

        def seen_made(pipeline: PipelineSettings, settings: Settings, *others: Any) -> ProcessorChain:
            chain = make(pipeline, settings, *others)
            witness._made[chain] = configured(pipeline.id, settings)
            return chain

        def seen_add(chain: ProcessorChain, batch: Batch, now: int) -> int:
            if batch.groups and (name := witness._pipeline(chain)) is not None:
                witness.steps.append(Arrived(witness.life, name, now, witness.requests[keys_of(batch)[0]]))
            return add(chain, batch, now)

        def seen_take_over(
            chain: ProcessorChain, before: ProcessorChain, matching: Sequence[tuple[int, int]], now: int
        ) -> None:
            if witness.setup is not None and (name := witness._pipeline(chain)) is not None:
                due, theirs = before.deadline(), witness._made[before]
                witness.steps.append(TakenOver(witness.life, name, now, witness.setup, due, theirs))
            take_over(chain, before, matching, now)

        def seen_drain(chain: ProcessorChain, now: int) -> None:
            if witness.stopping and (name := witness._pipeline(chain)) is not None:
                witness.steps.append(Drained(witness.life, name, now, chain.deadline()))
            drain(chain, now)

        with (
            patch.multiple(ProcessorChain, add=seen_add, take_over=seen_take_over, drain=seen_drain),
            patch.object(graph, "make_chain", seen_made),
        ):
            yield
