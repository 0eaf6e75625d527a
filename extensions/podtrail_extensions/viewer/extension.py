"""The running viewer: takes kept spans over OTLP/gRPC, verdicts as an observer, and serves the page."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from podtrail.component import Context, Fact, GatedPod, LiveSource, ObservedPod, SimulatedTime
from podtrail.otlp import Batch, Group, MalformedRequest, read_request
from podtrail.otlp.response_writing import export_response
from podtrail.story import Library
from podtrail.transport.admission import Admission
from podtrail.transport.grpc_server import GrpcServer
from podtrail.transport.plain_http import served
from podtrail.transport.refusal_log import RefusalLog
from podtrail.transport.settings import GrpcServerSettings
from podtrail.transport.status import Encoding, RequestError, WhileThere
from podtrail_extensions.viewer import Config
from podtrail_extensions.viewer.decision_views import DecisionViews
from podtrail_extensions.viewer.large_answers import large_answers
from podtrail_extensions.viewer.last_came import LastCame
from podtrail_extensions.viewer.login import login
from podtrail_extensions.viewer.refreshed import refreshed
from podtrail_extensions.viewer.sampler_metrics import SamplerMetrics
from podtrail_extensions.viewer.site import Backend, Site, SourceTime
from podtrail_extensions.viewer.support import Support
from podtrail_extensions.viewer.tap import Taps
from podtrail_extensions.viewer.turns import turns

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
        context.enriching.register(self.library)
        self._metrics = context.metrics
        decisions = DecisionViews(self.library, SamplerMetrics(context.metrics))
        self._support = Support(context.support_files, decisions, lambda: self.clock().now)
        self._came = LastCame()
        self.taps = Taps(self.library, self._came)
        self._config = config
        self._log = context.log
        self._stack = AsyncExitStack()
        self._authenticators: Mapping[str, Any] = {}
        self._foreign = self._live = False
        self._simulated_until = 0
        self._looked_at = 0
        self.page = ""
        """Where the page is served, once it is."""
        self.otlp_endpoint = ""
        """Where spans come in, once they can; "" where they come from the pipelines."""

    async def __aenter__(self) -> Self:
        """Bind both ports and serve. StartError when one can't be had."""
        async with AsyncExitStack() as stack:
            config = self._config
            server = None if config.from_pipelines else await stack.enter_async_context(self._otlp())
            self.otlp_endpoint = server.endpoint if server else ""
            backend = Backend(self.otlp_endpoint, config.max_mib, config.max_decisions_mib, time.time_ns())
            site = Site(self.library, backend, config.allowed_hosts, self.clock, self._metrics, self.taps, self._came)
            # Pages are not access-logged: whoever looks is on this machine or was let through to it.
            application = site.application()
            application.add_routes(self._support.routes())
            application.on_shutdown.append(self._support.end)
            asks = login(self._admission("endpoint"))
            application.middlewares.extend([asks, large_answers(), turns(), refreshed()])
            runner = web.AppRunner(application, handle_signals=False, shutdown_timeout=_GRACE)
            port = await stack.enter_async_context(served(runner, config.endpoint))
            self.page = f"http://{config.endpoint.rpartition(':')[0] or 'localhost'}:{port}/"
            if server is not None:
                await server.start()
                stack.push_async_callback(server.stop, _GRACE)
            self._stack = stack.pop_all()
        told = f"on {self.otlp_endpoint} (grpc)" if self.otlp_endpoint else "from its own pipelines"
        self._log.info("page on %s, spans %s", self.page, told)
        return self

    def _otlp(self) -> GrpcServer:
        # What the configuration asks of its addresses is checked there, and done by the admission.
        settings = GrpcServerSettings(endpoint=self._config.otlp_endpoint, allow_unauthenticated=True)
        return GrpcServer(settings, self._export, self._failed, admission=self._admission("otlp_endpoint"))

    def authenticate_by(self, authenticators: Mapping[str, Any]) -> None:
        """Ask these authenticators, by id."""
        self._authenticators = authenticators

    def _admission(self, key: str) -> Admission:
        config = self._config
        asked = config.auth.authenticator if config.auth is not None and config.asks(key) else None
        return Admission(RefusalLog(self._log), authenticator=None if asked is None else self._authenticators[asked])

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def observe(self, pipeline: str, batch: Batch) -> None:
        """Take note of the verdicts that leave a pipeline; the spans come over OTLP, or from here."""
        self._came.note()
        self.library.decide(pipeline, batch)
        if self._config.from_pipelines and batch.groups:
            self._keep(batch.groups)
        self.taps.observe(pipeline, batch)
        self._look_at_clock()

    def note(self, fact: Fact) -> None:
        """Take note of a Pod that waits, or of how far a simulation has come."""
        if isinstance(fact, SimulatedTime):
            self._simulated_until = max(self._simulated_until, fact.until)
        elif isinstance(fact, ObservedPod):
            self.stories.note_observed(fact)
        elif isinstance(fact, LiveSource):
            self._live = True
        elif isinstance(fact, GatedPod):
            self.stories.note_gated(fact.uid, fact.namespace, fact.name, fact.gates, fact.since)

    def clock(self) -> SourceTime:
        """Return the time by the source's clock: ours, unless its spans are of another age.

        Simulated and recorded time stands where its latest attempt ended.
        """
        latest = self.stories.latest
        if (self._foreign and not self._live) or 0 < latest <= self._simulated_until:
            return SourceTime(latest, live=False)
        return SourceTime(time.time_ns(), live=True)

    def _look_at_clock(self) -> None:
        if self.stories.latest != self._looked_at:
            self._looked_at = self.stories.latest
            self._foreign = abs(time.time_ns() - self.stories.latest) > _ANOTHER_CLOCK

    async def _export(self, raw: bytes, _encoding: Encoding, _while_there: WhileThere) -> bytes:
        try:
            intake = await asyncio.to_thread(read_request, raw) if len(raw) > _OFF_LOOP else read_request(raw)
        except MalformedRequest as error:
            raise RequestError.malformed(str(error)) from error
        self._came.note()
        self._keep(intake.groups)
        self._look_at_clock()
        return export_response(intake.rejected, intake.reason)

    def _keep(self, groups: Sequence[Group]) -> None:
        self.library.keep(groups, time.time_ns())
        self._support.keep(groups)

    def _failed(self, error: RequestError) -> None:
        self._log.log(logging.DEBUG, "request failed: %s", error.message)
