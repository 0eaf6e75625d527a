"""`dry_run`: everything passes; verdicts and marks say what would have become of it."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from podtrail_processors.tail_sampling import FACTORY

from podtrail.otlp import SpanView, Status, Value, split, write_request
from podtrail.otlp.decisions import decision_line
from podtrail.testing import replay
from podtrail.testing.attempts import START, no_room

Make = Callable[..., Any]
ERROR = Status(2, "")
SECOND = 1_000_000_000


@pytest.fixture
def dry(sampler: Make, policy: Make) -> Make:
    def make(*policies: object, **about: object) -> Any:
        policies = policies or (policy("status_code", status_codes=["ERROR"]),)
        return sampler(*policies, **{"dry_run": True} | about)

    return make


def _marks(made: Any) -> Mapping[tuple[int, int], Mapping[str, Value]]:
    spans = [SpanView(raw) for batch in made.out for group in batch.groups for raw in split(group.spans)]
    return {
        (int.from_bytes(span.trace_id, "big"), int.from_bytes(span.span_id, "big")): {
            key.removeprefix("podtrail.sampling."): value
            for key, value in span.attributes.items()
            if key.startswith("podtrail.sampling.")
        }
        for span in spans
    }


def test_what_would_not_be_kept_passes_with_a_mark_on_its_root(dry: Make, span: Make) -> None:
    made = dry()
    made.send(0, span(1, 1, parent=2), span(1, 2, attributes={"a": 1}), span(2, 1, status=ERROR))
    made.stop(5)
    assert _marks(made) == {
        (1, 1): {},
        (1, 2): {"decision": "not_sampled", "reason": "no policy said yes"},
        (2, 1): {},
    }
    assert made.decisions == {1: "not_sampled", 2: "sampled"}
    assert made.context.ledger.sampled_out == 0


def test_without_a_root_the_first_span_is_marked(dry: Make, span: Make, policy: Make) -> None:
    made = dry({"name": "mine", "type": "drop", "drop": {"drop_sub_policy": [policy("always_sample")]}})
    made.send(0, span(1, 1, parent=9), span(1, 2, parent=9))
    made.stop(5)
    marks = _marks(made)
    assert marks[1, 1]["decision"] == "dropped"
    assert marks[1, 1]["policy"] == "mine"
    assert marks[1, 2] == {}


def test_late_spans_and_evicted_traces_pass_too(dry: Make, span: Make) -> None:
    made = dry(num_traces=1)
    made.send(0, span(1, 1))
    made.send(1, span(2, 1))
    made.send(4, span(2, 2))
    made.stop(9)
    assert made.kept == [(1, 1), (2, 1), (2, 2)]
    assert _marks(made)[1, 1] == {"decision": "dropped", "reason": "evicted undecided: num_traces"}
    ledger = made.context.ledger
    assert (ledger.sampled_out, dict(ledger.dropped)) == (0, {})


@pytest.mark.parametrize("cache", [0, 10])
def test_a_root_that_comes_late_is_marked_and_other_late_spans_are_not(dry: Make, span: Make, cache: int) -> None:
    made = dry(decision_cache={"non_sampled_cache_size": cache})
    made.send(0, span(1, 1, parent=9))
    made.send(4, span(1, 2, parent=9), span(1, 9))
    made.stop(9)
    marks = _marks(made)
    assert marks[1, 1]["decision"] == "not_sampled"
    assert marks[1, 2] == {}
    assert marks[1, 9] == {"decision": "not_sampled", "reason": "late: the trace was decided without its root"}


def test_shutdown_loses_nothing_in_a_dry_run(dry: Make, span: Make) -> None:
    made = dry(drop_pending_traces_on_shutdown=True)
    made.send(0, span(1, 1))
    made.stop(0)
    assert made.kept == [(1, 1)]
    assert not made.context.ledger.dropped


def test_a_decision_says_that_it_was_a_dry_run(dry: Make, sampler: Make, span: Make, policy: Make) -> None:
    made, real = dry(), sampler(policy("always_sample"))
    for one in (made, real):
        one.send(0, span(1, 1))
        one.stop(5)
    assert decision_line(made.verdicts[0])["dryRun"] is True
    assert "dryRun" not in decision_line(real.verdicts[0])


def test_votes_are_counted_as_usual(dry: Make, sampler: Make, span: Make, policy: Make) -> None:
    errors = policy("status_code", status_codes=["ERROR"])
    counted = []
    for one in (dry(errors), sampler(errors)):
        one.send(0, span(1, status=ERROR), span(2), span(3))
        one.stop(5)
        counted.append([one.counted("global_count_traces_sampled"), one.counted("count_traces_sampled")])
    assert counted[0] == counted[1]


def test_validate_warns_that_nothing_is_dropped() -> None:
    config: Any = FACTORY.Config.model_validate({"dry_run": True, "policies": [{"name": "a", "type": "always_sample"}]})
    assert [text for path, text in config.warnings() if path == ("dry_run",)] == [
        "nothing is dropped: traces that would not be kept are only marked"
    ]


def test_the_stitcher_links_attempts_that_passed_in_a_dry_run_as_kept() -> None:
    never = {"name": "never", "type": "status_code", "status_code": {"status_codes": ["OK"]}}
    config = {
        "receivers": {"otlp": {"protocols": {"grpc": {}}}},
        "processors": {"tail_sampling": {"dry_run": True, "policies": [never]}, "link_stitching": {}},
        "exporters": {"debug": {}},
        "service": {
            "pipelines": {
                "traces": {
                    "receivers": ["otlp"],
                    "processors": ["tail_sampling", "link_stitching"],
                    "exporters": ["debug"],
                }
            }
        },
    }
    attempts = [no_room(number=number, start=START + number * SECOND) for number in (1, 2)]
    run = replay(config, [(START + one.number * 2 * SECOND, write_request(one.groups())) for one in attempts])
    second = [one.span for one in run.exported["debug"] if one.span.span_id == attempts[1].root_id]
    assert {decision["decision"] for decision in run.decisions} == {"not_sampled"}
    assert [link.attributes["podtrail.link.resolved"] for link in second[0].links] == [True]
