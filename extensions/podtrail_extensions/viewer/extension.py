"""The running viewer: takes kept spans over OTLP/gRPC, verdicts as an observer, and serves the page."""

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from aiohttp import web

from podtrail.component import Context, GatedPod
from podtrail.otlp import Batch, MalformedRequest, read_request
from podtrail.otlp.response_writing import export_response
from podtrail.story import Library
from podtrail.transport.grpc_server import GrpcServer
from podtrail.transport.plain_http import served
from podtrail.transport.settings import GrpcServerSettings
from podtrail.transport.status import Encoding, RequestError, WhileThere
from podtrail_extensions.viewer import Config
from podtrail_extensions.viewer.sampler_metrics import SamplerMetrics
from podtrail_extensions.viewer.site import Backend, Site, SourceTime

_OFF_LOOP = 1 << 20
"""Bytes of a request from which it is decoded in a thread."""
_ANOTHER_CLOCK = 600 * 1_000_000_000
"""So far from ours, in nanoseconds, a source's clock is its own: simulated, or of a recording."""
_GRACE = 1.0


class Viewer:
    """An embedded backend and its page. Entering binds both ports and serves; leaving lets go of them."""

    def __init__(self, config: Config, context: Context) -> None:
        self.library = Library(max_mib=config.max_mib, max_decisions_mib=config.max_decisions_mib)
        self.stories, self.store = self.library.stories, self.library.store
        self._measures = SamplerMetrics(context.metrics)
        self._config = config
        self._log = context.log
        self._stack = AsyncExitStack()
        self._foreign = False
        self._looked_at = 0
        self.page = ""
        """Where the page is served, once it is."""
        self.otlp_endpoint = ""
        """Where spans come in, once they can."""

    async def __aenter__(self) -> Self:
        """Bind both ports and serve. StartError when one can't be had."""
        async with AsyncExitStack() as stack:
            settings = GrpcServerSettings(endpoint=self._config.otlp_endpoint)
            server = await stack.enter_async_context(GrpcServer(settings, self._export, self._failed))
            self.otlp_endpoint = server.endpoint
            config = self._config
            backend = Backend(server.endpoint, config.max_mib, config.max_decisions_mib, time.time_ns())
            site = Site(self.library, backend, config.allowed_hosts, self.clock, self._measures)
            # Pages are not access-logged: whoever looks is on this machine or was let through to it.
            runner = web.AppRunner(site.application(), handle_signals=False, shutdown_timeout=_GRACE)
            port = await stack.enter_async_context(served(runner, config.endpoint))
            self.page = f"http://{config.endpoint.rpartition(':')[0] or 'localhost'}:{port}/"
            await server.start()
            stack.push_async_callback(server.stop, _GRACE)
            self._stack = stack.pop_all()
        self._log.info("page on %s, spans on %s (grpc)", self.page, self.otlp_endpoint)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def observe(self, pipeline: str, batch: Batch) -> None:
        """Take note of the verdicts that leave a pipeline; the spans come over OTLP."""
        self.library.decide(pipeline, batch)
        self._look_at_clock()

    def note(self, fact: GatedPod) -> None:
        """Take note of a Pod that has no attempt."""
        self.stories.note_gated(fact.uid, fact.namespace, fact.name, fact.gates, fact.since)

    def clock(self) -> SourceTime:
        """Return the time by the source's clock: ours, unless its spans are of another age.

        Simulated and recorded time stands where its latest attempt ended.
        """
        return SourceTime(self.stories.latest, live=False) if self._foreign else SourceTime(time.time_ns(), live=True)

    def _look_at_clock(self) -> None:
        if self.stories.latest != self._looked_at:
            self._looked_at = self.stories.latest
            self._foreign = abs(time.time_ns() - self.stories.latest) > _ANOTHER_CLOCK

    async def _export(self, raw: bytes, _encoding: Encoding, _while_there: WhileThere) -> bytes:
        try:
            intake = await asyncio.to_thread(read_request, raw) if len(raw) > _OFF_LOOP else read_request(raw)
        except MalformedRequest as error:
            raise RequestError.malformed(str(error)) from error
        self.library.keep(intake.groups, time.time_ns())
        self._look_at_clock()
        return export_response(intake.rejected, intake.reason)

    def _failed(self, error: RequestError) -> None:
        self._log.log(logging.DEBUG, "request failed: %s", error.message)
