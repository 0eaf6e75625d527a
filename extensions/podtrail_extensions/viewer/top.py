"""What goes on now, for `podtrail top`: stories beside podtrail's own metrics."""

import asyncio
from collections.abc import Mapping

from podtrail.component import Gauge, Metrics
from podtrail.story import ExporterNow, Library, PipelineNow, TopView, hold_top, look_top

_LEDGER = "podtrail_ledger_spans"
_DROPPED = "podtrail_dropped_spans_total"
_QUEUE = "otelcol_exporter_queue_size"
_CAPACITY = "otelcol_exporter_queue_capacity"
_UNDECIDED = "otelcol_processor_tail_sampling_sampling_traces_on_memory"
_MEMORY = "otelcol_process_memory_rss"
_UPTIME = "otelcol_process_uptime"
_BEHIND = "podtrail_kafka_receiver_oldest_undecided_seconds"
_READ = frozenset({_LEDGER, _DROPPED, _QUEUE, _CAPACITY, _UNDECIDED, _MEMORY, _UPTIME, _BEHIND})

Values = Mapping[tuple[str, ...], float]


async def top(library: Library, metrics: Metrics, now: int, *, live: bool) -> TopView:
    """Return what goes on; the looking is done in a thread, beside the receivers' event loop."""
    return await asyncio.to_thread(look_top, hold_top(library, read_pipeline(metrics), now, live=live))


def read_pipeline(metrics: Metrics) -> PipelineNow:
    """Return what the metrics tell of the pipelines."""
    gauges = {one.name: one.values() for one in metrics if isinstance(one, Gauge) and one.name in _READ}
    dropped: Values = gauges.get(_DROPPED, {})
    exporters = tuple(
        _exporter(exporter, gauges) for exporter in dict.fromkeys(key[0] for key in gauges.get(_LEDGER, {}))
    )
    worst = max(exporters, key=lambda one: one.dropped, default=None)
    reasons = {reason: int(spans) for (exporter, reason), spans in dropped.items() if worst and exporter == worst[0]}
    undecided, memory, uptime = (gauges.get(name) for name in (_UNDECIDED, _MEMORY, _UPTIME))
    return PipelineNow(
        exporters=exporters,
        dropped={reason: spans for reason, spans in reasons.items() if spans},
        undecided=int(sum(undecided.values())) if undecided else None,
        memory_bytes=int(sum(memory.values())) if memory else None,
        uptime_seconds=sum(uptime.values()) if uptime else None,
        oldest_undecided_seconds=max(gauges.get(_BEHIND, {}).values(), default=None),
    )


def _exporter(exporter: str, gauges: Mapping[str, Values]) -> ExporterNow:
    terms = {term: int(spans) for (who, term), spans in gauges[_LEDGER].items() if who == exporter}
    dropped = sum(spans for key, spans in gauges.get(_DROPPED, {}).items() if key[0] == exporter)
    return ExporterNow(
        exporter=exporter,
        received=terms.get("received", 0),
        created=terms.get("created", 0),
        delivered=terms.get("delivered", 0),
        sampled_out=terms.get("sampled_out", 0),
        rejected=terms.get("rejected", 0),
        dropped=int(dropped),
        in_memory=terms.get("in_memory", 0),
        in_queue=terms.get("in_queue", 0),
        missing=terms.get("missing", 0),
        queue_size=gauges.get(_QUEUE, {}).get((exporter,)),
        queue_capacity=gauges.get(_CAPACITY, {}).get((exporter,)),
    )
