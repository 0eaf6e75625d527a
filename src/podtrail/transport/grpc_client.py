"""A gRPC client of OTLP's trace service, for raw bytes."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

import grpc
import grpc.aio

from podtrail.component import ClientAuthenticator, Permanent, Retryable, StartError
from podtrail.config.types import MILLISECOND, SECOND
from podtrail.otlp.response_reading import MalformedAnswer, retry_delay, retry_delay_of_status
from podtrail.transport.client_settings import GrpcClientSettings
from podtrail.transport.credentials import withheld
from podtrail.transport.tls_client import read_pems, system_authorities

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_LARGEST_REQUEST = 64 << 20
_LARGEST_RESPONSE = 4 << 20
_LONGEST_TEXT = 300
_LONGEST_RECONNECT_MS = 5_000
"""After an outage the connection is tried again at least this often; gRPC's own default is two minutes."""

_RETRYABLE = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""OTLP specification, Failures of OTLP/gRPC. RESOURCE_EXHAUSTED is one of them only together with a RetryInfo."""


class GrpcClient:
    """One channel to one server. Entering it reads certificates; connecting is left to the first request."""

    def __init__(self, settings: GrpcClientSettings, user_agent: str) -> None:
        """Make a client; it is used between entering and leaving it, on one event loop."""
        self._authenticator: ClientAuthenticator | None = None
        self._settings = settings
        self._user_agent = user_agent
        self._timeout = settings.timeout / SECOND or None
        self._metadata = tuple((name.lower(), value.get_secret_value()) for name, value in settings.headers.items())
        self._channel: grpc.aio.Channel | None = None
        self._export: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] | None = None

    def authenticate_by(self, authenticator: ClientAuthenticator) -> None:
        """Show with every request what this authenticator gives."""
        self._authenticator = authenticator

    async def __aenter__(self) -> Self:
        credentials = None if self._settings.plain else self._credentials()
        compression = grpc.Compression.Gzip if self._settings.compression == "gzip" else grpc.Compression.NoCompression
        target, options = self._target(), self._options()
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(target, options, compression)
        else:
            self._channel = grpc.aio.secure_channel(target, credentials, options, compression)
        self._export = self._channel.unary_unary(EXPORT)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    @property
    def connected(self) -> bool:
        """Whether there is a connection now: otherwise what went wrong was not the server's answer."""
        return self._channel is not None and self._channel.get_state() is grpc.ChannelConnectivity.READY

    async def export(self, request: bytes) -> bytes:
        """Send a serialized ExportTraceServiceRequest, return the serialized response.

        Raises:
            Retryable: as the OTLP specification says, with the wait that a RetryInfo asked for; besides, credentials
                were refused that may be others at the next try.
            Permanent: any other status.
        """
        assert self._export is not None, "not entered"
        authenticator, metadata = self._authenticator, self._metadata
        shown: Mapping[str, str] = {} if authenticator is None else authenticator.credentials()
        if shown:
            metadata = (*(pair for pair in metadata if pair[0] not in shown), *shown.items())
        try:
            return await self._export(
                request,
                timeout=self._timeout,
                metadata=metadata,
                wait_for_ready=self._settings.wait_for_ready,
            )
        except grpc.aio.AioRpcError as error:
            renews = authenticator is not None and authenticator.renews
            raise _translated(error, shown, renews=renews) from error

    def _target(self) -> str:
        target = self._settings.target
        if target.scheme == "unix":
            return f"unix:{target.path}"
        if target.scheme == "dns":
            return self._settings.endpoint
        return f"[{target.host}]:{target.port}" if ":" in target.host else f"{target.host}:{target.port}"

    def _options(self) -> list[tuple[str, str | int]]:
        options: list[tuple[str, str | int]] = [
            ("grpc.primary_user_agent", self._user_agent),
            ("grpc.max_send_message_length", _LARGEST_REQUEST),
            ("grpc.max_receive_message_length", _LARGEST_RESPONSE),
            ("grpc.max_reconnect_backoff_ms", _LONGEST_RECONNECT_MS),
            ("grpc.enable_retries", 0),
            ("grpc.enable_http_proxy", 0),
        ]
        if (keepalive := self._settings.keepalive) is not None:
            options += [
                ("grpc.keepalive_time_ms", keepalive.time // MILLISECOND),
                ("grpc.keepalive_timeout_ms", keepalive.timeout // MILLISECOND),
                ("grpc.keepalive_permit_without_calls", int(keepalive.permit_without_stream)),
            ]
        if self._settings.tls is not None and self._settings.tls.server_name_override:
            options.append(("grpc.ssl_target_name_override", self._settings.tls.server_name_override))
        return options

    def _credentials(self) -> grpc.ChannelCredentials:
        if self._settings.tls is None:
            return grpc.ssl_channel_credentials(system_authorities())
        pems = read_pems(self._settings.tls)
        for name, pem in pems._asdict().items():
            if pem is not None and b"-----BEGIN " not in pem:
                raise StartError(f"tls: {name}: not in PEM format")
        return grpc.ssl_channel_credentials(pems.authorities or system_authorities(), pems.key, pems.certificate)


def _translated(error: grpc.aio.AioRpcError, shown: Mapping[str, str], *, renews: bool) -> Retryable | Permanent:
    code = error.code()
    details = withheld((error.details() or "no details").encode(), shown).decode(errors="replace")
    text = f"{code.name}: {details[:_LONGEST_TEXT]}"
    after = _retry_after(error)
    if renews and code is grpc.StatusCode.UNAUTHENTICATED:
        return Retryable(text, after)
    if code in _RETRYABLE or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and after is not None):
        return Retryable(text, after)
    return Permanent(text)


def _retry_after(error: grpc.aio.AioRpcError) -> float | None:
    for key, value in error.trailing_metadata():
        raw = value if isinstance(value, bytes) else value.encode()
        try:
            if key == "grpc-status-details-bin" and (after := retry_delay_of_status(raw)) is not None:
                return after
            if key == "google.rpc.retryinfo-bin":
                return retry_delay(raw)
        except MalformedAnswer:
            continue
    return None
