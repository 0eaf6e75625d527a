"""What the sending queue admits, merges, cuts and drains."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from podtrail.component import Ledger, Permanent, Retryable
from podtrail.otlp import Batch, Verdict
from tests.pipeline.sending.conftest import Desk, Scripted, make_batch, steady


class Gate:
    """An answer that waits until it is opened."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.inside = 0
        self.most = 0

    async def __call__(self, _: Any) -> int:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await self.opened.wait()
        self.inside -= 1
        return 0


async def test_what_comes_within_a_moment_leaves_together() -> None:
    here = Desk(Scripted(), steady())
    for _ in range(5):
        here.queue.offer(make_batch(2), here.ledger)
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.05)
    assert here.exporter.times == [0.05, 0.11]
    assert [batch.span_count for _, batch in here.exporter.seen] == [6, 4]


async def test_what_is_full_leaves_at_once_and_so_does_everything_when_room_is_wanted() -> None:
    here = Desk(Scripted(), steady())
    for spans in (5000, 5000, 10):
        here.queue.offer(make_batch(spans), here.ledger)
    await here.queue.room()
    await here.settled()
    assert here.exporter.times == [0, 0]
    assert [batch.span_count for _, batch in here.exporter.seen] == [5000, 5010]


async def test_a_stuck_request_holds_up_nothing_behind_it() -> None:
    here = Desk(Scripted([Retryable("down", after=100)]), steady())
    here.queue.offer(make_batch(1), here.ledger)
    await asyncio.sleep(1)
    here.queue.offer(make_batch(2), here.ledger)
    await asyncio.sleep(200)
    assert here.exporter.times == [0.05, 1.05, 100.05]


async def test_batches_of_different_accounts_are_never_merged() -> None:
    here, other = Desk(Scripted([2]), steady()), Ledger()
    here.queue.offer(make_batch(3), here.ledger)
    here.queue.offer(make_batch(4), other)
    await here.settled()
    assert (here.ledger.delivered, here.ledger.rejected, other.delivered) == (1, 2, 4)


async def test_no_more_requests_are_under_way_than_consumers() -> None:
    gate = Gate()
    here = Desk(Scripted([gate] * 9), steady(queue={"num_consumers": 3}))
    for _ in range(9):
        here.queue.offer(make_batch(5000), here.ledger)
    await asyncio.sleep(1)
    assert gate.inside == 3
    gate.opened.set()
    await here.settled()
    assert gate.most == 3
    assert here.ledger.delivered == 45_000


@pytest.mark.parametrize(("sizer", "size"), [("requests", 2), ("items", 10_000), ("bytes", 700_000)])
async def test_drops_and_counts_what_does_not_fit(sizer: str, size: int) -> None:
    gate = Gate()
    here = Desk(Scripted([gate] * 9), steady(queue={"sizer": sizer, "queue_size": size}))
    for _ in range(3):
        here.queue.offer(make_batch(5000), here.ledger)
    assert not here.queue.has_room(make_batch(5000), here.ledger)
    gate.opened.set()
    await here.settled()
    assert (here.ledger.delivered, here.ledger.dropped) == (10_000, {"queue_full": 5000})
    shown = here.metrics.snapshot()
    assert shown["otelcol_exporter_enqueue_failed_spans"] == {"exporter=otlp": 5000}
    assert shown["otelcol_exporter_queue_capacity"] == {"exporter=otlp": size}
    assert shown["otelcol_exporter_queue_size"] == {"exporter=otlp": 0}


async def test_what_finds_no_room_is_told_of_at_once_and_once_a_minute(caplog: Any) -> None:
    here = Desk(Scripted([Gate()]), steady(queue={"sizer": "items", "queue_size": 1}, timeout="0s"))
    here.queue.offer(make_batch(), here.ledger)
    for _ in range(150):
        here.queue.offer(make_batch(2), here.ledger)
        here.queue.refuse(3)
        await asyncio.sleep(1)
    await here.queue.drain(0)
    assert here.ledger.dropped == {"queue_full": 300, "shutdown": 1}
    told = [record.getMessage() for record in caplog.records if "queue is full" in record.getMessage()]
    assert [int(line.split("dropped ")[1].split()[0]) for line in told[:1]] == [2]
    assert [int(line.split("dropped ")[1].split()[0]) for line in told[1:]] == pytest.approx([120, 120, 58], abs=2)
    refused = [int(line.split("refused requests with ")[1].split()[0]) for line in told[1:]]
    assert refused == pytest.approx([180, 180, 90], abs=3)
    assert all("since" in line and "queue_size" in line for line in told)


