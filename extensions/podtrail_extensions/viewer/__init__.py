"""The `viewer` extension: an embedded trace backend (OTLP/gRPC in) and a page that tells the story of every Pod.

Kept spans come in over OTLP like to any other backend, or with `from_pipelines` as they leave the pipelines. As an
observer of these it takes the verdicts, so that attempts whose spans were sampled out are seen as well, and every
decision can be explained for a while.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from podtrail.component import Context, Factory
from podtrail.config.authentication import ServerAuthSettings
from podtrail.config.types import Endpoint, Model, host_port, is_loopback

if TYPE_CHECKING:
    from podtrail_extensions.viewer.extension import Viewer


class Config(Model):
    """Hold the last traces and show them."""

    endpoint: Endpoint = Field("localhost:15927", description="Where the page is served, host:port.")
    otlp_endpoint: Endpoint = Field(
        "localhost:15317",
        description="Where kept spans come in (OTLP/gRPC), host:port: set an `otlp_grpc` exporter to it.",
    )
    from_pipelines: bool = Field(
        False,
        description="Take what is kept straight from podtrail's own pipelines, as it leaves their processors: no "
        "exporter is needed, nothing waits for the page, and otlp_endpoint is not served.",
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
    auth: ServerAuthSettings | None = Field(
        None,
        description="Ask at addresses beyond loopback for credentials that an authenticator finds right; with "
        "`basicauth` a browser asks its user.",
    )
    allow_unauthenticated: bool = Field(
        False,
        description="Let whoever reaches an address beyond loopback look at the page, or send: without it such an "
        "address needs `auth`.",
    )

    def listens(self) -> Mapping[tuple[str | int, ...], str]:
        """Return the addresses, `host:port`, by the path of the key that names them."""
        page: dict[tuple[str | int, ...], str] = {("endpoint",): self.endpoint}
        return page if self.from_pipelines else {**page, ("otlp_endpoint",): self.otlp_endpoint}

    def memory_bounds(self, budget: int) -> Mapping[str, int]:  # noqa: ARG002 - it takes no share
        """Return the bytes that traces, Pods and decisions may take."""
        return {"max_mib": self.max_mib << 20, "max_decisions_mib": self.max_decisions_mib << 20}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not is_loopback(host_port(self.endpoint)[0]) and not self.allowed_hosts:
            raise ValueError(
                f"endpoint {self.endpoint} can be reached from elsewhere: name in allowed_hosts what browsers call it"
            )
        for key, who in self._open().items():
            if not self.allow_unauthenticated:
                raise ValueError(
                    f"{key} {getattr(self, key)} can be reached from other machines, and {who}; demand credentials "
                    "(auth::authenticator), or say that it is meant so: allow_unauthenticated: true"
                )
        return self

    def asks(self, key: str) -> bool:
        """Tell whether who comes to an address, by its key, must show credentials."""
        return self.auth is not None and not is_loopback(host_port(getattr(self, key))[0])

    def _open(self) -> dict[str, str]:
        """Return the keys whose addresses are beyond loopback, with who may do what there."""
        who = {"endpoint": "whoever reaches it sees every Pod", "otlp_endpoint": "whoever reaches it may send"}
        exposed = {key: may for key, may in who.items() if not is_loopback(host_port(getattr(self, key))[0])}
        return exposed if self.auth is None else {}

    def warnings(self) -> list[tuple[tuple[str | int, ...], str]]:
        """Return what is legal but worth a thought."""
        if self.asks("endpoint") or self.asks("otlp_endpoint"):
            return [(("auth",), "credentials travel in plain text: whoever can listen in has them")]
        return [((key,), f"there is neither TLS nor a login: {who}") for key, who in self._open().items()]


def _create(config: Config, context: Context) -> "Viewer":
    from podtrail_extensions.viewer.extension import Viewer

    return Viewer(config, context)


FACTORY = Factory(kind="extension", type="viewer", Config=Config, create=_create)
