"""What has room in the sending queue, and what those who wait outside are told: full, idle, or done."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from podtrail.component import Ledger, Permanent
from podtrail.otlp import Batch, Verdict
from podtrail.pipeline.sending.pending import PendingBatches
from tests.pipeline.sending.conftest import Desk, Scripted, make_batch, steady

MOST_SPANS, MOST_BYTES = 8192, 512 << 10


async def in_a_second(_: Any) -> int:
    await asyncio.sleep(1)
    return 0


async def refused_in_a_second(_: Any) -> int:
    await asyncio.sleep(1)
    raise Permanent("no")


async def never(_: Any) -> int:
    await asyncio.Event().wait()
    return 0


def decided(batch: Batch) -> Batch:
    """The batch with the verdict on another trace of its size."""
    groups = list(batch.groups)
    return replace(batch, verdicts=[Verdict(bytes(15) + b"\x01", "dropped", "", "", 2, 1, 3, groups=groups)])


async def test_what_fits_exactly_has_room() -> None:
    here = Desk(Scripted([in_a_second]), steady(queue={"sizer": "items", "queue_size": 10}))
    assert here.queue.has_room(make_batch(11), here.ledger)
    here.queue.offer(make_batch(6), here.ledger)
    assert here.queue.has_room(make_batch(4), here.ledger)
    assert not here.queue.full
    assert not here.queue.has_room(make_batch(5), here.ledger)
    assert here.queue.has_room(make_batch(4), here.ledger)
    assert here.queue.full
    await here.settled()
    assert not here.queue.full


async def test_a_request_that_joins_another_takes_no_room() -> None:
    here = Desk(Scripted(), steady(queue={"sizer": "requests", "queue_size": 1}))
    here.queue.offer(make_batch(1), here.ledger)
    assert here.queue.has_room(make_batch(1), here.ledger)
    assert not here.queue.has_room(make_batch(1), Ledger())
    here.queue.offer(make_batch(1), here.ledger)
    await here.settled()
    assert here.ledger == Ledger(delivered=2)


async def test_nothing_is_turned_away_that_is_not_to_be_sent() -> None:
    here = Desk(Scripted([never]), steady(queue={"sizer": "items", "queue_size": 1}))
    here.queue.offer(make_batch(1), here.ledger)
    nothing = replace(decided(make_batch(1)), groups=[])
    assert here.queue.has_room(nothing, here.ledger)
    assert not here.queue.has_room(make_batch(1), here.ledger)
    await here.queue.drain(0)
    assert here.queue.has_room(make_batch(1), here.ledger)


@pytest.mark.parametrize("wanted", [False, True])
async def test_spans_in_decisions_take_room_where_they_are_wanted(wanted: bool) -> None:
    exporter = Scripted()
    exporter.wants_verdicts = wanted
    plain, batch = make_batch(100), decided(make_batch(100))
    here = Desk(exporter, steady(queue={"sizer": "bytes", "queue_size": 2 * plain.size}))
    here.queue.offer(batch, here.ledger)
    used = here.metrics.snapshot()["otelcol_exporter_queue_size"]["exporter=otlp"]
    assert (used >= 2 * len(plain.groups[0].spans)) if wanted else (used == plain.size)
    assert here.queue.has_room(batch, here.ledger) is not wanted
    await here.settled()


def test_batches_join_as_long_as_they_make_one_request() -> None:
    ledger = Ledger()
    pending = PendingBatches(ledger, 0, MOST_SPANS - 5, 0, MOST_BYTES - 50, ripe_at=0)
    assert pending.takes(ledger, 5, 50)
    assert not pending.takes(ledger, 6, 50)
    assert not pending.takes(ledger, 5, 51)
    assert not pending.takes(Ledger(), 5, 50)


async def test_bytes_fill_a_request_as_spans_do() -> None:
    here = Desk(Scripted(), steady())
    for _ in range(4):
        here.queue.offer(make_batch(1, name="x" * 200_000), here.ledger)
    await asyncio.sleep(0.01)
    assert [batch.span_count for _, batch in here.exporter.seen] == [2]
    await asyncio.sleep(0.1)
    assert here.exporter.times == [0, 0.05]


async def test_what_waits_for_more_leaves_in_time_behind_a_slow_request() -> None:
    here = Desk(Scripted([in_a_second]), steady(queue={"num_consumers": 1}))
    for at in (0, 0.1, 1.03):
        await asyncio.sleep(at - asyncio.get_running_loop().time())
        here.queue.offer(make_batch(5000), here.ledger)
    await asyncio.sleep(1)
    assert here.exporter.times == [0.05, 1.05, 1.08]


async def test_what_waits_for_more_leaves_at_once_when_something_is_refused() -> None:
    here = Desk(Scripted(), steady())
    here.queue.offer(make_batch(1), here.ledger)
    here.queue.refuse(3)
    await asyncio.sleep(0.01)
    assert here.exporter.times == [0]


async def test_idle_is_the_time_since_something_was_delivered_or_refused_for_good() -> None:
    here = Desk(Scripted([in_a_second, refused_in_a_second, never]), steady(queue={"num_consumers": 1}, timeout="0s"))
    await asyncio.sleep(5)
    assert here.queue.idle == 0
    here.queue.offer(make_batch(5000), here.ledger)
    await asyncio.sleep(0.01)
    for _ in range(2):
        here.queue.offer(make_batch(5000), here.ledger)
    await asyncio.sleep(0.5)
    assert here.queue.idle == pytest.approx(0.51)
    await asyncio.sleep(1)
    assert here.queue.idle == pytest.approx(0.5)
    await asyncio.sleep(1)
    assert here.queue.idle == pytest.approx(0.5)
    assert (here.ledger.delivered, here.ledger.dropped) == (5000, {"permanent": 5000})
    await here.queue.drain(0)
    assert here.queue.idle == 0


async def test_who_leaves_a_queue_leaves_nothing_in_it_and_is_told_once(caplog: Any) -> None:
    here = Desk(Scripted(), steady())
    async with here.queue as queue:
        assert queue is here.queue
        queue.offer(make_batch(3), here.ledger)
    assert here.ledger.dropped == {"shutdown": 3}
    await here.queue.drain(0)
    assert caplog.text.count("(shutdown)") == 1


async def test_the_metrics_tell_what_was_taken_from_what_was_rejected() -> None:
    here = Desk(Scripted([2]), steady())
    shown = here.metrics.snapshot()
    assert shown["otelcol_exporter_sent_spans"] == shown["otelcol_exporter_send_failed_spans"]
    here.queue.offer(make_batch(5), here.ledger)
    await here.settled()
    shown = here.metrics.snapshot()
    assert shown["otelcol_exporter_sent_spans"] == {"exporter=otlp": 3}
    assert shown["otelcol_exporter_send_failed_spans"] == {"exporter=otlp": 2}
