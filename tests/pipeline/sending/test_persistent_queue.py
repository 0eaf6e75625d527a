"""A queue on disk: what was taken outlives the process, is sent in order, and once where the backend answered."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podtrail.component import Ledger, Permanent, Retryable, StartError
from podtrail.otlp import Batch, Group, PolicyVote, Shadow, Verdict, encode_span, frame, raw_span_reader
from podtrail.otlp.decisions import decision_line
from podtrail.pipeline.sending import SendingQueue
from podtrail.storage import Journal, StorageError, SystemDisk, inline
from tests.pipeline.sending.conftest import RESOURCE, SCOPE, Desk, Scripted, VirtualLoop, steady
from tests.sizes import large

read_ids = raw_span_reader({"span_id"})


class FullDisk(SystemDisk):
    """A disk on which nothing can be written while it is full."""

    full = False

    def write(self, handle: int, offset: int, pieces: Sequence[bytes | memoryview]) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().write(handle, offset, pieces)


class Store:
    """A storage in a folder, written on the loop itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = FullDisk()
        self.opened: list[str] = []

    async def open(self, name: str) -> Journal:
        self.opened.append(name)
        journal = Journal(self.folder / name, self.disk, worker=inline)
        await journal.open()
        return journal

    def segments(self) -> list[Path]:
        return sorted(self.folder.glob("*/*.otlp"))


def live(main: Callable[[], Any]) -> None:
    """Run a life of the process; what it leaves undone is cut off, as at SIGKILL."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


class Persistent(Desk):
    """A persistent queue with its ledger."""

    def __init__(self, exporter: Scripted, store: Store | None, conf: Any, **more: Any) -> None:
        super().__init__(exporter)
        log = logging.LoggerAdapter(logging.getLogger("podtrail.test"))
        self.queue = SendingQueue(exporter, "otlp_grpc/backup", conf, self.metrics, log, storage=store, **more)

    def balance(self, offered: int) -> None:
        """Every span offered or recovered is held or has ended."""
        ledgers = (self.ledger, self.queue.recovered)
        ended = sum(ledger.delivered + ledger.rejected + ledger.dropped.total() for ledger in ledgers)
        assert offered + self.queue.recovered.received == ended + self.queue.held()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A folder to keep queues in."""
    return Store(tmp_path)


@pytest.fixture
def kept() -> Callable[..., Any]:
    """Settings of a persistent queue with a single consumer."""

    def conf(retry: dict[str, Any] | None = None, **queue: Any) -> Any:
        return steady(retry, {"storage": "file_storage", "num_consumers": 1, **queue}, timeout="0s")

    return conf


def numbered(first: int, spans: int, size: int = 6) -> Batch:
    """A batch of spans whose ids are the numbers from `first` on, each of about so many bytes."""
    raw = [
        encode_span(trace_id=b"t" * 16, span_id=(first + at).to_bytes(8, "big"), name="F" * size, start=1, end=2)
        for at in range(spans)
    ]
    return Batch([Group(RESOURCE, SCOPE, b"t" * 16, frame(raw), spans)], arrived=77)


def ids(batch: Batch) -> list[int]:
    """The numbers of a batch's spans."""
    return [int.from_bytes(span.span_id, "big") for group in batch.groups for span in read_ids(group.spans)]


async def never(_: Any) -> int:
    await asyncio.Event().wait()
    return 0


def delivered(exporter: Scripted) -> list[int]:
    """All that an exporter was given, in order."""
    return [number for _, batch in exporter.seen for number in ids(batch)]


def test_what_was_taken_is_sent_after_a_crash_in_order_and_once(store: Store, kept: Any) -> None:
    async def first() -> None:
        here = Persistent(Scripted([0, never]), store, kept())
        await here.queue.__aenter__()
        for at in range(20):
            here.queue.offer(numbered(at * 1000, 1000), here.ledger)
        await here.queue.flush()
        await asyncio.sleep(1)
        assert here.ledger.delivered == 8000
        here.balance(20_000)

    async def second() -> None:
        here = Persistent(Scripted(), store, kept())
        async with here.queue:
            assert here.queue.held() == 12_000
            here.balance(0)
            here.queue.offer(numbered(20_000, 1), here.ledger)
            await here.settled()
        assert delivered(here.exporter) == list(range(8000, 20_001))
        assert here.queue.recovered == Ledger(received=12_000, delivered=12_000)
        assert here.ledger == Ledger(delivered=1)
        here.balance(1)

    async def third() -> None:
        here = Persistent(Scripted(), store, kept())
        async with here.queue:
            assert here.queue.held() == 0

    live(first)
    live(second)
    live(third)
    assert store.opened == ["exporter_otlp_grpc_backup"] * 3


