"""Brings what leaves the processors of a partition to the exporters' queues, but for what was delivered before."""

from collections.abc import Sequence

from podtrail.durable.owed import Way
from podtrail.otlp import Batch
from podtrail.partitioned.delivered import PartitionStep
from podtrail.partitioned.note import OwnersNote
from podtrail.partitioned.processing import PartitionPipeline
from podtrail.partitioned.shared import SharedByPartitions
from podtrail.partitioned.undelivered import Undelivered
from podtrail.pipeline.driver import Outlet


class PartitionLeaving:
    """The end of the pipelines of one partition."""

    def __init__(self, shared: SharedByPartitions, before: OwnersNote | None) -> None:
        """Keep back what `before` says was delivered."""
        self.undelivered = Undelivered()
        self.repeated = 0
        """Decisions that left again."""
        self.spans = 0
        """Spans that were brought away."""
        self._shared = shared
        self._before = before
        self._end = before.end if before else None

    def nothing_is_repeated(self) -> None:
        """Deliver everything from now on."""
        self._before = self._end = None

    def carry(self, pipeline: PartitionPipeline, *, at_any_rate: bool = False) -> Outlet | None:
        """Bring everything away, up to an exporter that has no room for it: return that."""
        outbox, steps = pipeline.chain.outbox, pipeline.steps
        while outbox:
            batch, step = outbox[0], steps[0]
            again = self._end is not None and step <= self._end
            full = None if at_any_rate else self._full(pipeline, batch, step, again=again)
            if full is not None:
                return full
            pipeline.driver.show(batch)
            self._let_go(pipeline, batch, step, again=again)
            outbox.popleft()
            steps.popleft()
        return None

    def _full(self, pipeline: PartitionPipeline, batch: Batch, step: PartitionStep, *, again: bool) -> Outlet | None:
        for outlet in pipeline.driver.outlets:
            if outlet.queue.has_room(batch, outlet.ledger):
                continue
            if not again or not self._was_delivered((pipeline.id, outlet.exporter), step):
                return outlet
        return None

    def _was_delivered(self, way: Way, step: PartitionStep) -> bool:
        return self._before is not None and self._before.has(way, step)

    def _let_go(self, pipeline: PartitionPipeline, batch: Batch, step: PartitionStep, *, again: bool) -> None:
        self.spans += batch.span_count
        if again:
            self.repeated += len(batch.verdicts)
            self._shared.instruments.repeated(len(batch.verdicts))
        there: set[str] = set()
        for outlet in pipeline.driver.outlets:
            there.add(outlet.exporter)
            if outlet.exporter in pipeline.exporters:
                self._offer(outlet, (pipeline.id, outlet.exporter), batch, step, again=again)
            else:
                outlet.missed += batch.span_count
        for exporter in pipeline.exporters:
            if exporter not in there:
                self.offer_elsewhere((pipeline.id, exporter), batch, step, again=again)

    def _offer(self, outlet: Outlet, way: Way, batch: Batch, step: PartitionStep, *, again: bool) -> None:
        kept_back = again and self._was_delivered(way, step)
        if kept_back:
            self.undelivered.pass_over(way)
        for piece in outlet.wanted(batch):
            if kept_back:
                outlet.ledger.delivered += piece.span_count
                self._shared.instruments.kept_back(piece.span_count)
            else:
                done = self.undelivered.begin(way, step, piece)
                outlet.queue.offer(piece, outlet.ledger, at_any_rate=True, done=done)

    def offer_elsewhere(self, way: Way, batch: Batch, step: PartitionStep, *, again: bool) -> None:
        """Deliver what left a pipeline to an exporter that it no longer has, if another pipeline still has it."""
        driver = self._shared.elsewhere(way)
        if not driver.outlets:
            self._shared.instruments.abandoned(batch.span_count)
            return
        driver.chain.ledger.received += batch.span_count
        self._offer(driver.outlets[0], way, batch, step, again=again)

    def owe_again(
        self, pipelines: Sequence[PartitionPipeline], owed: Sequence[tuple[Way, PartitionStep, Batch]]
    ) -> None:
        """Deliver what was owed; every exporter of a pipeline counts the same spans."""
        by_id = {pipeline.id: pipeline for pipeline in pipelines}
        spans: dict[str, dict[str, int]] = {id: {} for id in by_id}
        for way, step, batch in owed:
            id, exporter = way
            pipeline = by_id.get(id)
            self.undelivered.pass_over(way)
            outlets = pipeline.driver.outlets if pipeline else ()
            outlet = next((outlet for outlet in outlets if outlet.exporter == exporter), None)
            if outlet is None:
                self.offer_elsewhere(way, batch, step, again=True)
            else:
                spans[id][exporter] = spans[id].get(exporter, 0) + batch.span_count
                self._offer(outlet, way, batch, step, again=True)
        for id, of_exporters in spans.items():
            most = max(of_exporters.values(), default=0)
            by_id[id].chain.ledger.received += most
            for outlet in by_id[id].driver.outlets:
                if outlet.exporter in by_id[id].exporters:
                    outlet.ledger.delivered += most - of_exporters.get(outlet.exporter, 0)
                else:
                    outlet.missed += most
