"""The fan-out to pipelines whose queue is full: who waits is bounded, who gives up has handed over nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from podtrail.component import Ledger, Processor, Refused, Taken
from podtrail.component.registry import find
from podtrail.config.types import DeliverySettings
from podtrail.durable.log import ArrivalLog
from podtrail.durable.owed import Owed
from podtrail.durable.recent import RecentRequests
from podtrail.otlp import Batch, Group, Status, encode_span, frame, resource_header, scope_header
from podtrail.pipeline.chain import SLICE_SPANS, ProcessorChain
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.driver import Driver, Outlet
from podtrail.pipeline.fan_out import FanOutConsumer
from podtrail.pipeline.host import Host
from podtrail.pipeline.sending import SendingQueue
from podtrail.storage import InlineWorker, Journal, SystemDisk
from tests.pipeline.told import Told

T = TypeVar("T")

DEADLINE = 120.0
MIB = 1 << 20
SECOND = 1_000_000_000


def batch_of(name: str, size: int = 0) -> Batch:
    """One span of this name; with `size`, of about so many bytes."""
    span = encode_span(trace_id=b"t" * 16, span_id=b"spanspan", name=name + "x" * size, start=1, end=2)
    return Batch([Group(resource_header({}), scope_header("test"), b"t" * 16, frame([span]), 1)], arrived=0)


class Backend:
    """An exporter that delivers while it is open."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self._came: asyncio.Queue[Batch] = asyncio.Queue()

    async def __aenter__(self) -> "Backend":
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def send(self, batch: Batch) -> int:
        await self.open.wait()
        self._came.put_nowait(batch)
        return 0

    async def delivered(self, spans: int) -> None:
        """Wait for so many spans."""
        while spans > 0:
            spans -= (await self._came.get()).span_count
        assert (spans, self._came.qsize()) == (0, 0)


class Passing:
    """A processor that lets everything pass, or refuses."""

    refuses = False

    def ask(self, now: int) -> None:
        if self.refuses:
            raise Refused("no memory")

    def admit(self, batch: Batch, now: int) -> None:
        self.ask(now)

    def add(self, batch: Batch, now: int) -> Taken:
        return Taken([batch])

    def expire(self, now: int, limit: int) -> list[Batch]:
        return []

    def deadline(self) -> None:
        return None

    def held(self) -> int:
        return 0

    def held_since(self) -> None:
        return None

    def take_over(self, predecessor: "Passing", now: int) -> None:
        return

    def drain(self, now: int) -> list[Batch]:
        return []


class Stalled:
    """A pipeline whose blocking queue holds one batch."""

    def __init__(self) -> None:
        self.backend = Backend()
        self.passing = Passing()
        context = Host().context("otlp")
        settings = DeliverySettings.model_validate(
            {"timeout": "0s", "sending_queue": {"queue_size": 1, "num_consumers": 1, "block_on_overflow": True}}
        )
        queue = SendingQueue(self.backend, "otlp", settings, context.metrics, context.log)
        clock = PipelineClock()
        chain = ProcessorChain([self.passing], Ledger())
        self.driver = Driver("traces", chain, [Outlet(queue, "otlp")], [], clock)
        self.consumer = FanOutConsumer([self.driver], clock)


@asynccontextmanager
async def stalled() -> AsyncIterator[Stalled]:
    made = Stalled()
    running = asyncio.create_task(made.driver.run())
    try:
        async with asyncio.timeout(DEADLINE):
            yield made
    finally:
        running.cancel()
        made.backend.open.set()
        await asyncio.gather(running, return_exceptions=True)


async def _fill(made: Stalled) -> int:
    """Hand batches over until none is taken at once; return how many were."""
    taken = 0
    while made.consumer.take(batch_of("taken")):
        taken += 1
    return taken


