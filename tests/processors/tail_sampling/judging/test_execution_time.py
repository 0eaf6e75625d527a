"""How long policies and decisions take is told where there is a clock, and never decides anything."""

from collections.abc import Callable
from typing import Any

from podtrail_processors.tail_sampling import FACTORY

from podtrail.component import Context
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


def decided(span: Make, policies: list[dict[str, object]], per_second: int, stopwatch: Callable[[], int]) -> Context:
    """Return the context of a sampler after ten seconds of so many decisions each."""
    context = Context(id="tail_sampling", stopwatch=stopwatch)
    made: Any = FACTORY.create(FACTORY.Config.model_validate({"policies": policies, "decision_wait": "1s"}), context)
    for second in range(10):
        now = START + second * SECOND
        made.add(Batch([span(second * per_second + n + 1).group() for n in range(per_second)], now), now)
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
    context = decided(span, [policy("always_sample"), policy("latency") | {"shadow": True}], 64, Ticking())
    told = context.metrics.snapshot()[PREFIX + "sampling_policy_execution_time_sum"]
    assert set(told) == {"policy=always_sample", "policy=latency"}


def test_the_decisions_of_a_second_are_one_run(span: Make, policy: Make) -> None:
    context = decided(span, [policy("always_sample")], 10, Ticking())
    told = context.metrics.snapshot()
    assert told[PREFIX + "sampling_decision_timer_latency_count"] == {"": 9}
    assert told[PREFIX + "sampling_decision_timer_latency_sum"][""] >= 9


def test_in_a_replay_nothing_is_told(span: Make, policy: Make) -> None:
    told = decided(span, [policy("always_sample")], 64, lambda: 0).metrics.snapshot()
    assert not any(told[PREFIX + name] for name in TIMES)
