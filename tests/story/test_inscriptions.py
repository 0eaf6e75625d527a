"""Decisions that spans bear, as a sampler wrote them there."""

from collections.abc import Mapping

import pytest

from podtrail.otlp import Group, Value, Verdict
from podtrail.story.inscriptions import read_inscription
from podtrail.testing.attempts import no_room


def inscribed(**told: Value) -> Group:
    attributes = {f"podtrail.sampling.{key}": value for key, value in told.items()}
    (group,) = no_room(attributes=attributes).groups()
    return group


def test_policy_reason_and_votes_are_read_from_the_root() -> None:
    found = read_inscription(inscribed(policy="failed", reason="it did", votes="slow: not_sampled, failed: sampled"))
    assert found == Verdict(
        no_room().trace_id, "sampled", "failed", "it did", 0, 0, 0, {"slow": "not_sampled", "failed": "sampled"}
    )


def test_what_passed_a_dry_run_says_what_would_have_become_of_it() -> None:
    found = read_inscription(inscribed(decision="dropped", policy="noise", reason="it is"))
    assert found is not None
    assert (found.decision, found.dry_run, found.policy) == ("dropped", True, "noise")


@pytest.mark.parametrize(
    ("votes", "read"),
    [
        ("a, b: c: sampled, d: dropped", {"a, b: c": "sampled", "d": "dropped"}),
        ("x: sampled, y: sam", {"x": "sampled"}),
        ("nothing of the kind", {}),
        (7, {}),
    ],
)
def test_votes_of_odd_names_are_told_apart(votes: Value, read: Mapping[str, str]) -> None:
    found = read_inscription(inscribed(policy="p", votes=votes))
    assert found is not None
    assert found.votes == read


@pytest.mark.parametrize(
    "told", [{}, {"votes": "a: sampled"}, {"policy": 5}, {"decision": "perhaps"}, {"reason": "podtrail.sampling."}]
)
def test_a_trace_that_bears_no_decision_has_none(told: Mapping[str, Value]) -> None:
    assert read_inscription(inscribed(**told)) is None
