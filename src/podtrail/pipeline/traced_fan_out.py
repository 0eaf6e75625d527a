"""A fan-out that has a span of podtrail's own made for each batch: from its receipt until its pipelines have it."""

import time
from typing import TYPE_CHECKING, Any

from podtrail.component import Lost, Refused
from podtrail.component.own_spans import are_own, own_span
from podtrail.otlp import Batch
from podtrail.pipeline.driver import Driver, Outlet
from podtrail.pipeline.fan_out import FanOutConsumer

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


class TracedFanOut(FanOutConsumer):
    """What a receiver feeds, watched; batches with own spans of a podtrail are let through unwatched."""

    def __init__(self, tracer: "Tracer", *args: Any, **more: Any) -> None:
        """Be a fan-out with these arguments."""
        super().__init__(*args, **more)
        self._tracer = tracer
        self._name = f"receiver/{self._receiver}/TraceDataReceived"

    async def __call__(self, batch: Batch) -> None:
        """Hand a batch over, waiting for room."""
        if are_own(batch.groups):
            await super().__call__(batch)
            return
        with own_span(self._tracer, self._name, receiver=self._receiver) as span:
            assert span is not None
            try:
                await super().__call__(batch)
            except Refused:
                span.set_attribute("refused_spans", batch.span_count)
                raise
            span.set_attribute("accepted_spans", batch.span_count)

    def take(self, batch: Batch) -> bool:
        """Hand a batch over if nothing has to be waited for; return whether it was."""
        from opentelemetry.context import Context

        began = time.time_ns()
        taken = super().take(batch)
        if taken and not are_own(batch.groups):
            attributes: dict[str, str | int] = {"receiver": self._receiver, "accepted_spans": batch.span_count}
            self._tracer.start_span(self._name, Context(), attributes=attributes, start_time=began).end()
        return taken

    def _let_in(self, batch: Batch, now: int) -> Outlet | Driver | None:
        from opentelemetry.trace import get_current_span

        if not get_current_span().is_recording():
            return super()._let_in(batch, now)
        with own_span(self._tracer, "pipelines/process", inside=True, spans=batch.span_count) as span:
            assert span is not None
            span.set_attribute("pipelines", ", ".join(driver.id for driver in self._drivers))
            try:
                in_the_way = super()._let_in(batch, now)
            except Lost as lost:
                span.set_attribute("lost_spans", lost.spans)
                raise
            span.set_attribute("taken", in_the_way is None)
            return in_the_way
