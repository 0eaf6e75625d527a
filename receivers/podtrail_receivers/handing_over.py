"""Handing batches to the pipelines from a source that can wait: nothing is lost while they refuse."""

import asyncio

from podtrail.component import Consumer, Context, Lost, Refused
from podtrail.otlp import Batch

_RETRY_AFTER = 1.0
"""Seconds after which a refused batch is offered again, when the pipeline does not say."""


class HandingOver:
    """Offers each batch until all pipelines have taken it; counts both."""

    def __init__(self, context: Context, transport: str) -> None:
        self._labels = (context.id, transport)
        labels = ("receiver", "transport")
        self._accepted = context.metrics.counter(
            "otelcol_receiver_accepted_spans", "Spans that the pipelines took.", labels
        )
        self._refused = context.metrics.counter(
            "otelcol_receiver_refused_spans", "Spans that the pipelines refused; their sender keeps them.", labels
        )

    async def __call__(self, batch: Batch, consume: Consumer) -> None:
        """Return when `batch` is taken."""
        while True:
            try:
                await consume(batch)
            except Refused as refused:
                self._refused.add(batch.span_count, *self._labels)
                await asyncio.sleep(_RETRY_AFTER if refused.after is None else refused.after)
            except Lost:  # the pipeline has said and counted it; what comes next may fare better
                break
            else:
                break
        self._accepted.add(batch.span_count, *self._labels)
