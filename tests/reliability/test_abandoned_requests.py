"""A stalled backend, senders that give up and try again, and a limit of memory."""

import asyncio
import io
import json
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp
import grpc
import grpc.aio
import psutil
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.service.conftest import TRACES, Process
from tests.service.toolbox import PATIENCE

MIB = 1 << 20
LIMIT_MIB = 200
"""Some 70 of it are podtrail itself; four fifths may be used before spans are refused."""
SLACK_MIB = 50
"""For what comes in on a busy machine before memory is measured again."""
SENDERS = 8
"""Of each transport."""
TRIES = 10
TRY_SECONDS = 1.0


def request(number: int, size: int = MIB) -> bytes:
    """One span of about this size, its id the number."""
    sent = ExportTraceServiceRequest()
    id = number.to_bytes(8, "big")
    span = sent.resource_spans.add().scope_spans.add().spans.add(trace_id=id * 2, span_id=id, name="SchedulePod")
    span.attributes.add(key="padding").value.string_value = "x" * size
    return sent.SerializeToString()


class Backend:
    """Takes spans while it is open; what it has not answered has not come."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.came: Counter[int] = Counter()
        self.port = 0

    async def export(self, raw: bytes, _: Any) -> bytes:
        await self.open.wait()
        for resource in ExportTraceServiceRequest.FromString(raw).resource_spans:
            self.came.update(
                int.from_bytes(span.span_id, "big") for scope in resource.scope_spans for span in scope.spans
            )
        return b""


@asynccontextmanager
async def backend() -> AsyncIterator[Backend]:
    """A backend that does not answer until it is opened."""
    made = Backend()
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(made.export)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(TRACES, {"Export": method}),))
    made.port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield made
    finally:
        made.open.set()
        await server.stop(1)


@contextmanager
def running(folder: Path, port: int, queue: dict[str, Any]) -> Iterator[Process]:
    """`podtrail run` with a limit of memory, sending to a port."""
    anywhere = {"endpoint": "127.0.0.1:0"}
    exporter = {
        "endpoint": f"127.0.0.1:{port}",
        "tls": {"insecure": True},
        "retry_on_failure": {"initial_interval": "100ms", "max_interval": "200ms"},
        "sending_queue": queue,
    }
    config = {
        "receivers": {"otlp": {"protocols": {"grpc": anywhere, "http": anywhere}}},
        "processors": {"memory_limiter": {"check_interval": "500ms", "limit_mib": LIMIT_MIB}},
        "exporters": {"otlp": exporter},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "processors": ["memory_limiter"], "exporters": ["otlp"]}},
        },
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    # No fork of a process that has loaded all components: that one begins with half as much memory again.
    process = Process([sys.executable, "-m", "podtrail"], ["run", "--config", str(path)], folder, {})
    try:
        yield process.ready()
    finally:
        process.close()


class Senders:
    """Clients that give a request up after a short time and send it again, over both transports."""

    def __init__(self, process: Process) -> None:
        self._memory = psutil.Process(process.popen.pid)
        options = [("grpc.max_send_message_length", -1)]
        self._grpc = grpc.aio.insecure_channel(f"127.0.0.1:{process.port()}", options=options)
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TRY_SECONDS))
        self._http = f"http://127.0.0.1:{process.port('http')}/v1/traces"
        self.given_up: Counter[int] = Counter()
        self.acknowledged: Counter[int] = Counter()
        self.peak = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        await self._grpc.close()

    def measure(self) -> int:
        """Return the resident memory of podtrail in MiB."""
        used: int = self._memory.memory_info().rss // MIB
        self.peak = max(self.peak, used)
        return used

    async def send(self, number: int, body: bytes, seconds: float = PATIENCE) -> str:
        """Send once over gRPC; return the status."""
        call: Any = self._grpc.unary_unary(f"/{TRACES}/Export")
        try:
            await call(body, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            self.given_up[number] += error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            return f"{error.code().name}: {error.details()}"
        self.acknowledged[number] += 1
        return "OK"

    async def post(self, number: int, body: bytes) -> None:
        """Send once over HTTP."""
        headers = {"Content-Type": "application/x-protobuf"}
        try:
            async with self._session.post(self._http, data=io.BytesIO(body), headers=headers) as answer:
                self.acknowledged[number] += answer.status == 200
        except TimeoutError:
            self.given_up[number] += 1

    async def try_again_and_again(self) -> None:
        """Send a request each, giving up and sending it again."""

        async def one(number: int) -> None:
            body = request(number)
            for _ in range(TRIES):
                await (self.post(number, body) if number % 2 else self.send(number, body, TRY_SECONDS))
                self.measure()

        await asyncio.gather(*[one(number) for number in range(1, 2 * SENDERS + 1)])

    async def send_until_taken(self, number: int) -> None:
        """Send something small until it is taken."""
        async with asyncio.timeout(PATIENCE):
            while await self.send(number, request(number, 1)) != "OK":
                self.measure()


async def test_requests_that_were_given_up_pile_up_nowhere_and_come_once_at_most(tmp_path: Path) -> None:
    blocking = {"queue_size": 2, "num_consumers": 1, "block_on_overflow": True}

    async with backend() as stalled:
        with running(tmp_path, stalled.port, blocking) as process:
            async with Senders(process) as senders:
                await senders.try_again_and_again()
                assert senders.given_up
                assert senders.peak < LIMIT_MIB + SLACK_MIB
                stalled.open.set()
                await senders.send_until_taken(1_000)
                process.tell(signal.SIGTERM)
                assert await asyncio.to_thread(process.end) == 0
                assert "missing" not in process.log
                assert "Traceback" not in process.log
                assert not senders.acknowledged - stalled.came
                once_more = Counter(list(senders.given_up))
                assert not stalled.came - (senders.acknowledged + once_more)


@pytest.mark.parametrize("share", [1, 16])
async def test_over_the_limit_spans_are_refused_until_what_is_held_has_been_delivered(
    tmp_path: Path, share: int
) -> None:
    async with backend() as stalled:
        with running(tmp_path, stalled.port, {"queue_size": 100_000}) as process:
            async with Senders(process) as senders:
                number = 0
                said = "OK"
                while said == "OK":
                    number += 1
                    said = await senders.send(number, request(number, MIB // share))
                    senders.measure()
                assert "MiB of memory in use" in said
                assert senders.peak < LIMIT_MIB + SLACK_MIB
                stalled.open.set()
                await senders.send_until_taken(number)
                process.tell(signal.SIGTERM)
                assert await asyncio.to_thread(process.end) == 0
                assert stalled.came == senders.acknowledged
