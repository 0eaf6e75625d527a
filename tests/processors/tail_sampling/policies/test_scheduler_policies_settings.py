"""Settings of the scheduler policies: mistakes are refused at their place, what is hardly meant is warned of."""

import pytest
from podtrail_processors.tail_sampling.config.sampler import Config

from podtrail.config import Document
from podtrail.config.validation import Validator


def checked(block: str) -> Validator:
    check = Validator(Document.from_text(block, "sampler.yaml", {}).root)
    check.read(Config, ())
    return check


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("type: rejected_by", "plugins, min_nodes, extension_points or reason must be given"),
        ("type: rejected_by, rejected_by: {plugins: ['']}", "plugins must have names"),
        ("type: rejected_by, rejected_by: {plugins: [A], min_nodes: -1}", "min_nodes"),
        ("type: rejected_by, rejected_by: {extension_points: [filters]}", "did you mean filter"),
        ("type: queue_wait", "threshold must be given"),
        ("type: queue_wait, queue_wait: {threshold: 0s}", "threshold"),
        ("type: queue_wait, queue_wait: {threshold: 9s, upper_threshold: 9s}", "must be longer than threshold"),
        ("type: attempts", "min_attempts must be given"),
        ("type: attempts, attempts: {min_attempts: 2, max_pods: 0}", "max_pods"),
        ("type: recovered, recovered: {min_failures: 0}", "min_failures"),
        ("type: latency_quantile, latency_quantile: {quantile: 99}", "quantile"),
        ("type: latency_quantile, latency_quantile: {quantile: .nan}", "quantile"),
        ("type: new_reason, new_reason: {forget_after: -1h}", "forget_after"),
    ],
)
def test_a_mistake_is_refused_at_its_place(policy: str, words: str) -> None:
    (problem,) = checked(f"policies:\n  - {{name: p, {policy}}}").problems
    assert str(problem).startswith("sampler.yaml:2:")
    assert words in str(problem)


@pytest.mark.parametrize("type", ["attempts", "recovered", "latency_quantile", "new_reason"])
def test_what_learns_from_whole_traces_can_not_judge_spans_as_they_come(type: str) -> None:
    settings = "attempts: {min_attempts: 2}"
    (problem,) = checked(f"sampling_strategy: span-ingest\npolicies: [{{name: p, type: {type}, {settings}}}]").problems
    assert 'requires all policies to be stateless, but policy "p" is stateful' in str(problem)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("type: attempts, attempts: {min_attempts: 1}", "attempts::min_attempts: from 1 on it keeps every attempt"),
        (
            "type: latency_quantile, latency_quantile: {quantile: 0.999}",
            "latency_quantile::min_attempts: among fewer than 1000 the quantile is the slowest of them",
        ),
    ],
)
def test_what_is_hardly_meant_is_warned_of(settings: str, expected: str) -> None:
    (warning,) = checked(f"policies: [{{name: p, {settings}}}]").warnings
    assert warning.headline.partition(": ")[2] == f"policies::0::{expected}"


@pytest.mark.parametrize(
    "policy",
    [
        "type: recovered",
        "type: and, and: {and_sub_policy: [{name: q, type: not, not: {not_sub_policy: {name: r, type: recovered}}}]}",
        "type: composite, composite: {max_total_spans_per_second: 9, composite_sub_policy: [{name: q, TYPE}]}",
    ],
)
def test_that_failures_before_a_success_need_linked_traces_is_told_unless_it_is_on(policy: str) -> None:
    policies = f"policies: [{{name: p, {policy.replace('TYPE', 'type: recovered')}}}]"
    (warning,) = checked(policies).warnings
    assert "kept only with linked_traces" in warning.headline
    assert checked(f"linked_traces: {{keep: true}}\n{policies}").warnings == []


def test_that_each_shard_learns_for_itself_is_told() -> None:
    (first, second) = checked("num_shards: 2\npolicies: [{name: p, type: new_reason}]").warnings
    assert "num_shards" in first.headline
    assert "policies::0: learns from a part of all attempts" in second.headline
