from pathlib import Path

import pytest

from podtrail.otlp import Batch
from podtrail.recording import Record, read_recording
from podtrail.story import Library, PodStory, PodWay, way_steps
from podtrail.testing.attempts import MS, START, MadeAttempt, no_room

SECOND = 1000 * MS
STORY = Path(__file__).parents[2] / "examples" / "story" / "story.otlp.zst"
DOCS = Path(__file__).parents[2] / "docs" / "way.md"
KEY = MadeAttempt().uid


def library(*attempts: MadeAttempt) -> Library:
    made = Library()
    for attempt in attempts:
        batch = attempt.batch()
        made.decide("traces", batch)
        made.keep(batch.groups, batch.arrived)
    return made


def way_of(held: Library, now: int, key: str = KEY) -> PodWay:
    pod = held.pod(key)
    assert isinstance(pod, PodStory)
    way = held.way_of(pod, now)
    assert way is not None
    return way


def words(way: PodWay) -> list[str]:
    return [step.what for step in way.steps]


def test_a_waiting_pods_way_ends_with_what_it_waits_for() -> None:
    way = way_of(library(no_room(number=1)), START + 60 * SECOND)
    assert words(way) == [
        "in the active queue",
        "attempt 1: Unschedulable: 31 NodeAffinity, 2 NodeResourcesFit, 1 more",
        "waiting in the queue for a Node or Pod event that may help TaintToleration or NodeAffinity or 1 more",
    ]
    assert [step.open for step in way.steps] == [False, False, True]
    assert way.open
    assert way.duration == 60 * SECOND + 2 * MS


@pytest.mark.parametrize(
    ("result", "later", "name"),
    [
        ("Error", 1, "back-off"),
        ("Unschedulable", 1, "back-off: an event that may help came before its end"),
        ("Unschedulable", 40, "waiting in the queue for a Node or Pod event"),
    ],
)
def test_the_gap_between_attempts_is_named_by_how_the_first_ended(result: str, later: int, name: str) -> None:
    first = MadeAttempt(number=1, result=result, message="no")
    way = way_of(library(first, MadeAttempt(number=2, start=START + later * SECOND)), START + 60 * SECOND)
    gap = way.steps[2]
    assert (gap.kind, gap.what) == ("wait", name)
    assert gap.end == START + later * SECOND


def test_a_long_wait_in_the_active_queue_stands_apart_from_the_wait_for_an_event() -> None:
    second = MadeAttempt(number=2, start=START + 40 * SECOND, queue_wait_ms=3000)
    way = way_of(library(no_room(number=1), second), START + 41 * SECOND)
    gaps = [step for step in way.steps if step.kind == "wait"][1:]
    assert [(gap.what.split(" that ")[0], gap.end) for gap in gaps] == [
        ("waiting in the queue for a Node or Pod event", START + 37 * SECOND),
        ("in the active queue", START + 40 * SECOND),
    ]


def test_an_error_whose_back_off_is_long_over_is_said_to_be_due() -> None:
    way = way_of(library(MadeAttempt(number=1, result="Error", message="boom")), START + 60 * SECOND)
    assert [step.what for step in way.steps[2:]] == [
        "back-off",
        "its next attempt was due by 14:13:21 UTC, none was seen here",
    ]


def test_the_middle_of_many_equal_answers_is_one_step_that_leads_to_its_attempts() -> None:
    held = library(*(no_room(number=n, start=START + n * 10 * SECOND) for n in range(1, 41)))
    way = way_of(held, START + 401 * SECOND)
    [fold] = [step for step in way.steps if step.attempts == (2, 39)]
    assert fold.what == "attempts 2 to 39: same answer, 342 ms in attempts, the rest waiting between them"
    assert fold.start_unix_nano == START + 20 * SECOND
    assert len(way.steps) == 7


def test_attempts_that_are_not_held_are_a_gap_of_their_own() -> None:
    way = way_of(library(no_room(number=3, start=START)), START + SECOND)
    assert words(way)[0] == "attempts 1 to 2: not held here"
    assert way.steps[0].attempts == (1, 2)


