"""Whether it is better or worse after a change, by Pods."""

from collections.abc import Iterable

import pytest

from podtrail.story import Library, OverviewQuestion, plain
from podtrail.testing.attempts import MS, START, MadeAttempt, No, no_room

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
NOW = START + 30 * MINUTE
CHANGE = "14:17:20"
"""Four minutes behind START."""
TOLD = " that can be told: "
FAILED = "had an attempt without success"


def lines_of(attempts: Iterable[MadeAttempt], *, details: bool = False) -> list[str]:
    library = Library()
    for one in sorted(attempts, key=lambda made: made.start):
        batch = one.batch()
        library.keep(batch.groups, batch.arrived)
    answer = OverviewQuestion("change", CHANGE).answer(library, NOW, live=True)
    assert not answer.problem
    return [plain(line) for line in (answer.details if details else answer.lines)]


def side(name: str, minute: int, fine: int, failed: int, *, took: int = 9 * MS) -> list[MadeAttempt]:
    """One attempt of each of some Pods, within two minutes."""
    starts = [START + minute * MINUTE + at * SECOND for at in range(fine + failed)]
    return [
        MadeAttempt(uid=f"{name}{at}", name=f"{name}-{at}", start=start, duration=took)
        if at < fine
        else no_room(uid=f"{name}{at}", name=f"{name}-{at}", start=start)
        for at, start in enumerate(starts)
    ]


def retries(name: str, minute: int, times: int) -> list[MadeAttempt]:
    start = START + minute * MINUTE
    return [no_room(uid=name, name=name, number=at + 1, start=start + at * SECOND // 2) for at in range(times)]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((20, 0), (8, 12), "Worse: 12 of 20 Pods (60 %) had an attempt without success, 0 of 20 Pods (0 %) before."),
        ((8, 12), (20, 0), "Better: 0 of 20 Pods (0 %) had an attempt without success, 12 of 20 Pods (60 %) before."),
        (
            (45, 5),
            (43, 7),
            f"No difference{TOLD}7 of 50 Pods (14 %) {FAILED}, 5 of 50 Pods (10 %) before, which may be chance.",
        ),
        (
            (20, 0),
            (20, 0),
            f"No difference{TOLD}0 of 20 Pods (0 %) {FAILED}, 0 of 20 Pods (0 %) before.",
        ),
        (
            (20, 0),
            (0, 9),
            "Better or worse can't be said: 20 Pods before and 9 after are too few, 10 on either side are needed.",
        ),
    ],
)
def test_it_is_said_in_one_sentence(before: tuple[int, int], after: tuple[int, int], said: str) -> None:
    assert lines_of([*side("a", 1, *before), *side("b", 5, *after)])[1] == said


def test_two_pods_that_retry_often_make_no_change_guilty() -> None:
    calm = [*side("a", 1, 20, 0), *side("b", 5, 20, 0)]
    stormy = [*calm, *retries("huge-0", 6, 100), *retries("huge-1", 6, 100)]
    lines = lines_of(stormy)
    assert lines[1].startswith("No difference that can be told: 2 of 22 Pods (9 %)")
    assert "0 of 20 Pods (0 %), 0 attempts" in lines[6]
    assert lines[6].endswith("2 of 22 Pods (9 %), 200 attempts")


def test_pods_that_waited_already_make_no_change_guilty() -> None:
    waiting = [
        no_room(uid=f"w{at}", name=f"w-{at}", number=number, start=START + minute * MINUTE + at * SECOND)
        for at in range(8)
        for number, minute in enumerate((1, 2, 3, 4, 5), 1)
    ]
    said = lines_of([*waiting, *side("a", 1, 100, 0), *side("b", 5, 14, 0)])
    assert said[1] == (
        "No difference that can be told: 0 of 14 Pods (0 %) had an attempt without success, 8 of 108 Pods (7 %) "
        "before, which may be chance; 8 Pods that had failed before are set apart."
    )
    assert said[6].endswith("8 of 22 Pods (36 %), 16 attempts")
    alone = lines_of([*waiting, *side("a", 1, 100, 0), *side("b", 5, 9, 0)])
    assert "108 Pods before and 9 after are too few" in alone[1]


def test_slower_is_said_beside_what_fails() -> None:
    slower = lines_of([*side("a", 1, 20, 0, took=5 * MS), *side("b", 5, 20, 0, took=20 * MS)])[1]
    assert slower.startswith("Worse: 0 of 20 Pods")
    assert slower.endswith("; to find a node took 20 ms in the median, 5 ms before.")
    both = lines_of([*side("a", 1, 20, 20, took=5 * MS), *side("b", 5, 20, 0, took=20 * MS)])[1]
    assert both.startswith("Worse and better: 0 of 20 Pods (0 %) had an attempt without success, 20 of 40")
    assert "in the median" not in lines_of([*side("a", 1, 20, 0, took=MS), *side("b", 5, 20, 0, took=MS * 3 // 2)])[1]


def test_late_attempts_do_not_stretch_a_side_and_are_said() -> None:
    steady = [*side("a", 1, 40, 0), *side("b", 5, 40, 0)]
    lines = lines_of([*steady, *side("late", 12, 2, 0), *side("early", -3, 1, 0)])
    assert lines[2].split("   ")[-2].strip() == "before (14:14:20 to 14:17:20, 3m)"
    assert lines[2].endswith("after (14:17:20 to 14:18:59, 1m 39s)")
    assert lines[4].split() == ["attempts", "40", "40"]
    assert lines[-2:] == [
        "1 attempt before 14:14:20, with a silence between, not counted.",
        "2 attempts after 14:18:59, with a silence between, not counted.",
    ]
    many = lines_of([*steady, *side("late", 12, 8, 0)])
    assert many[4].split() == ["attempts", "40", "48"]


def test_the_cut_of_refusers_is_said_and_those_that_refuse_most_pods_come_first() -> None:
    """Each plugin refuses as many Pods on both sides as its number."""
    attempts = []
    for minute in (1, 5):
        for at in range(12):
            refusals = [No(plugin=f"Own{number}", reason="no", nodes=["a"]) for number in range(1, 7) if at < number]
            start = START + minute * MINUTE + at * SECOND
            made = no_room(uid=f"{minute}-{at}", name=f"p{minute}-{at}", start=start, refusals=refusals)
            attempts.append(made if refusals else MadeAttempt(uid=f"{minute}-{at}", start=start))
    lines = lines_of(attempts)
    assert [line.split()[2] for line in lines if "refused by" in line] == ["Own6", "Own5", "Own4", "Own3"]
    assert "6 of 12 Pods (50 %), 6 attempts" in "".join(lines)
    assert lines[-1] == "and 2 plugins more that said no to fewer Pods: -v"
    assert [line.split()[2] for line in lines_of(attempts, details=True)] == ["Own2", "Own1"]
