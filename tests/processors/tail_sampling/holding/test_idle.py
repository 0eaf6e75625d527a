"""`decision_idle`: a trace that has gone quiet is decided; the earliest of the three times counts."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.tail_sampling import FACTORY

from podtrail.component import Context
from podtrail.otlp import Batch, Group, resource_header, scope_header
from podtrail.testing.contracts import Arrival, check_processor
from tests.sizes import large

Make = Callable[..., Any]
SECOND = 1_000_000_000


@pytest.fixture
def idle(sampler: Make, policy: Make) -> Make:
    def make(**about: object) -> Any:
        return sampler(policy("always_sample"), **{"decision_wait": "30s", "decision_idle": "2s"} | about)

    return make


def _decided(made: Any) -> dict[int, float]:
    start = 1_790_000_000 * SECOND
    return {int.from_bytes(v.trace_id, "big"): (v.decided_at - start) / SECOND for v in made.verdicts}


def test_a_trace_is_decided_when_nothing_of_it_came_for_so_long(idle: Make, span: Make) -> None:
    made = idle()
    made.send(0, span(1, 1), span(2, 1))
    made.send(1.5, span(1, 2))
    made.send(3, span(1, 3))
    made.pass_time(29)
    assert _decided(made) == {2: 2, 1: 5}
    assert made.kept == [(2, 1), (1, 1), (1, 2), (1, 3)]


def test_a_trace_that_never_rests_is_decided_when_its_wait_is_over(idle: Make, span: Make) -> None:
    made = idle()
    for second in range(40):
        made.send(second, span(1, second + 1))
    assert _decided(made) == {1: 30}


def test_a_root_brings_the_decision_nearer_than_idleness(idle: Make, span: Make) -> None:
    made = idle(decision_wait_after_root_received="1s")
    made.send(0, span(1, 1, parent=7), span(2, 1, parent=7))
    made.send(0.5, span(1, 2), span(2, 2, parent=7))
    made.pass_time(29)
    assert _decided(made) == {1: 1.5, 2: 2.5}


def test_the_next_deadline_is_that_of_the_trace_that_rests_longest(idle: Make, span: Make) -> None:
    made = idle()
    made.send(0, span(1, 1))
    made.send(1, span(2, 1))
    made.send(1.9, span(1, 2))
    assert made.under_test.deadline() == (1_790_000_000 + 3) * SECOND


def test_idleness_that_is_longer_than_the_wait_changes_nothing(idle: Make, span: Make) -> None:
    made = idle(decision_wait="3s", decision_idle="10s")
    made.send(0, span(1, 1))
    made.send(2, span(1, 2), span(2, 1))
    made.pass_time(29)
    assert _decided(made) == {1: 3, 2: 5}


def test_a_reload_that_switches_it_off_has_traces_wait_for_their_time(idle: Make, span: Make) -> None:
    before, after = idle(), idle(decision_idle="0s")
    before.send(0, span(1, 1))
    after.under_test.take_over(before.under_test, 1_790_000_000 * SECOND)
    after.pass_time(29)
    assert not after.verdicts
    after.pass_time(30)
    assert _decided(after) == {1: 30}


_CONFIG = FACTORY.Config.model_validate(
    {
        "decision_wait": "5s",
        "decision_wait_after_root_received": "1s",
        "decision_idle": "2s",
        "policies": [{"name": "all", "type": "always_sample"}],
    }
)


def _create(context: Context) -> Any:
    return FACTORY.create(_CONFIG, context)


def _group(number: int, serial: int) -> Group:
    made = b"\x0a\x10" + number.to_bytes(16, "big") + b"\x12\x08" + serial.to_bytes(8, "big")
    spans = b"\x12" + bytes([len(made)]) + made
    return Group(resource_header({}), scope_header("s"), number.to_bytes(16, "big"), spans, 1)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4)), max_size=25))
@settings(max_examples=large(15, 100))
def test_idle_deadlines_keep_the_law_of_deadlines(steps: list[tuple[int, int]]) -> None:
    now, arriving = 1_790_000_000 * SECOND, []
    for serial, (tenths, number) in enumerate(steps, 1):
        now += tenths * SECOND // 10
        arriving.append(Arrival(now, Batch([_group(number, serial)], now)))
    check_processor(_create, arriving)
