"""Configuration of clients, in the Collector's words (configgrpc, confighttp)."""

import os
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from podtrail.config.authentication import ClientAuthSettings
from podtrail.config.types import (
    SECOND,
    ClientEndpoint,
    DeliverySettings,
    Headers,
    KeepaliveSettings,
    NonNegativeDuration,
    Target,
    TlsClientSettings,
    WarningPath,
    client_target,
    host_port,
    is_loopback,
)
from podtrail.transport.client_environment import merged_with_environment

TRACES_PATH = "/v1/traces"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e\t]*")
_GRPC_NAME = re.compile(r"[0-9a-z_.-]+")
_OWN_HEADERS = frozenset({"content-type", "content-encoding", "content-length", "transfer-encoding"})
_NO_RELOAD = "reload_interval is not offered by a client: certificates are read at the start and on SIGHUP"


_TUNING = "remove it: the library's own choice holds"


def _with_scheme(text: str) -> str:
    """Return the URLs that an endpoint without a scheme may mean."""
    host, slash, path = text.partition("/")
    try:
        host_port(host)
        at = host
    except ValueError:
        at = f"{host}:4318"
        try:
            host_port(at)
        except ValueError:
            return "for example http://localhost:4318 or https://backend.example:4318"
    return f"http://{at}{slash}{path} or https://{at}{slash}{path}"


