"""`record_reason`: kept traces say on their root which policy kept them, and why."""

from collections.abc import Callable, Mapping
from typing import Any

from podtrail.otlp import SpanView, Status, Value, split

Make = Callable[..., Any]


def attributes(made: Any) -> Mapping[int, Mapping[str, Value]]:
    """Return the attributes of all spans that came out, by span id."""
    made.stop(10)
    spans = [SpanView(raw) for batch in made.out for group in batch.groups for raw in split(group.spans)]
    return {int.from_bytes(span.span_id, "big"): span.attributes for span in spans}


def test_the_root_tells_policy_reason_and_votes(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(
        policy("latency", threshold_ms=99), policy("status_code", status_codes=["ERROR"]), record_reason=True
    )
    made.send(0, span(1, 2, parent=1, name="inner", status=Status(2, "no room")), span(1, 1, attributes={"a": 1}))
    assert attributes(made) == {
        1: {
            "a": 1,
            "podtrail.sampling.policy": "status_code",
            "podtrail.sampling.reason": "span inner has status ERROR: no room",
            "podtrail.sampling.votes": "latency: not_sampled, status_code: sampled",
        },
        2: {},
    }


def test_without_a_root_the_first_span_tells(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"), record_reason=True)
    made.send(0, span(1, 2, parent=1), span(1, 3, parent=1))
    assert [bool(told) for told in attributes(made).values()] == [True, False]


def test_many_votes_are_left_out(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(*(policy("always_sample", f"policy number {n}") for n in range(20)), record_reason=True)
    made.send(0, span(1))
    (told,) = attributes(made).values()
    assert set(told) == {"podtrail.sampling.policy", "podtrail.sampling.reason"}


def test_long_reasons_are_cut(sampler: Make, span: Make, policy: Make) -> None:
    names = [f"{n}" * 200 for n in range(9)]
    made = sampler(policy("string_attribute", key="k", values=names), record_reason=True)
    made.send(0, *(span(1, n, name="n" * 500, attributes={"k": name}) for n, name in enumerate(names, 1)))
    reason = attributes(made)[1]["podtrail.sampling.reason"]
    assert isinstance(reason, str)
    assert len(reason) == 500


def test_late_spans_tell_nothing(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"), record_reason=True)
    made.send(0, span(1, 2, parent=1))
    made.send(5, span(1, 1))
    assert attributes(made)[1] == {}


def test_it_is_off_by_default(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"))
    made.send(0, span(1))
    assert attributes(made) == {1: {}}
