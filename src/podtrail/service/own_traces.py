"""podtrail's own traces: made where they are asked for, sent in the background, never in the way of its work."""

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Final

from podtrail import __version__
from podtrail.component.own_spans import OWN_SCOPE
from podtrail.config.own_traces import OwnSpanProcessor
from podtrail.pipeline.telemetry_settings import TelemetrySettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import Tracer

    from podtrail.service.own_span_exporter import OwnSpanExporter

END_SECONDS: Final = 2.0
"""For what is still to be sent at the end; what remains then is lost."""
_LET_GO_SECONDS: Final = 0.5
"""More, until whoever is still at it is left alone."""
_AT_ONCE_MS: Final = 10
"""How long a `simple` processor waits for further spans: none is ever sent on the event loop."""


class OwnTraces:
    """The tracer, and what becomes of its spans; nothing at all unless it is configured."""

    def __init__(self, settings: TelemetrySettings, log: logging.Logger) -> None:
        """Take up what is configured; nothing is connected yet."""
        self._log = log
        self._provider: TracerProvider | None = None
        self._exporters: list[OwnSpanExporter] = []
        self.tracer: Tracer | None = None
        """None where nobody wants any spans."""
        if settings.traces.share:
            self._begin(settings)

    def _begin(self, settings: TelemetrySettings) -> None:
        # Only who wants own traces waits for the SDK.
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

        told = {"service.name": "podtrail", "service.version": __version__, **settings.resource}
        sampler = ParentBased(TraceIdRatioBased(settings.traces.share))
        self._provider = TracerProvider(sampler=sampler, resource=Resource(told), shutdown_on_exit=False)
        for processor in settings.traces.processors:
            self._provider.add_span_processor(self._processor(processor))
        self.tracer = self._provider.get_tracer(OWN_SCOPE, __version__)

    def _processor(self, settings: OwnSpanProcessor) -> "BatchSpanProcessor":
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from podtrail.service.own_span_exporter import OwnSpanExporter

        if settings.batch is not None:
            batch = settings.batch
            exporter = OwnSpanExporter(batch.exporter.otlp, self._log, batch.export_timeout)
            queue, size, delay = batch.max_queue_size, batch.max_export_batch_size, batch.schedule_delay
        else:
            assert settings.simple is not None, "it is one of the two"
            otlp = settings.simple.exporter.otlp
            exporter = OwnSpanExporter(otlp, self._log, otlp.timeout)
            queue, size, delay = 2048, 1, _AT_ONCE_MS
        self._exporters.append(exporter)
        return BatchSpanProcessor(exporter, queue, delay, size)

    async def close(self) -> None:
        """Send what waits, for at most a few seconds."""
        if self._provider is None:
            return
        for exporter in self._exporters:
            exporter.hurry(END_SECONDS)
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        provider = self._provider

        def end() -> None:
            provider.shutdown()
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

        # A daemon: a backend that neither answers nor refuses is left alone with it.
        threading.Thread(target=end, name="own spans end", daemon=True).start()
        try:
            async with asyncio.timeout(END_SECONDS + _LET_GO_SECONDS):
                await done.wait()
        except TimeoutError:
            self._log.warning("own spans are not all sent: their backend does not answer")