def test_a_stop_leaves_the_rest_on_disk_and_counts_nothing_as_lost(store: Store, kept: Any, caplog: Any) -> None:
    caplog.set_level(logging.INFO)

    async def first() -> None:
        here = Persistent(Scripted([Retryable("down")] * 99), store, kept())
        loop = asyncio.get_running_loop()
        async with here.queue:
            here.queue.offer(numbered(0, 5000), here.ledger)
            here.queue.offer(numbered(5000, 5000), here.ledger)
            await asyncio.sleep(1)
            began = loop.time()
            await here.queue.drain(10)
            assert loop.time() - began < 1  # nobody waits for a backend that is down
        assert here.ledger == Ledger()
        assert (here.queue.held(), here.queue.kept()) == (10_000, 10_000)
        here.balance(10_000)

    async def second() -> None:
        here = Persistent(Scripted(), store, kept())
        async with here.queue:
            await here.settled()
        assert delivered(here.exporter) == list(range(10_000))

    live(first)
    assert "10000 spans stay in its queue on disk" in caplog.text
    live(second)
    assert "sends 10000 spans that were in its queue" in caplog.text


async def test_a_stop_delivers_what_the_backend_takes(store: Store, kept: Any) -> None:
    here = Persistent(Scripted(), store, kept())
    async with here.queue:
        here.queue.offer(numbered(0, 10), here.ledger)
        await here.queue.drain(10)
    assert here.ledger == Ledger(delivered=10)


@pytest.mark.parametrize(
    ("answer", "retry", "end"),
    [
        (Permanent("never"), {}, {"permanent": 10}),
        (Retryable("later"), {"enabled": False}, {"retries_exhausted": 10}),
    ],
)
def test_what_is_given_up_is_not_sent_again(store: Store, kept: Any, answer: Any, retry: Any, end: Any) -> None:
    async def first() -> None:
        here = Persistent(Scripted([answer]), store, kept(retry))
        await here.queue.__aenter__()
        here.queue.offer(numbered(0, 10), here.ledger)
        await here.settled()
        assert here.ledger.dropped == end
        await asyncio.sleep(1)

    async def second() -> None:
        here = Persistent(Scripted(), store, kept())
        async with here.queue:
            assert here.queue.held() == 0

    live(first)
    live(second)


@pytest.mark.parametrize(
    ("stored", "durable"), [(True, False), (False, True), (True, True)], ids=["queue", "durable", "both"]
)
async def test_a_backend_that_is_down_for_an_hour_costs_nothing_unless_that_is_asked_for(
    store: Store, kept: Any, stored: bool, durable: bool
) -> None:
    async def hour(retry: dict[str, Any]) -> Ledger:
        down = True

        async def answer(_: Any) -> int:
            if down:
                raise Retryable("down")
            return 0

        here = Persistent(Scripted([answer] * 10_000), store if stored else None, kept(retry), durable=durable)
        async with here.queue:
            for at in range(360):
                here.queue.offer(numbered(at, 1), here.ledger)
                await asyncio.sleep(10)
            down = False
            await here.settled()
        return here.ledger

    assert await hour({}) == Ledger(delivered=360)
    assert (await hour({"max_elapsed_time": "5m"})).dropped["retries_exhausted"] > 0


def test_far_more_than_memory_waits_on_disk(store: Store, kept: Any) -> None:
    mib = 1 << 20

    async def main() -> None:
        here = Persistent(Scripted([never]), store, kept(sizer="bytes", queue_size=1 << 40))
        await here.queue.__aenter__()
        for at in range(300):
            here.queue.offer(numbered(at * 20, 20, 10_000), here.ledger)
            await here.queue.flush()
        backlog = here.queue._backlog
        assert sum(here.metrics.snapshot()["otelcol_exporter_queue_size"].values()) > 50 * mib
        waiting = sum(batch.size for pending in backlog.line for batch in pending.whole())
        assert waiting < 18 * mib

    async def after() -> None:
        here = Persistent(Scripted(), store, kept())
        async with here.queue:
            assert here.queue.held() == 6000
            await here.settled()
        assert delivered(here.exporter) == list(range(6000))

    live(main)
    live(after)
    assert sum(path.stat().st_size for path in store.segments()) < mib


