"""Bounds in bytes: on what all undecided traces take in memory together, and on what one of them takes alone."""

from collections.abc import Sequence

from podtrail.component import Metrics
from podtrail_processors.tail_sampling.config.sampler import Config
from podtrail_processors.tail_sampling.holding.held_trace import HeldTrace, TraceTable
from podtrail_processors.tail_sampling.holding.trace_memory import TraceMemory

_KIB, _MIB = 2**10, 2**20


class Bounds:
    """Says which trace is to be decided early, to stay within the bounds."""

    def __init__(self, config: Config, metrics: Metrics) -> None:
        self._room = config.maximum_held_mib * _MIB
        self._most = config.maximum_held_trace_kib * _KIB
        self._giant: HeldTrace | None = None
        self.watches = bool(self._room or self._most)
        """Whether traces have to be looked at as they grow."""
        self._decided_large = None
        if self._most:
            self._decided_large = metrics.counter(
                "otelcol_processor_tail_sampling_traces_decided_large",
                "Traces decided before their time, for they alone took more than maximum_held_trace_kib.",
            )

    def outgrown(self, trace: HeldTrace) -> bool:
        """Take note of a trace that has grown; return whether it is to be decided for that."""
        if self._room and trace.weight > self._room // 2:
            self._giant = trace
        if self._decided_large is None or trace.weight <= self._most:
            return False
        self._decided_large.add(1)
        return True

    def exceeded(self, memory: TraceMemory) -> bool:
        """Say whether more is held than there is room for."""
        return bool(self._room) and memory.bytes > self._room

    def saved(self, table: TraceTable) -> int | None:
        """Return the number of the trace that has grown large, if it is undecided."""
        giant = self._giant
        return None if giant is None or giant.state is not None else table.number(giant)

    def restore(self, giant: int | None, traces: Sequence[HeldTrace]) -> None:
        """Take note of the trace that had grown large."""
        self._giant = None if giant is None else traces[giant]

    def next_to_go(self, memory: TraceMemory) -> HeldTrace | None:
        """Return the trace to be decided to make room: the oldest, unless one alone takes over half of the room."""
        if not self.exceeded(memory):
            return None
        giant, self._giant = self._giant, None
        return giant if giant is not None and giant.state is None else memory.waiting.oldest()
