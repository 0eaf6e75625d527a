"""Late spans follow the decision on their trace, wherever it is remembered: each is booked, and its age counted."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from podtrail.otlp import Batch, Group

Make = Callable[..., Any]
SECOND = 10**9
START = 1_790_000_000 * SECOND
CACHES = {"decision_cache": {"sampled_cache_size": 9, "non_sampled_cache_size": 9}}
COMPACT = {"decision_memory": {"kept": 9, "not_kept": 9}}


def _three(trace: int) -> Group:
    """Three spans that came together; nobody reads them."""
    return Group(b"r", b"s", trace.to_bytes(16, "big"), b"abc", 3)


def _send(made: Any, at: float, *groups: Group) -> Sequence[Group]:
    """Hand groups over at a time; return what leaves."""
    made.pass_time(at)
    now = START + round(at * SECOND)
    taken = made.under_test.add(Batch(groups, now), now)
    return [group for batch in taken.out for group in batch.groups]


@pytest.fixture
def deciding(sampler: Make, policy: Make) -> Make:
    """Return what makes a sampler that keeps traces of 4 spans and more, and drops those of 7 and more."""

    def make(**about: object) -> Any:
        dropped = {"name": "many", "type": "span_count", "span_count": {"min_spans": 7}}
        drop = {"name": "drop", "type": "drop", "drop": {"drop_sub_policy": [dropped]}}
        return sampler(drop, policy("span_count", min_spans=4), **about)

    return make


@pytest.mark.parametrize("about", [{}, CACHES, COMPACT], ids=["in memory", "caches", "compact"])
@pytest.mark.parametrize(
    ("groups", "follows"), [(1, "sampled_out"), (2, "delivered"), (3, "sampled_out")], ids=["no", "yes", "drop"]
)
def test_every_late_span_is_booked_with_its_trace(
    deciding: Make, about: dict[str, Any], groups: int, follows: str
) -> None:
    made = deciding(**about)
    _send(made, 0, *(_three(1) for _ in range(groups)))
    made.pass_time(2)
    before = made.context.ledger.sampled_out
    left = [*_send(made, 4, _three(1), _three(1)), *_send(made, 5, _three(1))]

    out = made.context.ledger.sampled_out - before
    assert (sum(group.span_count for group in left), out) == ((9, 0) if follows == "delivered" else (0, 9))
    assert len(made.verdicts) == 1
    assert made.under_test.held() == 0


@pytest.mark.parametrize("about", [CACHES, COMPACT], ids=["caches", "compact"])
@pytest.mark.parametrize(("groups", "label"), [(1, "false"), (2, "true"), (3, "false")], ids=["no", "yes", "drop"])
def test_spans_that_follow_a_remembered_decision_are_counted_by_what_it_was(
    deciding: Make, about: dict[str, Any], groups: int, label: str
) -> None:
    made = deciding(**about)
    _send(made, 0, *(_three(1) for _ in range(groups)))
    _send(made, 4, _three(1), _three(1))
    assert made.counted("early_releases_from_cache_decision") == {f"sampled={label}": 6}


def test_the_age_of_late_spans_counts_once_for_a_message_and_a_trace(deciding: Make) -> None:
    made = deciding()
    _send(made, 0, _three(1), _three(2))
    other = _three(1)._replace(resource=b"another")
    _send(made, 5.5, _three(1), _three(1), _three(2), other, other)

    assert made.counted("sampling_late_span_age_count") == {"": 3}
    assert made.counted("sampling_late_span_age_sum") == {"": 9}, "decided after 2 s: 3 whole seconds ago, each"


def test_a_trace_that_leaves_memory_tells_how_long_ago_it_came(sampler: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"), num_traces=2)
    _send(made, 0, _three(1))
    _send(made, 1.5, _three(2))
    assert made.counted("sampling_trace_removal_age_count") == {}

    _send(made, 7, _three(3))
    _send(made, 8.4, _three(4))
    assert made.counted("sampling_trace_removal_age_count") == {"": 2}
    assert made.counted("sampling_trace_removal_age_sum") == {"": 7 + 6}


def test_a_trace_that_a_cache_remembers_leaves_memory_when_it_is_decided(sampler: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"), **CACHES)
    _send(made, 0, _three(1))
    made.pass_time(3)
    assert made.counted("sampling_trace_removal_age_sum") == {"": 2}
    assert made.counted("sampling_traces_on_memory") == {"": 0}
