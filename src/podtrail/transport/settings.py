"""Configuration of servers, in the Collector's words (confighttp, configgrpc)."""

from typing import Literal, Self

from pydantic import Field, model_validator

from podtrail.config.types import (
    MINUTE,
    Endpoint,
    KeepaliveServerSettings,
    Model,
    NonNegativeDuration,
    TlsServerSettings,
    host_port,
)

MIB = 1 << 20


class GrpcServerSettings(Model):
    """A gRPC server."""

    endpoint: str = Field(
        "localhost:4317", description="Where to listen: host:port, or the path of a socket with `transport: unix`."
    )
    transport: Literal["tcp", "unix"] = Field("tcp", description="`tcp`, or `unix` for a socket in the file system.")
    tls: TlsServerSettings | None = Field(None, description="Serve TLS; absent: plain text.")
    max_recv_msg_size_mib: int = Field(
        64,
        gt=0,
        le=2047,
        description="Largest request in MiB, before and after decompression. OTLP recommends 64; the Collector has 4.",
    )
    max_concurrent_streams: int = Field(
        0, ge=0, description="Most requests under way at once on a connection; 0: no limit."
    )
    keepalive: KeepaliveServerSettings | None = Field(None, description="Keepalive of connections.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.transport == "tcp":
            host_port(self.endpoint)
        if self.tls is not None and self.tls.min_version is not None:
            raise ValueError("tls::min_version can't be honoured by gRPC (its library has no such option): remove it")
        return self

    @property
    def limit(self) -> int:
        """Largest request in bytes."""
        return self.max_recv_msg_size_mib * MIB


class CorsSettings(Model):
    """Which web pages may send."""

    allowed_origins: list[str] = Field(
        default_factory=list, description="Origins, for example https://app.example; one `*` in each stands for any."
    )
    allowed_headers: list[str] = Field(
        default_factory=list,
        description="Request headers beyond the safelisted and Content-Type; `*` for any.",
    )
    max_age: int = Field(0, ge=0, description="Seconds for which browsers may remember the answer; 0: not said.")


class HttpServerSettings(Model):
    """An HTTP server."""

    endpoint: Endpoint = Field("localhost:4318", description="Where to listen: host:port.")
    tls: TlsServerSettings | None = Field(None, description="Serve TLS; absent: plain text.")
    cors: CorsSettings | None = Field(None, description="Let web pages of other origins send; absent: none may.")
    max_request_body_size: int = Field(
        20 * MIB, gt=0, description="Largest request body in bytes, before and after decompression."
    )
    compression_algorithms: tuple[Literal["", "gzip", "deflate", "zlib", "zstd"], ...] = Field(
        ("", "gzip", "zstd", "zlib", "deflate"),
        description='Content encodings that are accepted; "" is none, zlib another name of deflate.',
    )
    traces_url_path: str = Field("/v1/traces", pattern="^/", description="Path that takes traces.")
    read_timeout: NonNegativeDuration = Field(MINUTE, description="Time for a request body to arrive; 0s: unlimited.")
    idle_timeout: NonNegativeDuration = Field(
        MINUTE, description="Close a connection that sent no complete request head for so long; 0s: never."
    )