def test_what_leaves_memory_is_sent_by_the_same_process(store: Store, kept: Any) -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def answer(_: Any) -> int:
            await gate.wait()
            return 0

        here = Persistent(Scripted([answer] * 999), store, kept(sizer="items", queue_size=10_000_000))
        async with here.queue:
            for at in range(100):
                here.queue.offer(numbered(at * 40, 40, 10_000), here.ledger)
                await here.queue.flush()
            assert any(pending.packed for pending in here.queue._backlog.line)
            gate.set()
            await here.settled()
        assert delivered(here.exporter) == list(range(4000))

    live(main)


async def test_segments_are_removed_when_nothing_in_them_waits(store: Store, kept: Any) -> None:
    here = Persistent(Scripted(), store, kept())
    async with here.queue:
        for at in range(200):
            here.queue.offer(numbered(at * 40, 40, 10_000), here.ledger)
            await here.settled()
        await asyncio.sleep(1)
        assert len(store.segments()) <= 2


def test_a_batch_that_is_never_taken_keeps_no_segments_of_others(store: Store, kept: Any) -> None:
    async def main() -> None:
        stuck = {5}

        async def answer(batch: Batch) -> int:
            if stuck & set(ids(batch)):
                raise Retryable("not this one")
            return 0

        here = Persistent(Scripted([answer] * 99_999), store, kept(num_consumers=2))
        await here.queue.__aenter__()
        for at in range(400):
            here.queue.offer(numbered(at * 40, 40, 10_000), here.ledger)
            await asyncio.sleep(0.1)
        assert here.ledger.delivered >= 398 * 40
        assert sum(path.stat().st_size for path in store.segments()) < 100 << 20

    async def after() -> None:
        here = Persistent(Scripted(), store, kept())
        async with here.queue:
            await here.settled()
        assert 5 in delivered(here.exporter)

    live(main)
    live(after)


def test_a_part_that_was_taken_is_not_sent_again(store: Store, kept: Any) -> None:
    async def first() -> None:
        here = Persistent(Scripted([0, never]), store, kept())
        await here.queue.__aenter__()
        big = numbered(0, 20_000)
        here.queue.offer(big, here.ledger)
        await asyncio.sleep(1)
        assert 0 < here.ledger.delivered < 20_000
        first_part.extend(delivered(here.exporter)[: here.ledger.delivered])

    async def second() -> None:
        here = Persistent(Scripted(), store, kept())
        async with here.queue:
            await here.settled()
        assert first_part + delivered(here.exporter) == list(range(20_000))

    first_part: list[int] = []
    live(first)
    live(second)


async def test_done_is_called_when_a_batch_is_on_disk(store: Store, kept: Any) -> None:
    done: list[int] = []
    here = Persistent(Scripted([never]), store, kept())
    async with here.queue:
        here.queue.offer(numbered(0, 20_000), here.ledger, done=lambda: done.append(1))
        assert not done
        await here.queue.flush()
        assert done == [1]
        here.queue.offer(numbered(0, 1), here.ledger, done=lambda: done.append(2))
        await asyncio.sleep(1)
        assert done == [1, 2]


async def test_a_full_disk_refuses_and_goes_on_by_itself(store: Store, kept: Any, caplog: Any) -> None:
    done: list[int] = []
    here = Persistent(Scripted([never] * 2), store, kept())
    async with here.queue:
        store.disk.full = True
        here.queue.offer(numbered(0, 10), here.ledger, done=lambda: done.append(1))
        with pytest.raises(StorageError, match="No space left on device"):
            await here.queue.flush()
        assert not here.queue.has_room(numbered(10, 1), here.ledger)
        assert here.queue.failing is not None
        here.queue.refuse(1)
        here.queue.offer(numbered(10, 10), here.ledger)  # behind a sampler nobody can be refused
        store.disk.full = False
        await asyncio.sleep(3)
        assert here.queue.has_room(numbered(20, 1), here.ledger)
        assert done == [1]
        here.queue.offer(numbered(20, 10), here.ledger)
        await here.queue.flush()
    assert here.ledger.dropped == {"shutdown": 10}  # those which the disk did not take
    assert here.queue.kept() == 20
    here.balance(30)
    assert "refused requests with 1 spans" in caplog.text
    assert "No space left on device" in caplog.text


