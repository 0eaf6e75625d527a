"""Queue, retry and a real exporter over a real socket: nothing is lost that the backend will take in the end."""

import asyncio
import logging
import random
from typing import Any

import grpc

from podtrail.component import Ledger, Metrics
from podtrail.config.types import DeliverySettings
from podtrail.pipeline.sending import SendingQueue
from tests.exporters.conftest import Say, grpc_backend, make_batch, make_exporter


def queue_around(exporter: Any, settings: DeliverySettings | None) -> SendingQueue:
    return SendingQueue(exporter, "otlp_grpc", settings, Metrics(), logging.LoggerAdapter(logging.getLogger("test")))


QUICK = {"initial_interval": "10ms", "max_interval": "20ms"}


async def test_everything_arrives_though_most_tries_are_refused() -> None:
    rng = random.Random(7)
    busy = Say(grpc.StatusCode.UNAVAILABLE, "busy")
    script = [busy if rng.random() < 0.7 else b"" for _ in range(300)]
    settings = DeliverySettings.model_validate({"retry_on_failure": QUICK, "sending_queue": {"num_consumers": 4}})
    ledger = Ledger()
    async with (
        grpc_backend(*script) as backend,
        make_exporter("otlp_grpc", endpoint=f"http://localhost:{backend.port}") as exporter,
        queue_around(exporter, settings) as queue,
    ):
        for _ in range(40):
            queue.offer(make_batch(500, groups=4), ledger)
        await queue.drain(30)
        refused = sum(spans for spans, answer in zip(backend.spans(), script, strict=False) if answer is busy)
        assert sum(backend.spans()) - refused == 80_000
    assert ledger == Ledger(delivered=80_000)


async def test_a_backend_that_comes_back_gets_what_waited() -> None:
    async with grpc_backend() as former:
        port = former.port
    ledger = Ledger()
    settings = DeliverySettings.model_validate({"retry_on_failure": QUICK})
    async with (
        make_exporter("otlp_grpc", endpoint=f"http://localhost:{port}") as exporter,
        queue_around(exporter, settings) as queue,
    ):
        queue.offer(make_batch(7), ledger)
        async with grpc_backend(address=f"localhost:{port}") as backend, asyncio.timeout(120):
            while queue.held():
                await queue.room()
            assert backend.spans() == [7]
    assert ledger == Ledger(delivered=7)


async def test_a_black_hole_does_not_hold_up_the_end() -> None:
    ledger = Ledger()
    async with (
        grpc_backend(*[None] * 99) as backend,
        make_exporter("otlp_grpc", endpoint=f"http://localhost:{backend.port}", timeout="1h") as exporter,
        queue_around(exporter, DeliverySettings.model_validate({"timeout": "1h"})) as queue,
    ):
        for _ in range(99):
            queue.offer(make_batch(500), ledger)
        async with asyncio.timeout(120):
            await queue.drain(0.1)
    assert ledger.dropped == {"shutdown": 49_500}


def test_a_file_that_cannot_be_written_holds_the_pipeline_up_and_tells_once(caplog: Any) -> None:
    async def main() -> None:
        ledger = Ledger()
        async with make_exporter("file", path="/dev/full") as exporter, queue_around(exporter, None) as queue:
            while queue.has_room(make_batch(5000, name="x" * 500), ledger):
                queue.offer(make_batch(5000, name="x" * 500), ledger)
            assert 60 << 20 < 560 * queue.held() < 70 << 20
            held = queue.held()
            await queue.drain(1)
        assert ledger.dropped == {"shutdown": held}

    caplog.set_level("INFO")
    asyncio.run(main())
    assert caplog.text.count("can't write /dev/full: No space left on device") == 1
    assert caplog.text.count("(shutdown)") == 1
