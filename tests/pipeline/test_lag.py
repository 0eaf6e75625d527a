"""Processors are told how late their pipeline is, and can measure what their work takes."""

from collections.abc import Sequence

from podtrail.component import Context, Ledger
from podtrail.otlp import Batch
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.driver import Lag
from podtrail.pipeline.host import Host
from tests.pipeline.told import Told

SECOND = 1_000_000_000


class Asking:
    """Has one deadline, and asks how late it is served."""

    def __init__(self, lag: Lag, due: int) -> None:
        self.lag = lag
        self.due: int | None = due
        self.answers: list[int] = []

    def add(self, batch: Batch, now: int) -> None:
        raise NotImplementedError

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        self.answers.append(self.lag())
        self.due = None
        return [Batch((), now)]

    def deadline(self) -> int | None:
        return self.due

    def held(self) -> int:
        return 0


def test_the_lag_is_what_has_passed_since_the_deadline_that_is_served() -> None:
    clock = Told()
    lag = Lag(clock)
    asking = Asking(lag, 5 * SECOND)
    chain = lag.chain = ProcessorChain([asking], Ledger())  # type: ignore[list-item]
    clock.time = 7 * SECOND
    assert lag() == 0
    assert not chain.advance(clock.time, 10)
    assert asking.answers == [2 * SECOND]
    assert lag() == 0


def test_where_no_time_passes_there_is_no_lag() -> None:
    assert Lag(Told())() == 0
    for context in (Context("batch"), Host().context("batch")):
        assert (context.lag(), context.stopwatch()) == (0, 0)


def test_the_house_hands_out_its_stopwatch_and_the_lag_of_the_pipeline() -> None:
    context = Host(stopwatch=lambda: 7).context("batch", "traces", lag=lambda: 5)
    assert (context.stopwatch(), context.lag()) == (7, 5)
