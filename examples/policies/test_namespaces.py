"""Tests of one's own policies need no running podtrail: `pytest examples/policies`."""

from dataclasses import replace

import pytest
from namespaces import FirstFailure, lacks

from podtrail.policy import TraceView
from podtrail.testing.attempts import MadeAttempt, no_room

START = 1_790_000_000_000_000_000
SECOND = 1_000_000_000


def seen(attempt: MadeAttempt, seconds: float = 0) -> TraceView:
    """Return what a policy sees of an attempt, some time after the start."""
    return TraceView(attempt.groups(), START + round(seconds * SECOND))


def test_lacks_tells_how_many_nodes_have_too_little() -> None:
    assert lacks(seen(no_room()), resource="cpu") == "2 nodes have too little cpu"


@pytest.mark.parametrize("attempt", [no_room(), MadeAttempt()], ids=["of something else", "that succeeded"])
def test_lacks_says_nothing_of_attempts(attempt: MadeAttempt) -> None:
    assert lacks(seen(attempt), resource="memory") is None


def test_first_failure_keeps_one_of_a_namespace_in_a_while() -> None:
    policy = FirstFailure(every=60)
    failed = no_room()
    assert policy.vote(seen(failed)) == "the first failure in default for 60 s"
    assert policy.vote(seen(replace(failed, number=2), seconds=59)) is None
    assert policy.vote(seen(replace(failed, number=3, namespace="shop"), seconds=59)) is not None
    assert policy.vote(seen(replace(failed, number=4), seconds=60)) is not None