async def test_waiting_for_room_loses_nothing() -> None:
    queue = {"sizer": "items", "queue_size": 100, "block_on_overflow": True}
    here = Desk(Scripted([Retryable("down")] * 3), steady(queue=queue))
    assert here.queue.patience
    for _ in range(50):
        while not here.queue.has_room(make_batch(40), here.ledger):
            await here.queue.room()
        here.queue.offer(make_batch(40), here.ledger)
        assert here.queue.held() <= 100
    await here.settled()
    assert here.ledger == Ledger(delivered=2000)


async def test_a_batch_beyond_the_capacity_goes_when_the_queue_is_empty() -> None:
    here = Desk(Scripted(), steady(queue={"sizer": "items", "queue_size": 10}))
    here.queue.offer(make_batch(11), here.ledger)
    await here.settled()
    assert here.ledger.delivered == 11


async def test_a_queue_that_is_off_makes_the_pipeline_wait_for_each_delivery() -> None:
    here = Desk(Scripted(), steady(queue={"enabled": False}))
    here.queue.offer(make_batch(), here.ledger)
    await asyncio.sleep(0)
    assert here.queue.patience
    assert not here.queue.has_room(make_batch(), here.ledger)
    await here.queue.room()
    assert here.queue.has_room(make_batch(), here.ledger)


async def test_cuts_what_is_larger_than_servers_take() -> None:
    here = Desk(Scripted([0, Permanent("no")]), steady())
    here.queue.offer(make_batch(10, groups=300, name="x" * 4000), here.ledger)
    await here.settled()
    sizes = [batch.size for _, batch in here.exporter.seen]
    assert max(sizes) < 512 << 10
    assert len(sizes) == 25
    assert here.entered == 3000
    assert here.ledger.dropped["permanent"] == here.exporter.seen[1][1].span_count


async def test_a_trace_larger_than_a_request_is_cut_by_spans() -> None:
    here = Desk(Scripted(), steady())
    batch = make_batch(1000, name="x" * 5000)
    here.queue.offer(batch, here.ledger)
    await here.settled()
    assert all(sent.size < 512 << 10 for _, sent in here.exporter.seen)
    assert b"".join(group.spans for _, sent in here.exporter.seen for group in sent.groups) == batch.groups[0].spans
    assert here.ledger == Ledger(delivered=1000)


async def test_a_span_that_no_request_can_carry_is_dropped_alone() -> None:
    here = Desk(Scripted(), steady())
    small, large = make_batch(1), make_batch(1, name="x" * (64 << 20))
    here.queue.offer(Batch([*small.groups, *large.groups, *small.groups], 0), here.ledger)
    await here.settled()
    assert (here.ledger.delivered, here.ledger.dropped) == (2, {"too_large": 1})


def verdict() -> Verdict:
    return Verdict(bytes(15) + b"\x01", "dropped", "", "no policy said yes", 2, 1, 3)


async def test_verdicts_reach_only_exporters_that_want_them() -> None:
    for wanted in (True, False):
        exporter = Scripted()
        exporter.wants_verdicts = wanted
        here = Desk(exporter)
        here.queue.offer(Batch([], 0, [verdict()]), here.ledger)
        await here.queue.drain(1)
        assert [batch.verdicts for _, batch in exporter.seen] == ([[verdict()]] if wanted else [])
        assert here.ledger == Ledger()


def lost_decisions(here: Any) -> dict[str, float]:
    """How many, by reason."""
    shown = here.metrics.snapshot()["podtrail_dropped_decisions_total"]
    return {labels.removeprefix("exporter=otlp,reason="): count for labels, count in shown.items()}