async def test_what_a_full_disk_did_not_take_is_lost_at_the_end_and_counted(store: Store, kept: Any) -> None:
    here = Persistent(Scripted([never] * 2), store, kept())
    async with here.queue:
        here.queue.offer(numbered(0, 10), here.ledger)
        await here.queue.flush()
        store.disk.full = True
        here.queue.offer(numbered(10, 5), here.ledger)
    assert here.ledger.dropped == {"shutdown": 5}
    assert here.queue.kept() == 10
    here.balance(15)


def test_a_damaged_batch_is_counted_and_the_others_are_sent(store: Store, kept: Any, caplog: Any) -> None:
    async def main() -> None:
        here = Persistent(Scripted([never]), store, kept(sizer="bytes", queue_size=1 << 40))
        await here.queue.__aenter__()
        for at in range(3):
            here.queue.offer(numbered(at * 8000, 8000), here.ledger)
        await here.queue.flush()

    async def after() -> None:
        here = Persistent(Scripted(), store, kept())
        queue = await here.queue.__aenter__()
        assert queue.held() == 24_000
        (segment,) = store.segments()[:1]
        data = bytearray(segment.read_bytes())
        at = data.index((8005).to_bytes(8, "big"))
        data[at] ^= 0xFF
        segment.write_bytes(data)
        await here.settled()
        here.balance(0)
        await queue.__aexit__(None, None, None)
        assert queue.recovered.dropped == {"damaged": 8000}
        assert delivered(here.exporter) == [*range(8000), *range(16_000, 24_000)]

    live(main)
    live(after)
    assert "dropped 8000 spans (damaged)" in caplog.text


def test_verdicts_survive_with_what_policies_said(store: Store, kept: Any) -> None:
    class Explaining:
        shadow = Shadow({"try": "sampled"}, "dropped", "other", "because", {"x": "not_sampled"})

        def explain(self, verdict: Verdict) -> list[PolicyVote]:
            return [PolicyVote("slow", "latency", "sampled", "3 s"), PolicyVote("try", "ottl", None, "no", True)]

    groups = numbered(500, 2).groups
    told = Verdict(
        b"t" * 16, "sampled", "slow", "3 s", 9, 8, 2, {"slow": "sampled"}, groups, Explaining(), dry_run=True
    )
    plain = Verdict(b"u" * 16, "dropped", "", "no policy said yes", 9, 8, 2)

    async def first() -> None:
        exporter = Scripted([never])
        exporter.wants_verdicts = True
        here = Persistent(exporter, store, kept())
        await here.queue.__aenter__()
        batch = numbered(0, 3)
        here.queue.offer(Batch(batch.groups, 5, [told, plain]), here.ledger)
        await here.queue.flush()

    async def second() -> None:
        exporter = Scripted()
        exporter.wants_verdicts = True
        here = Persistent(exporter, store, kept())
        async with here.queue:
            await asyncio.sleep(1)
        (sent,) = [batch for _, batch in exporter.seen]
        assert ids(sent) == [0, 1, 2]
        assert sent.arrived == 5
        assert [decision_line(verdict) for verdict in sent.verdicts] == [decision_line(told), decision_line(plain)]
        assert sent.verdicts[0].explained() == Explaining().explain(told)
        assert sent.verdicts[0].groups == groups

    live(first)
    live(second)


async def test_a_store_that_cannot_be_opened_prevents_the_start(store: Store, kept: Any) -> None:
    class Locked(Store):
        async def open(self, name: str) -> Journal:
            raise StorageError(f"{name} is open already")

    here = Persistent(Scripted(), Locked(store.folder), kept())
    with pytest.raises(StartError, match="sending_queue::storage: exporter_otlp_grpc_backup is open already"):
        await here.queue.__aenter__()


