"""`otlp_grpc` (older name `otlp`): sends spans over OTLP/gRPC."""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from podtrail.component import Context, Factory
from podtrail.otlp import Batch, write_request
from podtrail.otlp.response_reading import read_export_response
from podtrail.transport.client_settings import GrpcClientSettings
from podtrail.transport.user_agent import USER_AGENT
from podtrail_exporters.otlp_answer import rejected_spans

if TYPE_CHECKING:
    from podtrail.transport.grpc_client import GrpcClient


class Config(GrpcClientSettings):
    """Sends spans to an OTLP backend over gRPC."""


class OtlpGrpcExporter:
    """Joins the bytes of a batch and sends them as one request."""

    def __init__(self, client: "GrpcClient", context: Context) -> None:
        """Send through `client`, which is entered and left with the exporter."""
        self._client = client
        self._log = context.log

    def authenticate_by(self, authenticators: Mapping[str, Any]) -> None:
        """Show what the authenticator gives that is configured, if one is."""
        for authenticator in authenticators.values():
            self._client.authenticate_by(authenticator)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.__aexit__(exc_type, exc, tb)

    async def send(self, batch: Batch) -> int:
        """Deliver a batch; return how many of its spans the backend rejected for good."""
        if not batch.groups:
            return 0
        response = await self._client.export(write_request(batch.groups))
        return rejected_spans(response, read_export_response, self._log)


def create(config: Config, context: Context) -> OtlpGrpcExporter:
    """Make the exporter."""
    from podtrail.transport.grpc_client import GrpcClient

    return OtlpGrpcExporter(GrpcClient(config, USER_AGENT), context)


FACTORY = Factory(kind="exporter", type="otlp_grpc", Config=Config, create=create, aliases=("otlp",))
