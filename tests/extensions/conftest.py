from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import grpc.aio
import pytest
from aiohttp import ClientSession
from podtrail_extensions.viewer import FACTORY
from podtrail_extensions.viewer.extension import Viewer

from podtrail.component import Context
from podtrail.otlp import Batch, write_request

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@asynccontextmanager
async def _viewing(*batches: Batch, **config: object) -> AsyncIterator[tuple[Viewer, ClientSession]]:
    settings = FACTORY.Config.model_validate({"endpoint": "localhost:0", "otlp_endpoint": "localhost:0"} | config)
    viewer: Viewer = FACTORY.create(settings, Context(id="viewer"))
    async with viewer, ClientSession(viewer.page) as browser:
        async with grpc.aio.insecure_channel(viewer.otlp_endpoint) as channel:
            export: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(METHOD)
            for batch in batches:
                viewer.observe("traces", batch)
                if batch.groups:
                    await export(write_request(batch.groups))
        yield viewer, browser


@pytest.fixture
def viewing() -> Callable[..., AbstractAsyncContextManager[tuple[Viewer, ClientSession]]]:
    """A running viewer, to which batches were given as verdicts and over real OTLP/gRPC, and a client of its page."""
    return _viewing