@pytest.mark.parametrize("spans", [0, 1])
async def test_decisions_that_are_lost_are_counted_by_reason_and_told_of(caplog: Any, spans: int) -> None:
    batch = replace(make_batch(1, groups=spans), verdicts=[verdict(), verdict()])

    exporter = Scripted([Permanent("no"), Gate()])
    exporter.wants_verdicts = True
    here = Desk(exporter, steady(queue={"sizer": "bytes", "queue_size": 1}, timeout="0s"))
    here.queue.offer(batch, here.ledger)
    await here.queue.room()
    assert lost_decisions(here) == {"permanent": 2}
    here.queue.offer(batch, here.ledger)
    here.queue.offer(batch, here.ledger)
    assert lost_decisions(here) == {"permanent": 2, "queue_full": 2}
    await here.queue.drain(0)
    here.queue.offer(batch, here.ledger)
    assert lost_decisions(here) == {"permanent": 2, "queue_full": 2, "shutdown": 4}
    lost = "1 spans and 2 decisions" if spans else "2 decisions"
    assert f"dropped {lost} (permanent): no" in caplog.text
    assert f"the queue is full: dropped {lost}, since" in caplog.text
    assert f"dropped {lost} (shutdown): not delivered" in caplog.text


async def test_decisions_of_exporters_that_want_none_are_not_lost() -> None:
    here = Desk(Scripted([Gate()]))
    here.queue.offer(replace(make_batch(1), verdicts=[verdict()]), here.ledger)
    await here.queue.drain(0)
    assert (here.ledger.dropped, lost_decisions(here)) == ({"shutdown": 1}, {})


async def test_draining_ends_waits_and_delivers_what_is_left() -> None:
    here = Desk(Scripted([Retryable("down", after=300)] * 3), steady())
    here.queue.offer(make_batch(2), here.ledger)
    await asyncio.sleep(5)
    await here.queue.drain(10)
    assert here.exporter.times == [0.05, 5, 6, 7]
    assert here.ledger == Ledger(delivered=2)


async def test_what_is_not_delivered_in_time_is_counted_and_nothing_stays() -> None:
    gate = Gate()
    here = Desk(Scripted([gate] * 20), steady(queue={"num_consumers": 2}))
    for _ in range(4):
        here.queue.offer(make_batch(5000), here.ledger)
    await here.queue.drain(3)
    assert asyncio.get_running_loop().time() == pytest.approx(3)
    assert here.ledger.dropped == {"shutdown": 20_000}
    assert here.queue.held() == 0
    here.queue.offer(make_batch(1), here.ledger)
    assert here.ledger.dropped == {"shutdown": 20_001}
    assert len(asyncio.all_tasks()) == 1


async def slowly(_: Any) -> int:
    """An answer that takes two seconds."""
    await asyncio.sleep(2)
    return 0


async def test_who_drains_patiently_waits_for_a_slow_backend_that_gets_on() -> None:
    here = Desk(Scripted([slowly] * 20), steady(queue={"num_consumers": 1}))
    for _ in range(4):
        here.queue.offer(make_batch(5000), here.ledger)
    await here.queue.drain(3, patient=True)
    assert asyncio.get_running_loop().time() == pytest.approx(8)
    assert here.ledger == Ledger(delivered=20_000)


async def test_who_drains_patiently_gives_up_on_a_backend_that_takes_nothing() -> None:
    here = Desk(Scripted([0, Gate()]), steady(queue={"num_consumers": 1}))
    for _ in range(2):
        here.queue.offer(make_batch(5000), here.ledger)
    await here.queue.drain(3, patient=True)
    assert asyncio.get_running_loop().time() == pytest.approx(6)
    assert here.ledger == Ledger(delivered=5000, dropped=Counter(shutdown=5000))


async def test_leaving_a_queue_twice_is_leaving_it_once() -> None:
    here = Desk(Scripted(), steady())
    async with here.queue:
        here.queue.offer(make_batch(), here.ledger)
        await here.queue.drain(1)
    await here.queue.drain(1)
    assert here.ledger == Ledger(delivered=1)


async def test_a_server_that_rejects_more_than_it_was_sent_does_not_spoil_the_books() -> None:
    here = Desk(Scripted([99]), steady())
    here.queue.offer(make_batch(4), here.ledger)
    await here.settled()
    assert here.ledger == Ledger(rejected=4)
