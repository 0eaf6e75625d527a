"""The `health_check` extension: one address that says whether the pipelines run, for probes (as the Collector's)."""

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field

from podtrail.component import Context, Factory
from podtrail.component.refusals import Refusing
from podtrail.config.secret_keys import redacted
from podtrail.config.types import Endpoint, Model, PositiveDuration, format_duration

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, Response

_NEVER = "0001-01-01T00:00:00Z"
_SECOND = 1_000_000_000


class ResponseBody(Model):
    """Bodies in place of the JSON."""

    healthy: str = Field("", description="Body while the pipelines run; empty: JSON with status and uptime.")
    unhealthy: str = Field("", description="Body while they do not; empty: JSON with the status.")


class ComponentHealth(Model):
    """What of the components' health counts, as the Collector's health check v2 has it."""

    include_permanent_errors: bool = Field(
        False, description="Accepted from the Collector; a component that can't go on ends podtrail."
    )
    include_recoverable_errors: bool = Field(
        False,
        description="Answer 503 once podtrail has refused every request for `recovery_duration`. Behind a liveness "
        "probe this restarts it, and what it holds in memory is lost.",
    )
    recovery_duration: PositiveDuration = Field(60 * _SECOND, description="How long errors may last.")


class Config(Model):
    """Answer probes over HTTP: 200 while the pipelines run, else 503."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            (
                "auth",
                "compression_algorithms",
                "cors",
                "dialer",
                "idle_timeout",
                "include_metadata",
                "keep_alives_enabled",
                "keepalive",
                "max_request_body_size",
                "middlewares",
                "read_header_timeout",
                "read_timeout",
                "response_headers",
                "tls",
                "transport",
                "write_timeout",
            ),
            "remove it: probes are answered over plain HTTP, and need no more",
        ),
        "check_collector_pipeline": "remove it: ask podtrail's metrics how deliveries fare, or set component_health",
        **dict.fromkeys(("grpc", "http", "use_v2"), "remove it: use endpoint and path"),
    }
    harmless: ClassVar[frozenset[str]] = frozenset(of_the_collector) - {"auth", "tls", "transport", "grpc", "http"}

    endpoint: Endpoint = Field("localhost:13133", description="Where to listen, host:port.")
    path: str = Field("/", pattern="^/", description="Path to answer at; one that ends in / answers below it as well.")
    component_health: ComponentHealth = Field(
        default_factory=ComponentHealth, description="Whether errors of components count."
    )
    response_body: ResponseBody | None = Field(None, description="Bodies to answer with; absent: JSON.")

    def listens(self) -> Mapping[tuple[str | int, ...], str]:
        """Return the address, `host:port`, by the path of the key that names it."""
        return {("endpoint",): self.endpoint}


class HealthCheck:
    """Listens from entering on. Unavailable until `ready()`, and again after `not_ready()`."""

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._log = context.log
        self._since: int | None = None
        self._refusals = context.refusals
        self._stack = AsyncExitStack()
        self.endpoint = config.endpoint
        """Where it listens; with the port that the system chose when that of the configuration is 0."""

    def ready(self) -> None:
        """Say from now on that the pipelines run."""
        if self._since is None:
            self._since = time.time_ns()

    def not_ready(self) -> None:
        """Say from now on that they do not."""
        self._since = None

    async def __aenter__(self) -> Self:
        """Listen. StartError when that is not possible."""
        from aiohttp import web

        from podtrail.transport.plain_http import served

        answer: Callable[[BaseRequest], Awaitable[Response]] = self._answer
        runner = web.ServerRunner(web.Server(answer), handle_signals=False, shutdown_timeout=0.5)
        port = await self._stack.enter_async_context(served(runner, self._config.endpoint))
        self.endpoint = f"{self._config.endpoint.rpartition(':')[0]}:{port}"
        self._log.info("answering probes on http://%s%s", self.endpoint, self._config.path)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.not_ready()
        await self._stack.aclose()

    async def _answer(self, request: "BaseRequest") -> "Response":
        from aiohttp import web

        path = self._config.path
        if request.path != path and not (path.endswith("/") and request.path.startswith(path)):
            return web.Response(status=404, text="404 page not found\n")
        now = time.time_ns()
        refusing = self._refusals.refusing(now)
        if refusing is not None and now - refusing.since < self._config.component_health.recovery_duration:
            refusing = None
        is_healthy = self._since is not None and (
            refusing is None or not self._config.component_health.include_recoverable_errors
        )
        status = 200 if is_healthy else 503
        bodies = self._config.response_body
        body = "" if bodies is None else bodies.healthy if is_healthy else bodies.unhealthy
        if body:
            return web.Response(status=status, text=body)
        state = _state(self._since, refusing, now)
        return web.Response(status=status, text=json.dumps(state), content_type="application/json")


def _state(since: int | None, refusing: Refusing | None, now: int) -> dict[str, str]:
    if since is None:
        return {"status": "Server not available", "upSince": _NEVER, "uptime": ""}
    state = {"status": "Server available", "upSince": _utc(since), "uptime": format_duration(now - since)}
    if refusing is not None:
        lasts = format_duration((now - refusing.since) // _SECOND * _SECOND)
        state["status"] = f"Server available, but refuses all spans for {lasts}: {redacted(refusing.reason)}"
        state["refusingSince"] = _utc(refusing.since)
    return state


def _utc(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / _SECOND, UTC).isoformat().replace("+00:00", "Z")


def _create(config: Config, context: Context) -> HealthCheck:
    return HealthCheck(config, context)


FACTORY = Factory(kind="extension", type="health_check", aliases=("healthcheck",), Config=Config, create=_create)
