"""Configuration of servers, in the Collector's words (confighttp, configgrpc)."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from podtrail.config.authentication import ServerAuthSettings
from podtrail.config.types import (
    MINUTE,
    Duration,
    Endpoint,
    KeepaliveServerSettings,
    Model,
    NonNegativeDuration,
    TlsServerSettings,
    WarningPath,
    host_port,
    is_loopback,
)

MIB = 1 << 20
_LARGEST_MIB = 64
_LARGEST_BODY = 20 * MIB


_TUNING = "remove it: the library's own choice holds"
_OF_A_SERVER: Mapping[str, str] = {
    "include_metadata": "remove it: nothing here goes by the headers of a request",
    "middlewares": "put a Collector in front for them",
    "dialer": "remove it: a server dials nobody",
}
"""What servers of the Collector have besides."""


class ServerSettings(Model):
    """What servers of spans have in common: who may send to them, and how many at once."""

    endpoint: str = Field("", description="Where to listen.")
    tls: TlsServerSettings | None = Field(None, description="Serve TLS; absent: plain text.")
    auth: ServerAuthSettings | None = Field(
        None, description="Take only requests with credentials that an authenticator finds right; absent: all."
    )
    allow_unauthenticated: bool = Field(
        False,
        description="Let whoever reaches an endpoint beyond loopback send: without it such an endpoint needs "
        "`tls::client_ca_file` or `auth`.",
    )
    max_connections: int = Field(
        0, ge=0, description="Most connections at once; more are closed as soon as they come. 0: no limit."
    )

    @model_validator(mode="after")
    def _check_exposure(self) -> Self:
        if self._is_open and not self.allow_unauthenticated:
            raise ValueError(
                f"endpoint {self.at} can be reached from other machines, and whoever reaches it may send; demand "
                "certificates of clients (tls::client_ca_file) or credentials (auth::authenticator), or say that it is "
                "meant so: allow_unauthenticated: true"
            )
        return self

    @property
    def at(self) -> str | None:
        """The address to listen on, `host:port`; None for one that only this machine can have."""
        raise NotImplementedError

    @property
    def demands_certificates(self) -> bool:
        """Whether clients must show a certificate."""
        return self.tls is not None and self.tls.client_ca_file is not None

    @property
    def _is_exposed(self) -> bool:
        return self.at is not None and not is_loopback(host_port(self.at)[0])

    @property
    def _is_open(self) -> bool:
        return self._is_exposed and self.auth is None and not self.demands_certificates

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Warn of what anybody may send to, or read on its way."""
        if self._is_open:
            text = f"whoever reaches {self.at} may send: neither certificate nor credentials are asked for"
            return [(("allow_unauthenticated",), text)]
        if self._is_exposed and self.tls is None:
            return [(("auth",), f"credentials travel to {self.at} in plain text: whoever can listen in has them")]
        return []


class GrpcServerSettings(ServerSettings):
    """A gRPC server."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **_OF_A_SERVER,
        **dict.fromkeys(("read_buffer_size", "write_buffer_size"), _TUNING),
    }
    harmless: ClassVar[frozenset[str]] = frozenset({"include_metadata", "read_buffer_size", "write_buffer_size"})

    endpoint: str = Field(
        "localhost:4317", description="Where to listen: host:port, or the path of a socket with `transport: unix`."
    )
    transport: Literal["tcp", "unix"] = Field("tcp", description="`tcp`, or `unix` for a socket in the file system.")
    max_recv_msg_size_mib: int = Field(
        _LARGEST_MIB,
        ge=0,
        le=2047,
        description="Largest request in MiB, before and after decompression. OTLP recommends 64; the Collector has 4. "
        "0: the default.",
    )
    max_concurrent_streams: int = Field(
        0, ge=0, description="Most requests under way at once on a connection; 0: no limit."
    )
    keepalive: KeepaliveServerSettings | None = Field(None, description="Keepalive of connections.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.transport == "tcp":
            host_port(self.endpoint)
        if self.tls is not None and self.tls.min_version == "1.3":
            raise ValueError(
                "tls::min_version can't be 1.3: gRPC's library accepts 1.2 and 1.3 and has no option; remove it"
            )
        return self

    @property
    def at(self) -> str | None:
        """The address to listen on, None for a socket in the file system."""
        return self.endpoint if self.transport == "tcp" else None

    @property
    def limit(self) -> int:
        """Largest request in bytes."""
        return (self.max_recv_msg_size_mib or _LARGEST_MIB) * MIB


class CorsSettings(Model):
    """Which web pages may send."""

    of_the_collector: ClassVar[Mapping[str, str]] = {"exposed_headers": "remove it: answers carry nothing to read"}

    allowed_origins: list[str] = Field(
        default_factory=list, description="Origins, for example https://app.example; one `*` in each stands for any."
    )
    allowed_headers: list[str] = Field(
        default_factory=list,
        description="Request headers beyond the safelisted and Content-Type; `*` for any.",
    )
    max_age: int = Field(0, ge=0, description="Seconds for which browsers may remember the answer; 0: not said.")


class HttpServerSettings(ServerSettings):
    """An HTTP server."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **_OF_A_SERVER,
        "transport": "remove it: HTTP is served over TCP",
        "response_headers": "remove it, or put a proxy in front",
        "read_header_timeout": "idle_timeout is the time for a request's head as well",
        "write_timeout": "remove it: answers are short",
        "keepalive": "use idle_timeout",
        "keep_alives_enabled": "remove it: connections are kept open for idle_timeout",
        **dict.fromkeys(("metrics_url_path", "logs_url_path"), "remove it: podtrail handles traces only"),
    }
    harmless: ClassVar[frozenset[str]] = frozenset(
        {
            *("include_metadata", "read_header_timeout", "write_timeout", "keep_alives_enabled"),
            *("metrics_url_path", "logs_url_path"),
        }
    )

    endpoint: Endpoint = Field("localhost:4318", description="Where to listen: host:port.")
    cors: CorsSettings | None = Field(None, description="Let web pages of other origins send; absent: none may.")
    max_request_body_size: int = Field(
        _LARGEST_BODY,
        description="Largest request body in bytes, before and after decompression. 0 or less: the default.",
    )
    compression_algorithms: tuple[
        Literal["", "gzip", "deflate", "zlib", "zstd", "snappy", "x-snappy-framed", "lz4"], ...
    ] = Field(
        ("", "gzip", "zstd", "zlib", "deflate", "snappy", "x-snappy-framed", "lz4"),
        description='Content encodings that are accepted; "" is none, zlib another name of deflate.',
    )
    traces_url_path: str = Field("/v1/traces", description="Path that takes traces.")
    read_timeout: Duration = Field(MINUTE, description="Time for a request body to arrive; 0s or less: unlimited.")
    idle_timeout: NonNegativeDuration = Field(
        MINUTE, description="Close a connection that sent no complete request head for so long; 0s: never."
    )

    @field_validator("max_request_body_size")
    @classmethod
    def _default_size(cls, size: int) -> int:
        return size if size > 0 else _LARGEST_BODY

    @field_validator("read_timeout")
    @classmethod
    def _unlimited(cls, timeout: int) -> int:
        return max(0, timeout)

    @field_validator("traces_url_path")
    @classmethod
    def _from_the_root(cls, path: str) -> str:
        return path if path.startswith("/") else f"/{path}"

    @property
    def at(self) -> str | None:
        """The address to listen on."""
        return self.endpoint
