"""The `viewer` extension: an embedded trace backend (OTLP/gRPC in) and a page that tells the story of every Pod.

Kept spans come in over OTLP like to any other backend. As an observer of the pipelines it takes the verdicts, so that
attempts whose spans were sampled out are seen as well, and every decision can be explained for a while.
"""

from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from podtrail.component import Context, Factory
from podtrail.config.types import Endpoint, Model, host_port

if TYPE_CHECKING:
    from podtrail_extensions.viewer.extension import Viewer

_LOOPBACK = ("localhost", "::1")


class Config(Model):
    """Hold the last traces and show them."""

    endpoint: Endpoint = Field("localhost:15927", description="Where the page is served, host:port.")
    otlp_endpoint: Endpoint = Field(
        "localhost:15317",
        description="Where kept spans come in (OTLP/gRPC), host:port: set an `otlp_grpc` exporter to it.",
    )
    max_mib: int = Field(64, gt=0, le=4096, description="How much is held, in MiB; the oldest traces go first.")
    max_decisions_mib: int = Field(
        16,
        gt=0,
        le=1024,
        description="How much is held, besides, to explain the latest decisions, dropped traces among them, in MiB.",
    )
    allowed_hosts: tuple[str, ...] = Field(
        (),
        description="Host names, besides localhost and IP addresses, by which browsers may call the page.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        host, _ = host_port(self.endpoint)
        if host not in _LOOPBACK and not host.startswith("127.") and not self.allowed_hosts:
            raise ValueError(
                f"endpoint {self.endpoint} can be reached from elsewhere: name in allowed_hosts what browsers call it"
            )
        return self

    def warnings(self) -> list[tuple[tuple[str | int, ...], str]]:
        """Return what is legal but worth a thought."""
        host, _ = host_port(self.endpoint)
        if host in _LOOPBACK or host.startswith("127."):
            return []
        return [(("endpoint",), "the page has neither TLS nor a login: whoever reaches it sees every Pod")]


def _create(config: Config, context: Context) -> "Viewer":
    from podtrail_extensions.viewer.extension import Viewer

    return Viewer(config, context)


FACTORY = Factory(kind="extension", type="viewer", Config=Config, create=_create)
