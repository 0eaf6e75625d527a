"""`sampling_strategy: span-ingest`: judges spans as they come, so that a trace leaves as soon as a part of it matches.

As in the Collector, what one request has of a trace under one resource is judged by itself, but for the number of spans
and the size, which are those of the trace so far; a drop policy that does not match holds every yes back, for it may
still match; and what matched nothing by its deadline is not kept.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from podtrail.component import Taken
from podtrail.otlp import Batch, Group
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.evidence.sizes import Meter
from podtrail_processors.tail_sampling.holding.held_trace import CHUNK_WEIGHT, FORGOTTEN, HeldTrace
from podtrail_processors.tail_sampling.judging.judge import IngestJudge
from podtrail_processors.tail_sampling.leaving.releaser import Released
from podtrail_processors.tail_sampling.processor import TailSampling

Ingest = Sequence[Group]
"""What a request has of one trace under one resource."""


class SpanIngest(TailSampling):
    """Holds what matched nothing yet, for it may have to follow what comes."""

    judge_type = IngestJudge

    def add(self, batch: Batch, now: int) -> Taken:
        """Judge spans as they come."""
        out = Released([], list(batch.verdicts))
        memory = self.memory
        memory.note_arrival(batch.arrived, now + self._wait)
        groups = (
            self._stress_relief.take(batch.groups, batch.arrived, now, out) if self._stress_relief else batch.groups
        )
        ingests, rest = _ingests(groups), None
        for ingest in ingests:
            if not self._take(ingest, batch.arrived, now, out):
                rest = Batch(list(chain(ingest, *ingests)), batch.arrived)
                break
        self._judge.report()
        if self._bounds.exceeded(memory):
            self._decide_to_fit(now, out)
        self.releaser.report()
        return Taken(out.batches(batch.arrived), rest)

    def _take(self, ingest: Ingest, arrived: int, now: int, out: Released) -> bool:
        """Take a part of a trace; return whether there was room for it."""
        trace_id, memory = ingest[0].trace_id, self.memory
        releaser = self.releaser
        if releaser.remembered.recalls(trace_id):
            for group in ingest:
                releaser.late_remembered(group, now, out)
            return True
        trace = memory.traces.get(trace_id)
        if trace is None:
            if releaser.knows and releaser.claims(ingest[0], now, out):
                return len(ingest) == 1 or self._take(ingest[1:], arrived, now, out)
            if len(memory.traces) >= self._room and not self._make_room(now, out):
                return False
            self._instruments.new_traces.add(1)
            header = memory.headers.intern(ingest[0].resource, ingest[0].scope)
            trace = memory.open(HeldTrace(trace_id, header, arrived, now + self._wait, now))
        elif trace.state is not None:
            for group in ingest:
                releaser.late(group, trace.state, now, out)
            self._note_late(trace.state, now)
            return True
        self._judge_part(trace, ingest, now, out)
        return True

    def _judge_part(self, trace: HeldTrace, ingest: Ingest, now: int, out: Released) -> None:
        """Add a part to its trace and see whether that decides it."""
        meter, first = Meter(), not trace.span_count
        trace.last = now
        for group in ingest:
            if self._measures:
                trace.size = meter.grown(trace.size, 0, group)
            if self._wait_after_root:
                self._advance_at_root(trace, group, now)
        if self._is_too_large(trace):
            self._append(trace, ingest)
            self._refuse(trace, None if first else now, now, out)
            return
        evidence = Evidence.of(ingest, self._judge.readers, now, trace.size, earlier=trace.span_count)
        judgement = self._judge.judge(evidence)
        earlier = trace.groups(b"".join(trace.chunks)) if judgement.decision != "not_sampled" and not first else ()
        self._append(trace, ingest)
        if judgement.decision == "not_sampled":
            if self._bounds.watches and self._bounds.outgrown(trace):
                self.releaser.refused(trace, self._judge.never_matched, now, now, out)
            return
        self.releaser.decided(trace, judgement, evidence, ingest, now, out, earlier)
        if trace.state is FORGOTTEN:
            self._miss_at_deadline(trace)

    def _append(self, trace: HeldTrace, ingest: Ingest) -> None:
        for group in ingest:
            header = self.memory.headers.intern(group.resource, group.scope)
            if trace.header is not header:
                self.memory.turn(trace, header)
            weight = len(group.spans) + CHUNK_WEIGHT
            trace.chunks.append(group.spans)
            trace.span_count += group.span_count
            trace.weight += weight
            self.memory.spans += group.span_count
            self.memory.bytes += weight

    def _make_room(self, now: int, out: Released) -> bool:
        """Let go of the oldest trace; one that was decided is missed at its deadline, unless it was too large."""
        oldest = self.memory.oldest()
        if oldest.state is not None and oldest.state.decision != "not_sampled" and oldest.due > now:
            self._miss_at_deadline(oldest)
        return super()._make_room(now, out)

    def _miss_at_deadline(self, trace: HeldTrace) -> None:
        """Have a trace counted that was decided before its deadline, where the Collector looks for it in vain."""
        self._instruments.too_early.add(self._evicted.add(trace.trace_id, trace.due, self.memory.traces))

    def _decide(self, trace: HeldTrace, now: int, out: Released) -> None:
        """Let go of a trace that nothing has matched; without a cache it would start anew."""
        self._instruments.decided.add(1, "false", "not_sampled")
        self.releaser.refused(trace, self._judge.never_matched, now, now, out)
        if trace.state is not FORGOTTEN:
            self.releaser.forget(trace, now)


def _ingests(groups: Sequence[Group]) -> Iterator[Ingest]:
    """Yield the parts of traces, message by message in order of their first span."""
    message: dict[bytes, list[Group]] = {}
    resource: bytes | None = None
    for group in groups:
        if group.resource is not resource:
            yield from message.values()
            message, resource = {}, group.resource
        message.setdefault(group.trace_id, []).append(group)
    yield from message.values()