def test_many_different_answers_are_bounded() -> None:
    some = [MadeAttempt(number=n, result="Error", message=f"no {n}", start=START + n * SECOND) for n in range(1, 90)]
    way = way_of(library(*some), START + 90 * SECOND)
    assert any("61 answers" in step.what or "answers" in step.what for step in way.steps)
    assert len(way.steps) < 60


def test_a_gated_pod_waits_until_now_and_afterwards_until_it_was_queued() -> None:
    held = Library()
    held.stories.note_gated(KEY, "default", "web-0", ["example.com/quota"], START - 60 * SECOND)
    before = way_of(held, START)
    assert words(before) == ["gated: example.com/quota"]
    assert before.open
    held.stories.note_gated(KEY, "default", "web-0", [])
    batch = MadeAttempt().batch()
    held.keep(batch.groups, batch.arrived)
    after = way_of(held, START + SECOND)
    assert words(after)[0] == "gated"
    assert after.steps[0].end == START - 2 * MS
    assert not after.open


def test_the_names_of_waits_in_the_documentation_are_those_of_the_code() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in Path(way_steps.__file__).parent.glob("way*.py"))
    rows = [
        row.split("|")[1]
        for row in DOCS.read_text(encoding="utf-8").split("\n| name |")[1].split("\n\n")[0].split("\n")[2:]
    ]
    names = [name.partition("…")[0].partition(" NODE")[0].strip(" :") for row in rows for name in row.split("`")[1::2]]
    assert len(names) > 9
    assert [name for name in names if name not in code and not name.startswith("attempts 2 to")] == []


def test_nothing_that_has_a_time_is_no_way() -> None:
    held = Library()
    held.stories.note_gated(KEY, "default", "web-0", ["example.com/quota"])
    pod = held.pod(KEY)
    assert pod is not None
    assert held.way_of(pod, START) is None


@pytest.fixture(scope="module")
def recorded() -> Library:
    held = Library()
    for one in read_recording(STORY):
        if isinstance(one, Record):
            held.keep(Batch(one.intake.groups, one.arrival).groups, one.arrival)
    return held


def test_a_crash_loops_way_goes_from_the_request_to_the_back_off(recorded: Library) -> None:
    way = way_of(recorded, recorded.stories.latest, "487d8cd3-20e1-48a3-b084-c998c524f150")
    assert words(way) == [
        "created by admin (its user agent)",
        "created, until the scheduler has it in its queue",
        "attempt 1: Success, node-1",
        "scheduling cycle",
        "binding cycle",
        "bound, until the kubelet takes it on",
        "kubelet of node-1 takes it on",
        "kubelet, before the sandbox (admission, volumes)",
        "sandbox",
        "its network",
        "container main started",
        "container main runs, exited with 3 (Error)",
        "ready",
        "container main started",
        "container main runs, exited with 3 (Error)",
        "back-off (CrashLoopBackOff): main",
        "container main started",
        "container main runs, exited with 3 (Error)",
        "back-off (CrashLoopBackOff): main",
    ]
    assert [step.what for step in way.steps if step.open] == ["back-off (CrashLoopBackOff): main"]
    assert all(step.trace_id for step in way.steps if step.kind != "wait")


def test_steps_are_in_order_and_lie_within_the_way(recorded: Library) -> None:
    for pod in recorded.stories.pods():
        way = recorded.way_of(pod, recorded.stories.latest)
        assert way is not None
        starts = [step.start_unix_nano for step in way.steps]
        assert starts == sorted(starts)
        assert all(way.start_unix_nano <= step.start_unix_nano <= step.end for step in way.steps)
        assert max(step.end for step in way.steps) == way.start_unix_nano + way.duration


def test_a_pull_that_fails_waits_for_the_next(recorded: Library) -> None:
    way = way_of(recorded, recorded.stories.latest, "177ab38d-798e-4f19-ac9e-8876b18b5e24")
    assert [step.open for step in way.steps if step.what.startswith("back-off, until image")] == [False, True]
