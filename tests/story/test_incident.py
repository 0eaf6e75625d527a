from hypothesis import given
from hypothesis import strategies as st

from podtrail.reports.incident import incident_report
from podtrail.reports.markdown import to_markdown
from podtrail.story import Stories
from podtrail.story.incident import Incident, tell_incident
from podtrail.story.time_range import TimeRange
from podtrail.testing.attempts import MS, START, MadeAttempt, no_room

SECOND = 10**9
MINUTE = TimeRange(START, START + 60 * SECOND)


def told(*attempts: MadeAttempt, span: TimeRange = MINUTE) -> Incident:
    stories = Stories()
    for attempt in attempts:
        stories.observe(attempt.batch())
    return tell_incident(stories.pods(), span)


def test_attempts_are_counted_by_result_in_it_and_before_it() -> None:
    incident = told(
        no_room(start=START - 10 * SECOND),
        no_room(number=2, start=START + SECOND),
        MadeAttempt(number=3, start=START + 2 * SECOND),
        MadeAttempt(uid="later", start=START + 70 * SECOND),
    )
    assert incident.attempts == {"Unschedulable": 1, "Success": 1}
    assert incident.before == {"Unschedulable": 1}
    assert (incident.tried, incident.attempts_in_all) == (1, 2)
    assert incident.sentence == (
        "2 attempts of 1 Pod in 1m: 1 Unschedulable, 1 Success. In the 1m before (10 s of it known): 1 Unschedulable."
    )


def test_reasons_have_attempts_pods_and_their_first_and_last() -> None:
    incident = told(
        no_room(uid="a", start=START),
        no_room(uid="a", number=2, start=START + SECOND),
        no_room(uid="b", start=START + 2 * SECOND),
    )
    (taint,) = [one for one in incident.reasons if one.plugin == "TaintToleration"]
    assert (taint.attempts, taint.pods, taint.example) == (3, 2, "a")
    assert (taint.first_unix_nano, taint.last_unix_nano) == (START + 9 * MS, START + 2 * SECOND + 9 * MS)


def test_a_refused_bind_stands_with_the_words_of_who_refused() -> None:
    error = 'running Bind plugin "DefaultBinder": pods "x" is forbidden: no binding today'
    incident = told(MadeAttempt(result="Error", bind_error=error))
    assert [(one.plugin, one.reason) for one in incident.reasons] == [("DefaultBinder", "no binding today")]
    assert incident.pods[0].why == "DefaultBinder: no binding today"


def test_slow_pods_are_concerned_and_quick_ones_are_not() -> None:
    incident = told(MadeAttempt(uid="slow", duration=2 * SECOND), MadeAttempt(uid="quick"))
    (one,) = incident.pods
    assert (one.key, one.why, one.slowest) == ("slow", "filter took 1 s of 2 s", 2 * SECOND)
    assert [one.key for one in incident.slowest] == ["slow", "quick"]


def test_a_change_of_the_configuration_stands_once_with_its_pods() -> None:
    incident = told(
        *(
            MadeAttempt(
                uid=uid,
                number=n,
                start=START + n * SECOND,
                result="Unschedulable",
                attributes={"scheduler.config.generation": "new" if n > 1 else "old"},
            )
            for uid in "ab"
            for n in (1, 2, 3)
        )
    )
    (change,) = incident.changes
    assert (change.before, change.after, change.pods, change.at_unix_nano) == ("old", "new", 2, START + 2 * SECOND)
    assert incident.beside is not None
    assert (incident.beside.before.attempts, incident.beside.after.attempts) == (2, 4)
    text = to_markdown(incident_report(incident))
    assert "The scheduler's configuration changed at 14:13:22: old → new. Better or worse can't be said" in text
    assert "## Before and after the change at 14:13:22" in text
    assert "| `without success` | 2 of 2 Pods (100 %), 2 attempts | 2 of 2 Pods (100 %), 4 attempts |" in text
    assert "can't be said: 2 Pods before and 0 after are too few" in text
    assert "2 Pods that had failed before are set apart" in text
    assert "## Before and after" not in to_markdown(incident_report(told(MadeAttempt())))


def test_a_change_between_pods_that_were_each_tried_on_one_side_of_it_is_told() -> None:
    made = [
        MadeAttempt(uid=f"u{at}", start=START + at * SECOND, attributes={"scheduler.config.generation": generation})
        for at, generation in enumerate(("old", "old", "new", "new", "new"))
    ]
    incident = told(*made)
    assert incident.changes == ()
    assert incident.beside is not None
    assert (incident.beside.before.attempts, incident.beside.after.attempts) == (2, 3)


