"""`group_by_trace`: holds the spans of a trace for a while, so that they leave together."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import Field

from podtrail.component import Context, Factory, Taken
from podtrail.config.types import SECOND, Model, PositiveDuration
from podtrail.otlp import Batch, Group


class Config(Model):
    """How long to hold, and how much at most."""

    wait_duration: PositiveDuration = Field(SECOND, description="How long a trace is held, from its first span on.")
    num_traces: int = Field(1_000_000, gt=0, description="Traces to hold; the oldest is dropped for one too many.")


@dataclass(slots=True)
class _Trace:
    due: int
    arrived: int
    groups: list[Group] = field(default_factory=list)

    @property
    def spans(self) -> int:
        return sum(group.span_count for group in self.groups)


class GroupByTrace:
    """Holds traces in the order in which they are due."""

    def __init__(self, config: Config, context: Context) -> None:
        """Count in the ledger of `context`."""
        self._config = config
        self._ledger = context.ledger
        self._traces: dict[bytes, _Trace] = {}
        self._spans = 0

    def add(self, batch: Batch, now: int) -> Taken:
        """Hold the spans; verdicts pass at once, for they wait for nobody."""
        for group in batch.groups:
            trace = self._traces.get(group.trace_id)
            if trace is None:
                trace = self._traces[group.trace_id] = _Trace(now + self._config.wait_duration, batch.arrived)
            trace.groups.append(group)
            trace.arrived = min(trace.arrived, batch.arrived)
        self._spans += batch.span_count
        while len(self._traces) > self._config.num_traces:
            self._ledger.drop("group_by_trace_full", self._take_oldest().spans)
        return Taken((Batch((), batch.arrived, batch.verdicts),) if batch.verdicts else ())

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        """Let go of what is due by `now`, about `limit` spans of it."""
        out: list[Batch] = []
        spans = 0
        while spans < limit and (due := self.deadline()) is not None and due <= now:
            trace = self._take_oldest()
            spans += trace.spans
            out.append(Batch(trace.groups, trace.arrived))
        return out

    def deadline(self) -> int | None:
        """Return when the oldest trace is due."""
        return next((trace.due for trace in self._traces.values()), None)

    def held(self) -> int:
        """Return the number of spans inside."""
        return self._spans

    def held_since(self) -> int | None:
        """Return the earliest arrival of a span inside."""
        return min((trace.arrived for trace in self._traces.values()), default=None)

    state_version = 1

    def save_state(self) -> Any:
        """Return the traces that are held, for a restart: plain values."""
        return [(trace.due, trace.arrived, tuple(trace.groups)) for trace in self._traces.values()]

    def restore_state(self, version: int, state: Any) -> None:
        """Hold the traces that were saved."""
        for due, arrived, rows in state:
            trace = _Trace(due, arrived, [Group(*row) for row in rows])
            self._traces[trace.groups[0].trace_id] = trace
            self._spans += trace.spans

    def take_over(self, predecessor: Self, now: int) -> None:
        """Hold what the one before the reload held, until it was due there."""
        self._traces = dict(sorted(predecessor._traces.items(), key=lambda item: item[1].due))
        self._spans = predecessor._spans
        predecessor._traces, predecessor._spans = {}, 0

    def drain(self, now: int) -> Sequence[Batch]:
        """Let go of everything."""
        out = [Batch(trace.groups, trace.arrived) for trace in self._traces.values()]
        self._traces.clear()
        self._spans = 0
        return out

    def _take_oldest(self) -> _Trace:
        trace = self._traces.pop(next(iter(self._traces)))
        self._spans -= trace.spans
        return trace


def _create(config: Config, context: Context) -> Any:
    return GroupByTrace(config, context)


FACTORY = Factory(kind="processor", type="group_by_trace", Config=Config, create=_create)