class ClientSettings(DeliverySettings):
    """What both kinds of client have in common."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "middlewares": "send to a Collector that has them",
        **dict.fromkeys(("read_buffer_size", "write_buffer_size"), _TUNING),
    }
    harmless: ClassVar[frozenset[str]] = frozenset({"read_buffer_size", "write_buffer_size"})

    tls: TlsClientSettings | None = Field(None, description="TLS; absent: verified against the system's authorities.")
    headers: Headers = Field(default_factory=dict, description="Headers sent with every request; values are secrets.")
    auth: ClientAuthSettings | None = Field(
        None, description="Show with every request what an authenticator gives, for example a token from a file."
    )

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: Headers) -> Headers:
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name!r} can't be the name of a header")
            if not _HEADER_VALUE.fullmatch(value.get_secret_value()):
                raise ValueError(f"the value of {name!r} has characters that no header can carry")
        return headers

    @field_validator("tls")
    @classmethod
    def _check_reload(cls, tls: TlsClientSettings | None) -> TlsClientSettings | None:
        if tls is not None and tls.reload_interval:
            raise ValueError(_NO_RELOAD)
        return tls

    def _exposes(self, target: Target, *, plain: bool) -> list[tuple[WarningPath, str]]:
        """Return what is to be said of credentials that others can read on their way."""
        if self.auth is None or not plain or target.scheme == "unix" or is_loopback(target.host):
            return []
        text = f"credentials travel to {target.host} in plain text: whoever can listen in has them"
        return [(("auth",), text)]


class GrpcChannelSettings(ClientSettings):
    """How a gRPC client talks, wherever it connects to. What it leaves out may come from `OTEL_EXPORTER_OTLP_…`."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **ClientSettings.of_the_collector,
        "authority": "use tls::server_name_override",
        "balancer_name": "remove it: one connection is used; to spread load use load_balancing",
        "user_agent": "remove it: podtrail says who it is",
    }
    harmless: ClassVar[frozenset[str]] = ClientSettings.harmless | {"balancer_name", "user_agent"}

    compression: Literal["gzip", "none", ""] = Field("gzip", description="`gzip` or `none`.")
    keepalive: KeepaliveSettings | None = Field(None, description="Keepalive of the connection.")
    wait_for_ready: bool = Field(
        False, description="Let a try wait for the connection within its timeout instead of failing at once."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_environment(cls, data: Any) -> Any:
        merged = merged_with_environment(data, os.environ)
        if not isinstance(merged, dict):
            return merged
        anywhere = {"endpoint", "traces_endpoint"} - set(data)
        return {key: value for key, value in merged.items() if key not in anywhere}

    @field_validator("compression", mode="before")
    @classmethod
    def _no_zstd(cls, value: Any) -> Any:
        if value == "zstd":
            raise ValueError("zstd can't be sent over gRPC (its library has gzip only): use gzip, or otlp_http")
        return value

    @field_validator("headers")
    @classmethod
    def _check_metadata(cls, headers: Headers) -> Headers:
        for name in headers:
            if not _GRPC_NAME.fullmatch(name.lower()) or name.lower().startswith("grpc-"):
                raise ValueError(f"{name!r} can't be the name of a header in gRPC")
        return headers

    @field_validator("tls")
    @classmethod
    def _check_tls(cls, tls: TlsClientSettings | None) -> TlsClientSettings | None:
        if tls is not None and tls.min_version == "1.3":
            raise ValueError(
                "min_version can't be 1.3: gRPC's library accepts 1.2 and 1.3 and has no option for that; remove it"
            )
        if tls is not None and tls.insecure_skip_verify:
            raise ValueError(
                "insecure_skip_verify can't be honoured by gRPC (its library has no such option): "
                "give the server's certificate as ca_file, and its name as server_name_override"
            )
        return tls


class GrpcClientSettings(GrpcChannelSettings):
    """A gRPC client. What it leaves out may come from `OTEL_EXPORTER_OTLP_…`."""

    endpoint: ClientEndpoint = Field(
        description="Where to send: host:port, http://host:port (plain text), https://host:port or unix:///path. "
        "Without it OTEL_EXPORTER_OTLP_ENDPOINT must be set."
    )

    @classmethod
    def to(cls, endpoint: str, settings: GrpcChannelSettings) -> Self:
        """Return the settings of a client that talks so, to an endpoint.

        Raises:
            ValidationError: there can be no such endpoint.
        """
        shared = {key: getattr(settings, key) for key in GrpcChannelSettings.model_fields}
        return cls(endpoint=endpoint, **{key: value for key, value in shared.items() if value is not None})

    @model_validator(mode="before")
    @classmethod
    def _from_environment(cls, data: Any) -> Any:
        merged = merged_with_environment(data, os.environ)
        if isinstance(merged, dict) and "traces_endpoint" in merged and "traces_endpoint" not in data:
            merged["endpoint"] = merged.pop("traces_endpoint")
        return merged

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if self.target.scheme in ("http", "https") and self.target.path not in ("", "/"):
            raise ValueError(f"{self.endpoint!r} has a path, which gRPC does not use: remove it, or use otlp_http")
        return self

    @property
    def target(self) -> Target:
        """The endpoint, read."""
        return client_target(self.endpoint)

    def sends_to(self) -> tuple[str, str, int]:
        """Return the key that names where it sends, host and port."""
        return "endpoint", self.target.host, self.target.port

    @property
    def plain(self) -> bool:
        """Whether to connect without TLS: as the scheme says, else as `tls::insecure` does."""
        if self.target.scheme in ("http", "https", "unix"):
            return self.target.scheme != "https"
        return self.tls is not None and self.tls.insecure

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Warn of credentials that others can read."""
        return [*super().warnings(), *self._exposes(self.target, plain=self.plain)]


class HttpClientSettings(ClientSettings):
    """An HTTP client. What it leaves out may come from `OTEL_EXPORTER_OTLP_…`."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **ClientSettings.of_the_collector,
        **dict.fromkeys(
            (
                "compression_params",
                "disable_keep_alives",
                "force_attempt_http2",
                "http2_ping_timeout",
                "http2_read_idle_timeout",
                "idle_conn_timeout",
                "keepalive",
                "max_conns_per_host",
                "max_idle_conns",
                "max_idle_conns_per_host",
            ),
            _TUNING,
        ),
        "cookies": "remove it: no cookie is kept",
        **dict.fromkeys(
            ("logs_endpoint", "metrics_endpoint", "profiles_endpoint"), "remove it: podtrail handles traces only"
        ),
    }
    harmless: ClassVar[frozenset[str]] = frozenset(key for key, hint in of_the_collector.items() if hint == _TUNING)

    timeout: NonNegativeDuration = Field(30 * SECOND, description="Longest time one try may take; 0s: no limit.")
    endpoint: str | None = Field(
        None,
        description="Base URL to send to, `/v1/traces` is added. Without it OTEL_EXPORTER_OTLP_ENDPOINT must be set.",
    )
    traces_endpoint: str | None = Field(None, description="The whole URL to send to, used as it is.")
    encoding: Literal["proto", "json"] = Field("proto", description="How requests are written: `proto` or `json`.")
    compression: Literal["gzip", "zstd", "none", ""] = Field("gzip", description="`gzip`, `zstd` or `none`.")
    proxy_url: str | None = Field(None, description="HTTP proxy to go through; the environment's are not used.")

    @model_validator(mode="before")
    @classmethod
    def _from_environment(cls, data: Any) -> Any:
        return merged_with_environment(data, os.environ)

    @field_validator("headers")
    @classmethod
    def _check_own(cls, headers: Headers) -> Headers:
        for name in headers:
            if name.lower() in _OWN_HEADERS:
                raise ValueError(f"{name!r} is set by the exporter itself: use encoding and compression")
        return headers

    @field_validator("endpoint", "traces_endpoint", "proxy_url")
    @classmethod
    def _check_url(cls, text: str | None) -> str | None:
        if text is not None and "://" not in text:
            raise ValueError(f"{text!r} lacks a scheme: write {_with_scheme(text)}")
        if text is not None and client_target(text).scheme not in ("http", "https"):
            raise ValueError(f"{text!r} is not a URL: write http://host:port or https://host:port")
        return text

    @model_validator(mode="after")
    def _check_endpoints(self) -> Self:
        if self.endpoint is None and self.traces_endpoint is None:
            raise ValueError("endpoint is missing: give the backend's URL, for example http://localhost:4318")
        return self

    @property
    def url(self) -> str:
        """Where requests are posted to."""
        if self.traces_endpoint is not None:
            return self.traces_endpoint
        assert self.endpoint is not None
        return self.endpoint.rstrip("/") + TRACES_PATH

    def sends_to(self) -> tuple[str, str, int]:
        """Return the key that names where it sends, host and port."""
        target = client_target(self.url)
        return "endpoint" if self.traces_endpoint is None else "traces_endpoint", target.host, target.port

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Warn of credentials that others can read."""
        target = client_target(self.url)
        return [*super().warnings(), *self._exposes(target, plain=target.scheme == "http")]
