"""`otlp_http` (older name `otlphttp`): sends spans over OTLP/HTTP, in protobuf or JSON."""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from podtrail.component import Context, Factory
from podtrail.otlp import Batch, write_request
from podtrail.otlp.json import write_json_request
from podtrail.otlp.response_reading import read_export_response, read_export_response_json
from podtrail.transport.client_settings import HttpClientSettings
from podtrail.transport.user_agent import USER_AGENT
from podtrail_exporters.otlp_answer import rejected_spans

if TYPE_CHECKING:
    from podtrail.transport.http_client import HttpClient


class Config(HttpClientSettings):
    """Sends spans to an OTLP backend over HTTP."""


class OtlpHttpExporter:
    """Joins the bytes of a batch, or writes it as JSON, and posts it."""

    def __init__(self, client: "HttpClient", config: Config, context: Context) -> None:
        """Post through `client`, which is entered and left with the exporter."""
        self._client = client
        self._write = write_request if config.encoding == "proto" else write_json_request
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
        answer = await self._client.export(self._write(batch.groups))
        if not answer.body:
            return 0
        read = read_export_response_json if answer.content_type == "application/json" else read_export_response
        return rejected_spans(answer.body, read, self._log)


def create(config: Config, context: Context) -> OtlpHttpExporter:
    """Make the exporter."""
    from podtrail.transport.http_client import HttpClient

    return OtlpHttpExporter(HttpClient(config, USER_AGENT), config, context)


FACTORY = Factory(kind="exporter", type="otlp_http", Config=Config, create=create, aliases=("otlphttp",))