async def test_a_queue_that_follows_another_counts_nothing_twice(store: Store, kept: Any) -> None:
    before = Persistent(Scripted([Retryable("down")] * 9), store, kept())
    async with before.queue:
        before.queue.offer(numbered(0, 10), before.ledger)
    after = Persistent(Scripted(), store, kept(num_consumers=3), predecessor=before.queue)
    after.ledger = before.ledger
    async with after.queue:
        assert after.queue.held() == 10
        after.balance(10)
        await after.settled()
        after.balance(10)
    in_memory = Persistent(Scripted(), store, steady(), predecessor=after.queue)
    assert in_memory.queue.recovered is before.queue.recovered


ANSWERS = st.one_of(
    st.just(0),
    st.integers(1, 3),
    st.builds(Retryable, st.just("later"), st.none() | st.floats(0, 50)),
    st.builds(Permanent, st.just("never")),
    st.just("hang"),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), st.sampled_from([1, 3, 9, 9000])),
        st.tuples(st.just("wait"), st.sampled_from([0, 0.04, 1, 60])),
        st.tuples(st.just("fill"), st.booleans()),
    ),
    max_size=12,
)
LIVES = st.lists(
    st.tuples(STEPS, st.lists(ANSWERS, max_size=8), st.sampled_from(["kill", "stop"])), min_size=1, max_size=5
)


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Ever new folders."""
    with ExitStack():
        count = iter(range(1_000_000))
        yield lambda: tmp_path / str(next(count))


@settings(deadline=None, max_examples=large(40, 1000), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lives=LIVES, consumers=st.integers(1, 3), sizer=st.sampled_from(["requests", "items", "bytes"]))
def test_whatever_happens_nothing_acknowledged_is_lost(
    folders: Any, kept: Any, lives: Any, consumers: int, sizer: str
) -> None:
    """Acknowledged: flushed. One consumer keeps the order; only a kill or a full disk has anything delivered twice."""
    store = Store(folders())
    acknowledged: list[int] = []
    came: list[int] = []
    refused: Counter[int] = Counter()
    next_id = 0

    async def life(steps: Any, answers: Any, end: str) -> None:
        nonlocal next_id
        offered = 0
        store.disk.full = False

        async def answer(batch: Batch) -> int:
            said = script.pop(0) if script else 0
            if said == "hang":
                await asyncio.Event().wait()
            if isinstance(said, Permanent):
                refused.update(ids(batch))
            if isinstance(said, Exception):
                raise said
            came.extend(ids(batch))
            return min(said, 0)

        script = list(answers)
        here = Persistent(
            Scripted([answer] * 99_999), store, kept(num_consumers=consumers, sizer=sizer, queue_size=1 << 40)
        )
        await here.queue.__aenter__()
        for step, amount in steps:
            if step == "fill":
                store.disk.full = amount
            elif step == "wait":
                await asyncio.sleep(amount)
            elif here.queue.has_room(numbered(next_id, amount), here.ledger):
                here.queue.offer(numbered(next_id, amount), here.ledger)
                try:
                    await here.queue.flush()
                    acknowledged.extend(range(next_id, next_id + amount))
                except StorageError:
                    refused.update(range(next_id, next_id + amount))
                next_id += amount
                offered += amount
            here.balance(offered)
        if end == "stop":
            await here.queue.drain(10)
            here.balance(offered)
            await here.queue.__aexit__(None, None, None)
            here.balance(offered)
            assert set(here.ledger.dropped) <= {"permanent", "shutdown"}

    for steps, answers, end in lives:
        live(lambda steps=steps, answers=answers, end=end: life(steps, answers, end))  # type: ignore[misc]
    live(lambda: life([("wait", 1000)], [], "stop"))
    times = Counter(came)
    lost = [number for number in acknowledged if not times[number] and not refused[number]]
    assert not lost
    if consumers == 1 and not any(isinstance(answer, Permanent) for _, answers, _ in lives for answer in answers):
        assert list(dict.fromkeys(number for number in came if not refused[number])) == acknowledged
    if all(end == "stop" and ("fill", True) not in steps for steps, _, end in lives):
        assert all(count == 1 for count in times.values())
