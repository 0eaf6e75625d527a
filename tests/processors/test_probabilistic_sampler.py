"""`probabilistic_sampler` decides span by span, and writes down with what probability."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.probabilistic_sampler import FACTORY, Config
from podtrail_processors.probability import (
    NEVER,
    probability_of,
    read_sampling_state,
    threshold_for,
    threshold_text,
)
from pydantic import ValidationError

from podtrail.component import Context
from podtrail.otlp import (
    Batch,
    Group,
    SpanView,
    Value,
    encode_span,
    frame,
    resource_header,
    scope_header,
    set_trace_state,
    split,
)
from podtrail.testing.contracts import Arrival, check_processor
from tests.sizes import large

HIGH, LOW = b"\xff" * 16, b"\x01" * 16
PRIORITY = "sampling.priority"


def group(trace_id: bytes, trace_state: str = "", **attributes: Value) -> Group:
    """Return a span as a group."""
    named = {PRIORITY if key == "priority" else key: value for key, value in attributes.items()}
    raw = encode_span(
        trace_id=trace_id, span_id=b"s" * 8, name="x", start=1, end=2, trace_state=trace_state, attributes=named
    )
    return Group(resource_header({}), scope_header("test"), trace_id, frame([raw]), 1)


def sampled(groups: Sequence[Group], **settings: Any) -> list[str]:
    """Return the trace states of what is kept."""
    context = Context(id="probabilistic_sampler")
    made = FACTORY.create(Config(**settings), context)
    out: Sequence[Batch] = made.add(Batch(groups, 1), 1).out
    left = [SpanView(raw).trace_state for batch in out for group in batch.groups for raw in split(group.spans)]
    assert context.ledger.sampled_out == len(groups) - len(left)
    return left


def test_equalizing_keeps_what_is_random_enough_and_says_so() -> None:
    about = {"mode": "equalizing", "sampling_percentage": 25}
    assert sampled([group(HIGH), group(LOW)], **about) == ["ot=th:c"]
    assert sampled([group(LOW, "vendor=x,ot=rv:c0000000000000")], **about) == ["ot=rv:c0000000000000;th:c,vendor=x"]
    assert sampled([group(HIGH, "ot=th:f")], **about) == ["ot=th:f"]


def test_proportional_takes_its_share_of_what_arrives() -> None:
    about = {"mode": "proportional", "sampling_percentage": 25}
    assert sampled([group(HIGH, "ot=th:8"), group(HIGH)], **about) == ["ot=th:e", "ot=th:c"]


def test_a_hash_is_written_as_the_randomness_that_it_is() -> None:
    (state,) = sampled([group(HIGH)], sampling_percentage=100)
    assert state.startswith("ot=rv:")
    assert state.endswith(";th:0")


@pytest.mark.parametrize("state", ["ot=th:8", "ot=rv:c0000000000000", "Not=valid"])
def test_hashing_does_not_mix_with_randomness_from_elsewhere(state: str) -> None:
    assert sampled([group(HIGH, state)], sampling_percentage=100) == []
    assert sampled([group(HIGH, state)], sampling_percentage=100, fail_closed=False) == [state]


def test_a_threshold_that_the_span_can_not_have_passed_is_no_information() -> None:
    about = {"mode": "equalizing", "sampling_percentage": 50}
    assert sampled([group(HIGH, "ot=rv:40000000000000;th:8")], **about) == []
    assert sampled([group(HIGH, "ot=rv:40000000000000;th:8")], fail_closed=False, **about) == [
        "ot=rv:40000000000000;th:0"
    ]


@pytest.mark.parametrize(
    ("priority", "kept"),
    [(1, True), (0.5, True), ("2", True), (0, False), (0.0, False), ("0", False), (-1, None), ("high", None)],
)
def test_a_priority_overrules_the_share(priority: Value, kept: bool | None) -> None:
    assert bool(sampled([group(LOW, priority=priority)])) is (kept is True)
    assert bool(sampled([group(LOW, priority=priority)], sampling_percentage=100)) is (kept is not False)


@pytest.mark.parametrize(
    "settings",
    [
        {"sampling_percentage": float("nan")},
        {"sampling_percentage": -1.0},
        {"sampling_percentage": 1e-20},
        {"sampling_percentage": 1e39},
        {"sampling_precision": 0},
        {"sampling_precision": 15},
        {"mode": "random"},
        {"hash_seed": -1},
    ],
)
def test_a_share_that_is_none_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Config.model_validate(settings)


@settings(max_examples=large(15, 100))
@given(st.lists(st.sampled_from([HIGH, LOW]), max_size=5), st.sampled_from(["hash_seed", "equalizing"]))
def test_keeps_the_contract_of_processors(traces: list[bytes], mode: str) -> None:
    config = Config.model_validate({"mode": mode, "sampling_percentage": 50})
    arrivals = [Arrival(at, Batch([group(trace)], at)) for at, trace in enumerate(traces, 1)]
    check_processor(lambda context: FACTORY.create(config, context), arrivals)


@given(st.floats(1e-6, 1), st.integers(1, 14))
def test_a_threshold_is_near_the_probability_it_stands_for(probability: float, precision: int) -> None:
    threshold = threshold_for(probability, precision)
    near = 16 ** (1 - precision) + 1e-12  # what a float can tell of it
    assert abs(probability_of(threshold) / probability - 1) <= near
    assert read_sampling_state(f"ot=th:{threshold_text(threshold)}").threshold == threshold


@given(st.integers(0, NEVER - 1), st.integers(0, NEVER - 1))
def test_a_threshold_is_never_lowered(before: int, after: int) -> None:
    state = read_sampling_state(f"ot=th:{threshold_text(before)}")
    assert state.update(after) is (after >= before)
    assert state.threshold == max(before, after)


@pytest.mark.parametrize(
    ("text", "sound", "written"),
    [
        ("", True, ""),
        (" vendor=x ,, ot=p:8;th:4 ", True, "ot=th:4;p:8,vendor=x"),
        ("ot=th:g,vendor=x", False, "vendor=x"),
        ("ot=rv:123", False, ""),
        ("ot=th:4;", False, ""),
        ("vendor", False, ""),
        (",".join(f"k{number}=v" for number in range(32)), False, ""),
    ],
)
def test_what_breaks_the_rules_says_nothing(text: str, sound: bool, written: str) -> None:
    state = read_sampling_state(text)
    assert (state.sound, state.text()) == (sound, written)


def test_a_trace_state_is_replaced_and_the_rest_stays() -> None:
    (raw,) = split(group(HIGH, "old=1", key="value").spans)
    changed = set_trace_state(raw, "new=2")
    view = SpanView(changed)
    assert (view.trace_state, view.name, dict(view.attributes)) == ("new=2", "x", {"key": "value"})
    assert changed[:28] == raw[:28]
    assert set_trace_state(changed, "old=1") == set_trace_state(raw, "old=1")


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({"sampling_percentage": 1e-46}, 0),  # nothing in single precision
        ({"mode": "equalizing", "sampling_percentage": 50, "sampling_precision": 4.9}, 50),
        ({"mode": "equalizing", "sampling_percentage": 50, "sampling_precision": -1}, 100),
    ],
)
def test_what_the_collector_accepts_is_accepted(settings: Mapping[str, Any], share: int) -> None:
    ids = [bytes(8) + bytes([0, at]) + bytes(6) for at in range(8, 256, 16)]
    kept = sum(len(sampled([group(trace_id)], **settings)) for trace_id in ids)
    assert kept == len(ids) * share // 100


def test_a_precision_below_zero_is_warned_of() -> None:
    (about,) = Config(mode="equalizing", sampling_percentage=50, sampling_precision=-1).warnings()
    assert about[0] == ("sampling_precision",)
