"""Who offers a batch can have itself called when the queue is finished with it, and keeps what was cut off."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from podtrail.component import Ledger, Metrics, Permanent, Retryable
from podtrail.otlp import Verdict, split
from podtrail.pipeline.sending import SendingQueue
from tests.pipeline.sending.conftest import Desk, Scripted, make_batch, steady


def numbers(into: list[int]) -> Callable[[int], Callable[[], None]]:
    """Callbacks that write their number into a list."""

    def numbered(number: int) -> Callable[[], None]:
        return lambda: into.append(number)

    return numbered


async def never(_: Any) -> int:
    await asyncio.Event().wait()
    return 0


@pytest.mark.parametrize("answer", [0, 2, Permanent("never"), Retryable("later")])
async def test_done_is_called_once_when_a_batch_has_come_to_its_end(answer: Any) -> None:
    done: list[int] = []
    here = Desk(Scripted([answer]), steady({"enabled": False}))
    for number in range(3):
        here.queue.offer(make_batch(2), here.ledger, done=numbers(done)(number))
    assert not done
    await here.settled()
    assert done == [0, 1, 2]
    await here.queue.drain(0)
    assert done == [0, 1, 2]
    assert here.entered == 6


async def test_done_is_called_at_once_for_what_is_not_wanted_and_for_what_does_not_fit() -> None:
    done: list[int] = []
    here = Desk(Scripted([never]), steady(queue={"sizer": "items", "queue_size": 1}))
    verdict = Verdict(bytes(15) + b"\x01", "dropped", "", "", 2, 1, 3)
    here.queue.offer(replace(make_batch(1), groups=[], verdicts=[verdict]), here.ledger, done=numbers(done)(1))
    here.queue.offer(make_batch(1), here.ledger, done=numbers(done)(2))
    here.queue.offer(make_batch(1), here.ledger, done=numbers(done)(3))
    assert done == [1, 3]
    assert here.ledger.dropped == {"queue_full": 1}
    await here.queue.drain(0)
    assert done == [1, 3]


async def test_a_batch_is_done_when_its_last_piece_is_and_not_before() -> None:
    done: list[int] = []
    here = Desk(Scripted([0, 0, never]), steady(timeout="0s"))
    big = make_batch(1, groups=3, name="x" * 400_000)
    here.queue.offer(big, here.ledger, done=numbers(done)(1))
    await asyncio.sleep(1)
    assert here.ledger.delivered == 2
    assert done == []

    await here.queue.drain(1)

    assert done == []
    assert here.queue.held() == 1
    assert here.ledger == Ledger(delivered=2)


async def test_what_a_shutdown_cuts_off_is_kept_in_order_and_is_no_loss(caplog: Any) -> None:
    done: list[int] = []
    here = Desk(Scripted([never] * 9), steady(queue={"num_consumers": 2}, timeout="0s"))
    await here.queue.__aenter__()
    kept, lost = Ledger(), Ledger()
    batches = [make_batch(5000, number=number) for number in range(6)]
    for batch in batches:
        here.queue.offer(batch, kept, done=numbers(done)(1))
        here.queue.offer(make_batch(7), lost)
    await here.queue.drain(1)
    late = make_batch(3)
    here.queue.offer(late, kept, done=numbers(done)(1))
    here.queue.offer(late, lost)

    assert done == []
    assert here.queue.held() == 30_003
    assert kept == Ledger()
    assert lost.dropped == {"shutdown": 45}

    log = logging.LoggerAdapter(logging.getLogger("podtrail.test"))
    successor = Scripted([])
    queue = steady(queue={"num_consumers": 1})
    async with SendingQueue(successor, "otlp", queue, Metrics(), log, predecessor=here.queue) as after:
        while after.held():
            await after.room()
    sent = [split(group.spans) for _, batch in successor.seen for group in batch.groups]
    given = [split(group.spans) for batch in [*batches, late] for group in batch.groups]
    assert list(chain.from_iterable(sent)) == list(chain.from_iterable(given))
    assert kept == Ledger(delivered=30_003)
    assert len(done) == 7
    assert "dropped 42 spans (shutdown)" in caplog.text


async def test_a_backend_that_takes_nothing_ends_the_waiting_for_what_is_kept_at_the_first_try() -> None:
    here = Desk(Scripted([Retryable("down")] * 99), steady({"max_elapsed_time": "0s"}, {"num_consumers": 2}))
    for number in range(6):
        here.queue.offer(make_batch(5000, number=number), here.ledger, done=lambda: None)
    await asyncio.sleep(100)
    before, began = len(here.exporter.seen), asyncio.get_running_loop().time()
    await here.queue.drain(10)
    assert asyncio.get_running_loop().time() - began < 0.1
    assert len(here.exporter.seen) - before <= 2
    assert here.queue.held() == 30_000
    assert here.ledger == Ledger()


async def test_what_nobody_keeps_beside_it_is_tried_for_as_long_as_there_is_time() -> None:
    here = Desk(Scripted([Retryable("down")] * 6), steady(queue={"num_consumers": 1}))
    kept = Ledger()
    here.queue.offer(make_batch(5000), kept, done=lambda: None)
    here.queue.offer(make_batch(7), here.ledger)
    await here.queue.drain(10)
    assert here.ledger == Ledger(delivered=7)
    assert kept == Ledger()
    assert here.queue.held() == 5000


async def test_who_is_in_no_hurry_tries_again_what_is_kept_too() -> None:
    done: list[int] = []
    here = Desk(Scripted([Retryable("down")] * 5), steady())
    here.queue.offer(make_batch(7), here.ledger, done=numbers(done)(1))
    await here.queue.drain(10, patient=True)
    assert (done, here.ledger) == ([1], Ledger(delivered=7))
