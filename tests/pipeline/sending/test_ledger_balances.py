"""Whatever happens: every span that was offered ends exactly once, and is held until then."""

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podtrail.component import Ledger, Permanent, Retryable
from tests.pipeline.sending.conftest import Desk, Scripted, make_batch, run_virtually, steady
from tests.sizes import large

ANSWERS = st.one_of(
    st.just(0),
    st.integers(0, 5),
    st.builds(Retryable, st.just("later"), st.none() | st.floats(0, 50)),
    st.builds(Permanent, st.just("never")),
    st.builds(RuntimeError, st.just("a bug")),
    st.just("hang"),
)
STEPS = st.one_of(
    st.tuples(st.just("offer"), st.integers(0, 1), st.sampled_from([1, 3, 4000])),
    st.tuples(st.just("wait"), st.just(0), st.sampled_from([0, 0.05, 1, 60])),
)
QUEUES = st.fixed_dictionaries(
    {
        "num_consumers": st.integers(1, 3),
        "sizer": st.sampled_from(["requests", "items", "bytes"]),
        "queue_size": st.sampled_from([1, 3, 9000, 500_000]),
        "enabled": st.booleans(),
        "block_on_overflow": st.booleans(),
    }
)


@settings(deadline=None, max_examples=large(60, 1000), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    answers=st.lists(ANSWERS, max_size=12),
    steps=st.lists(STEPS, max_size=15),
    queue=QUEUES,
    retry=st.booleans(),
    limit=st.sampled_from(["0s", "30s", "2m"]),
    grace=st.sampled_from([0, 1, 100]),
)
def test_every_span_ends_once(answers: Any, steps: Any, queue: Any, retry: bool, limit: str, grace: float) -> None:
    async def hang(_: Any) -> int:
        await asyncio.Event().wait()
        return 0

    async def main() -> None:
        script = [hang if answer == "hang" else answer for answer in answers]
        here = Desk(Scripted(script), steady({"enabled": retry, "max_elapsed_time": limit}, queue))
        ledgers = [Ledger(), Ledger()]
        offered = [0, 0]

        def balance() -> None:
            ended = [a.delivered + a.rejected + a.dropped.total() for a in ledgers]
            assert sum(offered) == sum(ended) + here.queue.held()

        for step, which, amount in steps:
            if step == "offer":
                batch = make_batch(amount)
                if here.queue.patience is not None and not here.queue.has_room(batch, ledgers[which]):
                    await here.queue.room()
                offered[which] += amount
                here.queue.offer(batch, ledgers[which])
            else:
                await asyncio.sleep(amount)
            balance()
        await here.queue.drain(grace)
        assert here.queue.held() == 0
        balance()
        for ledger, spans in zip(ledgers, offered, strict=True):
            assert ledger.delivered + ledger.rejected + ledger.dropped.total() == spans

    run_virtually(main())
