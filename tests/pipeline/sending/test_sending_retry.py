"""When a failed delivery is tried again, and when it is given up."""

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from podtrail.component import Ledger, Permanent, Retryable
from tests.pipeline.sending.conftest import Desk, Scripted, make_batch, run_virtually, steady


def down(times: int) -> list[Retryable]:
    return [Retryable("connection refused") for _ in range(times)]


async def test_waits_longer_from_try_to_try_up_to_the_longest_wait() -> None:
    retry = {"initial_interval": "1s", "multiplier": 2.0, "max_interval": "5s"}
    here = Desk(Scripted(down(5)), steady(retry))
    here.queue.offer(make_batch(), here.ledger)
    await here.settled()
    assert here.exporter.times == [0, 1, 3, 7, 12, 17]
    assert here.ledger.delivered == 1


async def test_has_the_collectors_defaults() -> None:
    here = Desk(Scripted(down(4)), steady())
    here.queue.offer(make_batch(), here.ledger)
    await here.settled()
    assert here.exporter.times == [0, 5, 12.5, 23.75, 40.625]


async def test_draws_each_wait_around_its_interval() -> None:
    here = Desk(Scripted(down(20)), steady({"randomization_factor": 0.5, "multiplier": 1.0, "initial_interval": "2s"}))
    here.queue.offer(make_batch(), here.ledger)
    await here.settled()
    waits = [later - earlier for earlier, later in zip(here.exporter.times, here.exporter.times[1:], strict=False)]
    assert len(set(waits)) > 10
    assert all(1 <= wait <= 3 for wait in waits)


async def test_waits_as_long_as_the_other_side_asks() -> None:
    here = Desk(Scripted([Retryable("slow down", after=42.0)]), steady())
    here.queue.offer(make_batch(), here.ledger)
    await here.settled()
    assert here.exporter.times == [0, 42]


async def test_gives_up_when_the_next_try_would_come_too_late() -> None:
    retry = {"initial_interval": "2s", "multiplier": 1.0, "max_interval": "2s", "max_elapsed_time": "5s"}
    here = Desk(Scripted(down(99)), steady(retry))
    here.queue.offer(make_batch(7), here.ledger)
    await here.settled()
    assert here.exporter.times == [0, 2, 4]
    assert here.ledger.dropped == {"retries_exhausted": 7}
    assert here.metrics.snapshot()["otelcol_exporter_send_failed_spans"] == {"exporter=otlp": 7}


async def test_never_gives_up_without_a_limit() -> None:
    here = Desk(Scripted(down(3000)), steady({"max_elapsed_time": "0s"}))
    here.queue.offer(make_batch(), here.ledger)
    await here.settled()
    assert here.ledger.delivered == 1


async def test_without_settings_tries_for_ever_ever_more_rarely() -> None:
    here = Desk(Scripted([Retryable("down")] * 400))
    assert here.queue.patience == 0
    here.queue.offer(make_batch(), here.ledger)
    await asyncio.sleep(0.01)
    await here.settled()
    assert here.ledger == Ledger(delivered=1)
    assert here.exporter.times[0] == 0
    waits = [later - earlier for earlier, later in pairwise(here.exporter.times)]
    for wait, interval in zip(waits, [0.5, 1, 2, 4, *[5] * 396], strict=True):
        assert 0.749 * interval <= wait <= 1.251 * interval
    assert max(waits) > 6 > 4 > min(waits[4:])


async def test_tries_once_when_retrying_is_off() -> None:
    here = Desk(Scripted(down(1)), steady({"enabled": False}))
    here.queue.offer(make_batch(), here.ledger)
    await here.settled()
    assert here.exporter.times == [0]
    assert here.ledger.dropped == {"retries_exhausted": 1}


async def test_never_repeats_what_was_refused_for_good() -> None:
    here = Desk(Scripted([Permanent("bad data")]), steady())
    here.queue.offer(make_batch(3), here.ledger)
    await here.settled()
    assert here.exporter.times == [0]
    assert here.ledger.dropped == {"permanent": 3}


async def test_cuts_off_a_try_that_takes_too_long_and_tries_again() -> None:
    async def hang(_: Any) -> int:
        await asyncio.Event().wait()
        return 0

    here = Desk(Scripted([hang]), steady({"initial_interval": "1s"}, timeout="3s"))
    here.queue.offer(make_batch(), here.ledger)
    await here.settled()
    assert here.exporter.times == [0, 4]
    assert here.ledger.delivered == 1


async def test_an_exporters_own_failure_costs_one_batch_and_shows_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here = Desk(Scripted([ZeroDivisionError("oh")]), steady())
    here.queue.offer(make_batch(2), here.ledger)
    await here.settled()
    here.queue.offer(make_batch(5), here.ledger)
    await here.settled()
    assert (here.ledger.delivered, here.ledger.dropped) == (5, {"permanent": 2})
    assert "ZeroDivisionError: oh" in caplog.text


def test_an_outage_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        here = Desk(Scripted(down(9)), steady())
        here.queue.offer(make_batch(), here.ledger)
        await here.settled()

    caplog.set_level("INFO")
    run_virtually(main())
    assert [record.message for record in caplog.records if record.name == "podtrail.test"] == [
        "cannot deliver, trying again in 5.0 s: connection refused",
        "delivers again",
    ]


async def test_what_was_delivered_in_part_is_not_sent_again() -> None:
    whole, rest, last = make_batch(2, groups=5), make_batch(2, groups=3), make_batch(2)
    script = [Retryable("two of five are down", rest=rest, rejected=1), Retryable("down"), Retryable("", rest=last)]
    here = Desk(Scripted(script), steady())
    here.queue.offer(whole, here.ledger)
    await here.settled()
    assert [batch.span_count for _, batch in here.exporter.seen] == [10, 6, 6, 2]
    assert here.ledger == Ledger(delivered=9, rejected=1)


@pytest.mark.parametrize(
    ("end", "reason"), [(Retryable("down"), "retries_exhausted"), (Permanent("no"), "permanent")], ids=str
)
async def test_of_what_is_given_up_the_part_that_was_delivered_is_not_lost(end: Exception, reason: str) -> None:
    script = [Retryable("down", rest=make_batch(2, groups=3), rejected=1), end]
    retry = {"initial_interval": "1s", "max_interval": "1s", "max_elapsed_time": "1500ms"}
    here = Desk(Scripted(script), steady(retry))
    here.queue.offer(make_batch(2, groups=5), here.ledger)
    await here.settled()
    assert here.ledger == Ledger(delivered=3, rejected=1, dropped=Counter({reason: 6}))


async def test_a_part_that_is_not_to_be_repeated_is_given_up_at_once() -> None:
    here = Desk(Scripted([Retryable("down", rest=make_batch(2))]), steady({"enabled": False}))
    here.queue.offer(make_batch(2, groups=5), here.ledger)
    await here.settled()
    assert here.ledger == Ledger(delivered=8, dropped=Counter({"retries_exhausted": 2}))
