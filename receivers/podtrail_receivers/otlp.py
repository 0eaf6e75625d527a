"""The `otlp` receiver: spans over gRPC and HTTP, as every OpenTelemetry SDK and Collector sends them."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from podtrail.component import (
    AdmittingConsumer,
    Context,
    Factory,
    ImmediateConsumer,
    Lost,
    Refused,
    ServerAuthenticator,
    StartError,
)
from podtrail.component.contracts import Consumer
from podtrail.config.types import Model, host_port
from podtrail.otlp import Batch, Intake, MalformedRequest, read_request
from podtrail.otlp.response_writing import export_response, export_response_json
from podtrail.otlp.signals import skipped_words
from podtrail.transport.admission import Admission
from podtrail.transport.caller import connected_peer
from podtrail.transport.client_limits import ClientBudgets, ClientConnections, ClientLimits, Connection
from podtrail.transport.incoming_request import IncomingRequest
from podtrail.transport.refusal_log import RefusalLog
from podtrail.transport.settings import GrpcServerSettings, HttpServerSettings
from podtrail.transport.socket_table import connected
from podtrail.transport.status import Encoding, RequestError, WhileThere
from podtrail_receivers.intake_counters import IntakeCounters

if TYPE_CHECKING:
    from podtrail.transport.grpc_server import GrpcServer
    from podtrail.transport.http_server import HttpServer
    from podtrail.transport.tls_handshake import HandshakeFailure

_GRACE = 2.0
"""Seconds that requests under way get when the receiver stops."""
_RETRY_AFTER = 1.0
"""Seconds after which a refused sender may try again, when the pipeline does not say."""
_ASKED_FIRST = 16 << 10
"""Bytes of JSON from which on it is asked about before it is read: that takes far longer than to refuse it."""
_OFF_LOOP = 1 << 20
"""Bytes of a request from which it is decoded in a thread, so that other requests are served meanwhile."""


class Protocols(Model):
    """Which protocols are served: those that are named, `grpc:` alone for one with its defaults."""

    grpc: GrpcServerSettings | None = Field(None, description="Serve gRPC.")
    http: HttpServerSettings | None = Field(None, description="Serve HTTP, protobuf and JSON on one port.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.grpc is None and self.http is None:
            raise ValueError("names no protocol: add grpc: or http: or both")
        return self


class Config(Model):
    """Receive OTLP traces."""

    protocols: Protocols = Field(description="What is served: `grpc`, `http` or both; only what is named.")
    client_limits: ClientLimits | None = Field(
        None, description="What one client may use of this receiver; absent: whatever it likes."
    )

    def listens(self) -> Mapping[tuple[str | int, ...], str]:
        """Return the addresses, `host:port`, by the path of the key that names them."""
        grpc, http = self.protocols.grpc, self.protocols.http
        found: dict[tuple[str | int, ...], str] = {}
        if grpc is not None and grpc.transport == "tcp":
            found["protocols", "grpc", "endpoint"] = grpc.endpoint
        if http is not None:
            found["protocols", "http", "endpoint"] = http.endpoint
        return found


class OtlpReceiver:
    """Serves what its configuration names. An acknowledged request is one that all its pipelines have taken."""

    finite = False

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._id = context.id
        self._log = context.log
        self._arriving = context.arriving
        self._authenticators: Mapping[str, ServerAuthenticator] = {}
        limits = config.client_limits
        self._budgets = ClientBudgets(limits) if limits is not None else None
        self._large = asyncio.Lock()
        self._consume: Consumer | None = None
        self._immediate: ImmediateConsumer | None = None
        self._servers: dict[str, GrpcServer | HttpServer] = {}
        self._stack = AsyncExitStack()
        metrics = context.metrics
        labels = ("receiver", "transport")
        self._accepted = metrics.counter("otelcol_receiver_accepted_spans", "Spans that the pipelines took.", labels)
        self._refused = metrics.counter(
            "otelcol_receiver_refused_spans",
            "Spans that the pipelines refused or their sender gave up waiting for; it keeps them.",
            labels,
        )
        self._counters = IntakeCounters(context)
        self._refusals = {transport: RefusalLog(self._log) for transport in ("grpc", "http")}

    def authenticate_by(self, authenticators: Mapping[str, Any]) -> None:
        """Ask these authenticators, by id."""
        self._authenticators = authenticators

    @property
    def endpoints(self) -> dict[str, str]:
        """Where it listens, by protocol, ports filled in that the system chose."""
        return {protocol: server.endpoint for protocol, server in self._servers.items()}

    async def __aenter__(self) -> Self:
        """Bind all ports, or none."""
        protocols = self._config.protocols
        async with AsyncExitStack() as stack:
            if protocols.grpc is not None:
                from podtrail.transport.grpc_server import GrpcServer

                with self._named("grpc"):
                    grpc_server = GrpcServer(
                        protocols.grpc,
                        partial(self._export, "grpc"),
                        partial(self._count, "grpc"),
                        self._receiving,
                        self._admission("grpc", protocols.grpc),
                    )
                    self._servers["grpc"] = await stack.enter_async_context(grpc_server)
            if protocols.http is not None:
                from podtrail.transport.http_server import HttpServer

                with self._named("http"):
                    http_server = HttpServer(
                        protocols.http,
                        partial(self._export, "http"),
                        partial(self._count, "http"),
                        self._receiving,
                        self._admission("http", protocols.http),
                        partial(self._no_handshake, "http"),
                    )
                    self._servers["http"] = await stack.enter_async_context(http_server)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def run(self, consume: Consumer) -> None:
        """Serve until cancelled; then take nothing new, and let what is under way end."""
        self._consume = consume
        self._immediate = consume if isinstance(consume, ImmediateConsumer) else None
        try:
            for protocol, server in self._servers.items():
                await server.start()
                self._log.info("listening on %s (%s)", server.endpoint, protocol)
            await asyncio.Event().wait()
        finally:
            await asyncio.gather(*[server.stop(_GRACE) for server in self._servers.values()])

    def _admission(self, transport: str, settings: GrpcServerSettings | HttpServerSettings) -> Admission:
        limits = self._config.client_limits
        connections = None
        if limits is not None and limits.connections:
            connections = ClientConnections(limits.connections, partial(self._connected, transport))
        return Admission(
            self._refusals[transport],
            authenticator=self._authenticators[settings.auth.authenticator] if settings.auth is not None else None,
            allowed_names=settings.tls.client_allowed_names if settings.tls is not None else (),
            budgets=self._budgets,
            connections=connections,
            limited=partial(self._counters.limited, transport),
        )

    def _no_handshake(self, transport: str, peer: tuple[str, int], failure: "HandshakeFailure") -> None:
        self._counters.no_handshake(transport, failure.reason)
        if failure.words:
            self._refusals[transport].tell(connected_peer(*peer), failure.words, "connection")

    def _connected(self, transport: str) -> Collection[Connection] | None:
        return connected(host_port(self._servers[transport].endpoint)[1])

    @contextmanager
    def _named(self, protocol: str) -> Iterator[None]:
        try:
            yield
        except StartError as error:
            raise StartError(f"protocols::{protocol}: {error}") from error

    def _count(self, transport: str, error: RequestError) -> None:
        if error.reason not in ("overloaded", "failed"):  # whose spans were counted
            self._counters.failed(transport, error.reason)
            self._log.debug("%s request failed: %s", transport, error.message)

    def _receiving(self) -> IncomingRequest:
        return IncomingRequest(self._arriving, self._ask)

    def _ask(self) -> None:
        if isinstance(self._consume, AdmittingConsumer):
            try:
                self._consume.ask()
            except Refused as refused:
                raise RequestError.unread(refused.reason, _retry_after(refused)) from refused

    async def _export(self, transport: str, raw: bytes, encoding: Encoding, while_there: WhileThere) -> bytes:
        intake = await self._decoded(raw, encoding)
        del raw  # what waits is held once
        spans = sum([group.span_count for group in intake.groups])
        batch = Batch(intake.groups, arrived=0)
        if spans and not self._taken(transport, batch, spans):
            await self._hand_over(transport, batch, spans, while_there)
        self._counters.read(transport, intake)
        said = intake.reason
        if intake.other_signal:
            self._counters.other_signal(transport, intake.other_signal)
            said = said or skipped_words(intake.other_signal)
        respond = export_response if encoding is Encoding.PROTOBUF else export_response_json
        return respond(intake.rejected, said)

    def _taken(self, transport: str, batch: Batch, spans: int) -> bool:
        if self._immediate is None:
            return False
        with self._counting_refusals(transport, spans):
            taken = self._immediate.take(batch)
        if taken:
            self._accepted.add(spans, self._id, transport)
        return taken

    async def _hand_over(self, transport: str, batch: Batch, spans: int, while_there: WhileThere) -> None:
        assert self._consume is not None
        with self._counting_refusals(transport, spans):
            async with while_there():
                await self._consume(batch)
        self._accepted.add(spans, self._id, transport)

    @contextmanager
    def _counting_refusals(self, transport: str, spans: int) -> Iterator[None]:
        try:
            yield
        except Refused as refused:
            self._refused.add(spans, self._id, transport)
            raise RequestError.overloaded(refused.reason, _retry_after(refused)) from refused
        except Lost as lost:
            self._accepted.add(spans, self._id, transport)
            raise RequestError.failed(str(lost)) from lost
        except asyncio.CancelledError:  # the client has given up; nothing was taken
            self._refused.add(spans, self._id, transport)
            raise

    async def _decoded(self, raw: bytes, encoding: Encoding) -> Intake:
        if encoding is Encoding.PROTOBUF:
            read = read_request
        else:
            from podtrail.otlp.json import read_json_request as read
        try:
            if len(raw) < _OFF_LOOP:
                if encoding is Encoding.JSON and len(raw) >= _ASKED_FIRST:
                    self._ask()
                return read(raw)
            # One after the other: what a request takes when it is read is known, and asked about, only then.
            async with self._large:
                self._ask()
                return await asyncio.to_thread(read, raw)
        except MalformedRequest as error:
            raise RequestError.malformed(str(error)) from error


def _retry_after(refused: Refused) -> float:
    return _RETRY_AFTER if refused.after is None else refused.after


FACTORY = Factory(kind="receiver", type="otlp", Config=Config, create=OtlpReceiver)