async def test_who_gives_up_while_waiting_has_handed_over_nothing() -> None:
    async with stalled() as made:
        taken = await _fill(made)
        waiting = [asyncio.ensure_future(made.consumer(batch_of("given up"))) for _ in range(3)]
        staying = asyncio.ensure_future(made.consumer(batch_of("stays")))
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        made.backend.open.set()
        await staying
        await made.backend.delivered(taken + 1)
        assert made.driver.chain.ledger.received == taken + 1


async def test_what_waits_is_bounded_in_bytes() -> None:
    async with stalled() as made:
        await _fill(made)
        waiting: list[Any] = [asyncio.ensure_future(made.consumer(batch_of("w", 30 * MIB))) for _ in range(4)]
        done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert len(pending) == 2
        for task in done:
            with pytest.raises(Refused, match="wait for the pipelines already"):
                task.result()
        made.backend.open.set()
        await asyncio.gather(*pending)


async def test_who_would_be_refused_does_not_wait_for_room_first() -> None:
    async with stalled() as made:
        await _fill(made)
        made.passing.refuses = True
        with pytest.raises(Refused, match="no memory"):
            await made.consumer(batch_of("refused"))
        with pytest.raises(Refused, match="no memory"):
            made.consumer.ask()


async def test_once_taken_nothing_is_waited_for_any_more() -> None:
    async with stalled() as made:
        for _ in range(2):
            await made.consumer(batch_of("taken"))  # the second finds the queue full on its way out
        assert made.driver.chain.ledger.received == 2
        made.backend.open.set()
        await made.backend.delivered(2)


def _sampler() -> Processor:
    factory = find("processor", "tail_sampling")
    assert factory is not None
    failed = {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}}
    config = factory.Config.model_validate({"decision_wait": "2s", "policies": [failed]})
    made: Processor = factory.create(config, Host().context("tail_sampling", "traces"))
    return made


def _of_trace(number: int, *, failed: bool = False) -> Group:
    trace_id = number.to_bytes(16, "big")
    status = Status(2, "no node") if failed else None
    span = encode_span(trace_id=trace_id, span_id=b"spanspan", name="x", start=1, end=2, status=status)
    return Group(resource_header({}), scope_header("test"), trace_id, frame([span]), 1)


async def test_a_trace_is_not_decided_without_what_waits_for_room() -> None:
    """Deciding many traces takes so long that the next are due before their spans, which came in time, are let in."""

    clock, backend = Told(), Backend()
    backend.open.set()
    context = Host().context("otlp")
    queue = SendingQueue(backend, "otlp", None, context.metrics, context.log)
    driver = Driver("traces", ProcessorChain([_sampler()], Ledger()), [Outlet(queue, "otlp")], [], clock)
    consumer = FanOutConsumer([driver], clock)
    many = Batch([_of_trace(number) for number in range(1, 3 * SLICE_SPANS)], arrived=0)
    assert consumer.take(many)
    clock.time = 1 * SECOND
    assert consumer.take(Batch([_of_trace(SLICE_SPANS * 4)], arrived=0))
    clock.time = 2 * SECOND
    deciding = asyncio.create_task(driver.run())
    while not driver.lock.locked():  # noqa: ASYNC110 - turns of the loop, no time passes
        await asyncio.sleep(0)
    waiting = asyncio.create_task(consumer(Batch([_of_trace(SLICE_SPANS * 4, failed=True)], arrived=0)))
    await asyncio.sleep(0)
    assert driver.lock.locked()
    clock.time = 9 * SECOND
    async with asyncio.timeout(DEADLINE):
        await waiting
        await backend.delivered(2)
    deciding.cancel()
    await asyncio.gather(deciding, return_exceptions=True)
    await queue.drain(0)


