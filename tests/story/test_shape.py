"""The shape of attempts over time: bounded, and nothing is lost from its sums."""

from hypothesis import example, given
from hypothesis import strategies as st

from podtrail.otlp import Batch
from podtrail.story import Library, Stories
from podtrail.story.shape import (
    OUTCOMES,
    ROWS,
    AttemptShape,
    ShapeAttempt,
    ShapeOverTime,
    of_attempts,
    of_plugin,
    row_of,
)
from podtrail.testing.attempts import MS, START, MadeAttempt, no_room

SECOND = 10**9
STARTS = st.one_of(
    st.integers(0, 2**63), st.integers(START, START + 10**12), st.integers(0, 5_000).map(lambda at: START + at * SECOND)
)
ATTEMPTS = st.lists(
    st.builds(ShapeAttempt, STARTS, st.none() | st.integers(1, 10**13), st.sampled_from([*OUTCOMES, "", "Skip"])),
    max_size=300,
)


@given(ATTEMPTS, st.integers(1, 80))
@example([ShapeAttempt(START + at * SECOND, 1, "") for at in range(5_000)], 60)
@example([ShapeAttempt(at**6 * SECOND, 1, "") for at in range(1_500)], 60)
def test_the_sums_are_the_attempts_and_columns_are_few(attempts: list[ShapeAttempt], drawn: int) -> None:
    shape = AttemptShape.of(attempts)
    assert len(shape) <= 240
    told = shape.told(drawn=drawn)
    assert told.attempts + told.outside == shape.attempts == len(attempts)
    assert told.attempts == sum(cell.attempts for column in told.columns for cell in column.cells)
    assert len(told.columns) <= drawn
    starts = [column.start_unix_nano for column in told.columns]
    assert (
        starts == list(range(starts[0], starts[0] + told.width * len(starts), told.width)) if starts else not attempts
    )


@given(ATTEMPTS.filter(bool), st.data())
def test_a_range_has_all_that_began_in_it_both_ends_included(attempts: list[ShapeAttempt], data: st.DataObject) -> None:
    since, until = sorted(data.draw(st.sampled_from(attempts)).start for _ in range(2))
    shape = AttemptShape.of(attempts)
    told = shape.told(since=since, until=until)
    assert told.columns[0].start_unix_nano <= since
    assert until <= told.end_unix_nano
    within = [one for one in attempts if told.columns[0].start_unix_nano <= one.start <= told.end_unix_nano]
    assert told.attempts >= sum(since <= one.start <= until for one in attempts)
    assert told.attempts + told.outside == len(attempts)
    assert told.attempts <= len(within)


def test_an_attempt_of_a_clock_that_is_wrong_hides_no_other() -> None:
    right = [ShapeAttempt(START + at * SECOND, MS, "Success") for at in range(100)]
    told = AttemptShape.of([ShapeAttempt(0, MS, "Error"), *right, ShapeAttempt(2**63, MS, "Error")]).told()
    assert (told.attempts, told.outside, told.width) == (100, 2, 2 * SECOND)


def test_rows_are_of_a_third_of_a_power_of_ten() -> None:
    assert [row_of(took) for took in (None, 1, 29_999, 30_000, 100 * SECOND - 1, 100 * SECOND, 10**15)] == [
        *(0, 1, 1, 2, ROWS - 2, ROWS - 1, ROWS - 1)
    ]


def library(*made: MadeAttempt) -> Library:
    held = Library()
    for one in made:
        batch = one.batch()
        held.decide("traces", batch)
        held.keep(batch.groups, START)
    return held


def test_attempts_are_counted_once_however_often_they_are_told_of_and_after_they_are_forgotten() -> None:
    batches = [no_room(number=n, start=START + n * SECOND).batch() for n in range(1, 8)]
    stories = Stories(max_attempts=3)
    for batch in [*batches, *batches]:
        stories.observe(Batch((), batch.arrived, batch.verdicts))
        stories.observe(Batch(batch.groups, batch.arrived))
    told = stories.shape.told()
    assert (told.attempts, told.outside) == (7, 0)
    assert [column.results for column in told.columns] == [{"Unschedulable": 1}] * 7


def test_it_is_told_how_many_pods_waited() -> None:
    held = library(
        no_room(uid="waits", name="waits", start=START),
        no_room(uid="found", name="found", start=START),
        MadeAttempt(uid="found", name="found", number=2, start=START + 4 * SECOND),
        MadeAttempt(uid="at once", name="at-once", start=START + 6 * SECOND),
    )
    told = held.stories.shape.told(held.stories.pods())
    # The last of them came a second before its attempt.
    assert [column.waiting for column in told.columns] == [2, 2, 2, 2, 1, 2, 1]


def test_the_shape_of_a_plugin_has_its_own_time_and_its_refusals() -> None:
    held = library(no_room(uid="a", start=START), MadeAttempt(uid="b", name="b", start=START + SECOND))
    (pod,) = [pod for pod in held.stories.pods() if pod.uid == "a"]
    plugin = pod.attempts[0].why.rejections[0].plugin
    shape = AttemptShape.of(of_plugin(held.stories.pods(), plugin))
    assert [column.results for column in shape.told().columns] == [{"Unschedulable": 1}]
    assert AttemptShape.of(of_plugin(held.stories.pods(), "nobody")).told().columns == ()
    assert AttemptShape.of(of_attempts(pod.attempts)).attempts == 1


def test_lately_is_told_in_narrow_columns_however_long_it_runs_and_all_of_it_when_asked_for() -> None:
    shape = ShapeOverTime()
    days = 3 * 86_400
    for at in range(0, days, 20):
        shape.add(ShapeAttempt(START + at * SECOND, MS, "Success"))
    end = START + days * SECOND
    usual = shape.told()
    assert usual.width <= 900 * SECOND
    assert usual.end_unix_nano >= end - 180 * SECOND
    assert usual.attempts + usual.outside == days // 20
    assert shape.told(since=end - 60 * SECOND).width == SECOND
    assert shape.told(since=end - 3_000 * SECOND).width <= 60 * SECOND
    assert (shape.told(since=0).attempts, shape.told(since=0).outside) == (days // 20, 0)


@given(ATTEMPTS)
def test_no_picture_of_lately_counts_what_is_not_there(attempts: list[ShapeAttempt]) -> None:
    shape = ShapeOverTime()
    for one in attempts:
        shape.add(one)
    for told in (shape.told(), shape.told(since=0), shape.told(since=START)):
        assert told.attempts + told.outside == len(attempts)
        assert told.attempts == sum(cell.attempts for column in told.columns for cell in column.cells)
    assert shape.told(since=0).outside == 0


def test_a_plugins_shape_counts_attempts_that_are_no_longer_held_each_once() -> None:
    held = Library(max_pods=2)
    for number in range(20):
        attempt = no_room(uid=f"p{number}", name=f"p{number}", start=START + number * SECOND)
        held.stories.observe(attempt.batch("not_sampled", ""))  # as the message tells it
        held.stories.observe(attempt.batch())  # and as its spans do
    (plugin, *_) = [no.plugin for no in held.stories.pods()[0].attempts[0].why.rejections]
    shape = held.stories.plugin_shapes.of(plugin)
    assert shape is not None
    told = shape.told()
    assert [column.results for column in told.columns] == [{"Unschedulable": 1}] * 20
    (row,) = {cell.row for column in told.columns for cell in column.cells}
    assert row > 0