def test_nodes_have_what_was_bound_and_who_refused_them() -> None:
    incident = told(MadeAttempt(uid="a"), no_room(uid="b"))
    shares = {one.node: (one.bound, one.refused) for one in incident.nodes}
    assert shares["node-07"][0] == 1
    assert shares["cp-0"] == (0, 1)


@given(st.lists(st.tuples(st.integers(-70, 70), st.sampled_from(["Success", "Error", "", "Unschedulable"]))))
def test_each_attempt_is_in_one_slice_and_in_one_of_both_ranges(attempts: list[tuple[int, str]]) -> None:
    made = [
        MadeAttempt(uid=str(n), start=START + at * SECOND, result=result) for n, (at, result) in enumerate(attempts)
    ]
    incident = told(*made)
    ended = [one.start + one.duration for one in made]
    assert incident.attempts_in_all == sum(MINUTE.around(at) for at in ended)
    assert sum(incident.before.values()) == sum(MINUTE.before().around(at) for at in ended)
    assert sum(sum(one.attempts.values()) for one in incident.slices) == incident.attempts_in_all


def test_results_that_nobody_knows_are_bounded() -> None:
    incident = told(*(MadeAttempt(uid=f"u{n}", result=f"r{n}") for n in range(40)))
    assert len(incident.attempts) <= 13
    assert incident.attempts["other"] == 28


def test_a_moment_at_the_end_belongs_to_it() -> None:
    made = MadeAttempt()
    assert told(made, span=TimeRange(made.start, made.start + made.duration)).attempts == {"Success": 1}


def test_nothing_happened() -> None:
    incident = tell_incident([], MINUTE)
    assert incident.sentence == "No attempt ended in these 1m."
    stories = Stories()
    stories.observe(no_room(start=START - SECOND).batch())
    assert tell_incident(stories.pods(), MINUTE).sentence.endswith(" 1 Unschedulable in the 1m before.")


def retried(stories: Stories, times: int) -> None:
    for at in range(times):
        stories.observe(no_room(number=at + 1, start=START + at * SECOND).batch())


def test_attempts_that_their_pod_no_longer_holds_are_counted_in_their_time() -> None:
    stories = Stories()
    retried(stories, 300)
    incident = tell_incident(stories.pods(), TimeRange(START + 60 * SECOND, START + 120 * SECOND), stories.past.told())
    assert (incident.attempts, incident.before, incident.tried) == ({"Unschedulable": 60}, {"Unschedulable": 60}, 1)
    assert not incident.at_least
    assert not incident.before_at_least
    assert [part.attempts["Unschedulable"] for part in incident.slices] == [5] * 12
    assert {(one.attempts, one.first_unix_nano) for one in incident.reasons} == {(60, START + 60 * SECOND + 9 * MS)}
    assert {one.refused for one in incident.plugins} == {60}
    assert (incident.pods[0].attempts, incident.pods[0].failed) == (60, 60)


def test_so_are_those_of_pods_that_are_gone() -> None:
    stories = Stories(max_pods=2)
    for at in range(5):
        stories.observe(no_room(uid=f"u{at}", start=START + at * SECOND).batch())
    incident = tell_incident(stories.pods(), MINUTE, stories.past.told())
    assert (incident.attempts_in_all, incident.tried, incident.pods_in_all, incident.pods_gone) == (5, 5, 2, 3)


def test_an_attempt_that_is_told_again_after_its_pod_was_forgotten_is_counted_once() -> None:
    stories = Stories(max_pods=2)
    made = [no_room(uid=f"u{at}", start=START + at * SECOND).batch() for at in range(4)]
    for batch in [*made, *made[:2], *made]:
        stories.observe(batch)
    past = stories.past.told()
    incident = tell_incident(stories.pods(), MINUTE, past)
    assert (incident.attempts_in_all, incident.tried, incident.pods_gone) == (4, 4, 2)
    assert len(list(past.with_held(stories.pods()))) == 4
    assert stories.tallies.attempts["Unschedulable"] == 4
    assert stories.shape.told().attempts == 4


def test_what_is_not_counted_whole_says_at_least() -> None:
    stories = Stories(max_bytes=100_000)
    retried(stories, 300)
    past = stories.past.told()
    incident = tell_incident(stories.pods(), TimeRange(START, START + 280 * SECOND), past)
    assert incident.sentence.startswith("At least ")
    assert incident.attempts_in_all < 280
    late = tell_incident(stories.pods(), TimeRange(START + 290 * SECOND, START + 300 * SECOND), past)
    assert late.attempts_in_all == 10
    assert not late.at_least


def test_the_earliest_attempt_is_told_by_the_clock_of_the_spans() -> None:
    assert told(no_room(start=START + SECOND)).earliest_unix_nano == START + SECOND
