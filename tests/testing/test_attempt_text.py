"""The compact language of attempts, and what it says of what it can't read."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.testing.attempts.planned import PlannedAttempts, PlannedRefusal
from podtrail.testing.cases.attempt_text import read_attempts
from podtrail.testing.cases.outcome_text import Expected, read_outcome
from podtrail.testing.cases.subjects import Subject, read_subject
from podtrail.testing.cases.text_reader import Misread

MS, SECOND = 1_000_000, 1_000_000_000

READ = {
    "success": [PlannedAttempts()],
    "success in 40ms on node-3": [PlannedAttempts(took=40 * MS, node="node-3")],
    "2 failed attempts by NodeResourcesFit, then success in 40ms": [
        PlannedAttempts(result="Unschedulable", count=2, by=[PlannedRefusal("NodeResourcesFit")]),
        PlannedAttempts(took=40 * MS),
    ],
    "a failure by NodeAffinity on 31 nodes and TaintToleration on 1 node, error": [
        PlannedAttempts(
            result="Unschedulable", by=[PlannedRefusal("NodeAffinity", 31), PlannedRefusal("TaintToleration", 1)]
        ),
        PlannedAttempts(result="Error"),
    ],
    "3 erroneous attempts every 30s then successful attempt after 1m waited 3s": [
        PlannedAttempts(result="Error", count=3, every=30 * SECOND),
        PlannedAttempts(after=60 * SECOND, waited=3 * SECOND),
    ],
    'failure by Mine "no licence left" on 3 nodes because "0/3 nodes" at 5s arriving 2s later': [
        PlannedAttempts(
            result="Unschedulable",
            by=[PlannedRefusal("Mine", 3, "no licence left")],
            message="0/3 nodes",
            at=5 * SECOND,
            arrives=2 * SECOND,
        )
    ],
    "UNSCHEDULABLE Attempt, THEN Success": [PlannedAttempts(result="Unschedulable"), PlannedAttempts()],
}

MISREAD = {
    "": ("ends where success, failure or error should follow", "", 0),
    "sucess": ("an outcome can't be 'sucess'", "did you mean success?", 0),
    "2 failed by NodeAffinity": ("'failed' says nothing alone", "write failed attempt", 9),
    "2 attempts": ("does not say how the attempt ended", "failed attempt", 2),
    "success inn 4ms": ("what follows can't be 'inn'", "did you mean in?", 8),
    "success in 4": ("'4' lacks a unit (ns, us, ms, s, m, h)", "", 11),
    "success in 4 ms": ("'4' lacks a unit (ns, us, ms, s, m, h)", "", 11),
    "success in": ("ends where a duration such as 40ms should follow", "", 10),
    "success in -4ms": ("-4ms must not be negative", "", 11),
    "failure by A, B": ("an outcome can't be 'B'", "", 14),
    "failure by 3 nodes": ("'3' is not the name of a plugin", "NodeAffinity on 31 nodes", 11),
    "success in 4ms in 5ms": ("'in' is said twice of one group", "", 15),
    "0 failures": ("'0' must be from 1 to 100000", "", 0),
    "100001 failures": ("'100001' must be from 1 to 100000", "", 0),
    "success at 4s after 5s": ("both at and after are said of one group", "keep one", 0),
    "success,": ("ends where success, failure or error should follow", "", 8),
}


@pytest.mark.parametrize("text", READ)
def test_attempts_are_read(text: str) -> None:
    assert [(plan.result, plan) for plan in read_attempts(text)] == [(plan.result, plan) for plan in READ[text]]


@pytest.mark.parametrize("text", MISREAD)
def test_what_can_not_be_read_is_named_with_its_place_and_what_would_be_right(text: str) -> None:
    message, hint, at = MISREAD[text]
    with pytest.raises(Misread) as raised:
        read_attempts(text)
    assert raised.value.message == message
    assert hint in raised.value.hint
    assert raised.value.at == at


WORDS = st.sampled_from(
    ["success", "2", "failed", "attempts", "by", "A", "and", "on", "3", "nodes", ",", "then", "in", "4ms", '"x y"', "'"]
)


def misread(read: Callable[[str], object], text: str) -> Misread | None:
    try:
        read(text)
    except Misread as error:
        return error
    return None


@given(st.one_of(st.text(), st.lists(WORDS).map(" ".join)))
def test_any_text_is_read_or_misread_at_a_place_within(text: str) -> None:
    for read in (read_attempts, read_outcome, lambda said: read_subject(said, attempts=True)):
        if (error := misread(read, text)) is not None:
            assert 0 <= error.at <= len(text)
            assert error.message


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("pod web-0", Subject("pod", "web-0")),
        ("pod shop/web-0 attempt 2", Subject("pod", "web-0", "shop", 2, 2)),
        ("pod web-0 in shop attempts 2-4", Subject("pod", "web-0", "shop", 2, 4)),
        ("pod web-0 last attempt", Subject("pod", "web-0", "", -1, -1)),
        ("trace health check", Subject("trace", "health check")),
    ],
)
def test_subjects_are_read_and_written_alike(text: str, subject: Subject) -> None:
    assert read_subject(text, attempts=True) == subject
    assert read_subject(str(subject), attempts=True) == subject


@pytest.mark.parametrize("text", ["pods web-0", "pod", "pod /x", "pod x y", "pod x attempt 0", "pod a/x in b", "trace"])
def test_what_names_nobody_is_misread(text: str) -> None:
    with pytest.raises(Misread):
        read_subject(text, attempts=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kept", Expected("kept")),
        ("kept by first of its kind", Expected("kept", "first of its kind")),
        ("dropped because no policy said yes", Expected("dropped", None, "no policy said yes")),
        ("Kept by failed because /Un.*able$/", Expected("kept", "failed", "/Un.*able$/")),
        ("pending", Expected("pending")),
    ],
)
def test_expectations_are_read(text: str, expected: Expected) -> None:
    assert read_outcome(text) == expected
    assert read_outcome(str(expected)) == expected


@pytest.mark.parametrize(
    "text", ["", "kepd", "kept of x", "kept by", "kept because", "pending by x", "kept because /(/"]
)
def test_expectations_that_make_no_sense_are_misread(text: str) -> None:
    with pytest.raises(Misread):
        read_outcome(text)
