"""How long policies and decisions take is told where there is a clock, and never decides anything."""

from collections.abc import Callable
from typing import Any

from podtrail_processors.tail_sampling import FACTORY
from podtrail_processors.tail_sampling.judging.timing import DecisionTimer

from podtrail.component import Context, Metrics
from podtrail.otlp import Batch

MS = 1_000_000
SECOND = 1_000 * MS
START = 1_790_000_000 * SECOND

Make = Callable[..., Any]
PREFIX = "otelcol_processor_tail_sampling_"
TIMES = ("sampling_policy_execution_time_sum", "sampling_decision_timer_latency_count")


class Ticking:
    """A stopwatch on which every look takes a millisecond."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> int:
        self.looks += 1
        return self.looks * MS


def decided(
    span: Make, policies: list[dict[str, object]], per_second: int, stopwatch: Callable[[], int], seconds: int = 10
) -> Context:
    """Return the context of a sampler after some seconds of so many decisions each, one in ten with `a=x`."""
    context = Context(id="tail_sampling", stopwatch=stopwatch)
    made: Any = FACTORY.create(FACTORY.Config.model_validate({"policies": policies, "decision_wait": "1s"}), context)
    for second in range(seconds):
        now = START + second * SECOND
        numbers = range(second * per_second, (second + 1) * per_second)
        spans = [span(number + 1, attributes={} if number % 10 else {"a": "x"}) for number in numbers]
        made.add(Batch([one.group() for one in spans], now), now)
        while made.deadline() is not None and made.deadline() <= now + SECOND:
            made.expire(made.deadline(), 100)
    return context


def test_the_time_of_policies_is_reckoned_from_samples(span: Make, policy: Make) -> None:
    clock = Ticking()
    context = decided(span, [policy("always_sample"), policy("latency")], 64, clock)
    told = context.metrics.snapshot()[PREFIX + "sampling_policy_execution_time_sum"]
    assert told == {"policy=always_sample": 640 * 1000, "policy=latency": 640 * 1000}
    assert clock.looks < 200


def test_shadows_are_timed_as_well(span: Make, policy: Make) -> None:
    context = decided(span, [policy("always_sample"), policy("latency") | {"shadow": True}], 64, Ticking(), seconds=1)
    told = context.metrics.snapshot()[PREFIX + "sampling_policy_execution_time_sum"]
    assert told == {"policy=always_sample": 64 * 1000, "policy=latency": 64 * 1000}


def test_policies_that_were_not_asked_took_no_time(span: Make, policy: Make) -> None:
    context = decided(
        span, [policy("latency"), policy("string_attribute", key="a", values=["x"])], 640, Ticking(), seconds=1
    )
    told = context.metrics.snapshot()[PREFIX + "sampling_policy_execution_time_sum"]
    assert told == {"policy=latency": 640 * 1000, "policy=string_attribute": 64 * 1000}


def test_the_decisions_of_a_second_are_one_run(span: Make, policy: Make) -> None:
    context = decided(span, [policy("always_sample")], 10, Ticking())
    told = context.metrics.snapshot()
    assert told[PREFIX + "sampling_decision_timer_latency_count"] == {"": 9}
    assert told[PREFIX + "sampling_decision_timer_latency_sum"][""] >= 9


def test_what_a_second_took_is_told_in_whole_milliseconds() -> None:
    metrics = Metrics()
    looks = iter([10, 10 + MS - 1, 20, 20 + MS, 30, 30 + 2 * MS, 40, 50])
    timer = DecisionTimer(metrics.histogram("latency", "", (1.0, 2.0)), lambda: next(looks))
    for now in (SECOND, 2 * SECOND, 3 * SECOND - 1, 3 * SECOND):
        timer.end(timer.begin(), now)
    told = metrics.snapshot()
    assert (told["latency_count"], told["latency_sum"]) == ({"": 2}, {"": 3})


def test_in_a_replay_nothing_is_told(span: Make, policy: Make) -> None:
    told = decided(span, [policy("always_sample")], 64, lambda: 0).metrics.snapshot()
    assert not any(told[PREFIX + name] for name in TIMES)