class OnDisk:
    """A pipeline whose queue is on a disk that writes when it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written = asyncio.Event()
        self.full = False
        context = Host().context("otlp")
        settings = DeliverySettings.model_validate({"timeout": "0s", "sending_queue": {"storage": "file_storage"}})
        self.queue = SendingQueue(Backend(), "otlp", settings, context.metrics, context.log, storage=self)
        clock = PipelineClock()
        self.driver = Driver("traces", ProcessorChain([], Ledger()), [Outlet(self.queue, "otlp")], [], clock)
        self.consumer = FanOutConsumer([self.driver], clock, 0.2)

    async def open(self, name: str) -> Journal:
        made = self

        class Slow(SystemDisk):
            def write(self, handle: int, offset: int, pieces: Sequence[bytes | memoryview]) -> None:
                if made.full:
                    raise OSError(28, "No space left on device")
                super().write(handle, offset, pieces)

        class Worker(InlineWorker):
            async def do(self, work: Callable[[], T]) -> T:
                await made.written.wait()
                return work()

        self.written.set()
        journal = Journal(self.folder / name, Slow(), worker=lambda _: Worker())
        await journal.open()
        self.written.clear()
        return journal


async def test_a_sender_is_told_once_what_it_sent_is_on_disk(tmp_path: Path) -> None:
    made = OnDisk(tmp_path)
    await made.queue.__aenter__()
    assert not made.consumer.take(batch_of("at once"))
    sending = asyncio.ensure_future(made.consumer(batch_of("waits")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert made.queue.held() == 1
    assert not sending.done()
    made.written.set()
    await sending
    made.written.clear()
    with pytest.raises(Refused, match="the sending queue of otlp could not be written in time"):
        await made.consumer(batch_of("hangs"))
    made.written.set()
    await made.queue.__aexit__(None, None, None)


async def test_while_the_disk_is_full_nothing_is_taken_and_the_sender_is_told_why(tmp_path: Path) -> None:
    made = OnDisk(tmp_path)
    async with made.queue:
        made.written.set()
        made.full = True
        with pytest.raises(Refused, match=r"the sending queue of otlp can't write .*No space left on device"):
            await made.consumer(batch_of("fills it"))
        assert made.driver.chain.ledger.received == 1
        with pytest.raises(Refused, match="No space left on device"):
            await made.consumer(batch_of("is not let in"))
        assert made.driver.chain.ledger.received == 1
        made.full = False


async def test_while_the_disk_of_the_log_hangs_the_sender_is_told_so(tmp_path: Path) -> None:
    made = OnDisk(tmp_path)
    journal = await made.open("pipelines")
    clock = PipelineClock()
    nothing: Any = lambda *_: None  # noqa: E731
    log = ArrivalLog(journal, [made.driver], clock, Owed(), RecentRequests(), nothing, nothing, nothing, nothing)
    consumer = FanOutConsumer([made.driver], clock, 0.2, receiver="otlp", log=log)
    with pytest.raises(Refused, match="the log of arrivals could not be written in time: its disk hangs"):
        await consumer(batch_of("hangs"))
    made.written.set()
    await log.idle()
    assert made.driver.chain.ledger.received == 1  # it was being written: who sends it again is known
    consumer.shut()
    with pytest.raises(Refused, match="the pipelines are being swapped"):
        await consumer(batch_of("comes in a reload"))
    await made.queue.drain(0)
    await journal.close()


async def test_a_batch_that_waits_out_a_reload_goes_where_the_reload_has_led() -> None:
    """A pipeline that was durable is no longer, or became it: the log is looked up after the wait."""
    async with stalled() as made:

        class Log:
            writing = False
            batches: ClassVar[list[Batch]] = []

            async def take(self, _receiver: str, batch: Batch, _came: int, _drivers: object) -> None:
                self.batches.append(batch)

        log: Any = Log()
        consumer = FanOutConsumer([made.driver], made.consumer._clock, log=log)
        consumer.shut()
        waiting = asyncio.ensure_future(consumer(batch_of("durable before")))
        await asyncio.sleep(0)
        consumer.lead_to([made.driver], None)
        await waiting
        assert (made.driver.chain.ledger.received, log.batches) == (1, [])
        consumer.shut()
        waiting = asyncio.ensure_future(consumer(batch_of("durable after")))
        await asyncio.sleep(0)
        consumer.lead_to([made.driver], log)
        await waiting
        assert (made.driver.chain.ledger.received, len(log.batches)) == (1, 1)
