"""`queue_wait`, `attempts` and `recovered`: how long a Pod waited and how often it was tried."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from podtrail_processors.tail_sampling import FACTORY
from podtrail_processors.tail_sampling.voting.tries import Tries

from podtrail.component import Context
from podtrail.otlp import Batch, Value, Verdict, attempt_of
from podtrail.testing.attempts import MS, START, MadeAttempt

SECOND = 1_000 * MS
MINUTE = 60 * SECOND
Watch = Any

ATTEMPTS = "{name: p, type: attempts, attempts: {min_attempts: 3}}"
RECOVERED = "{name: p, type: recovered, recovered: {min_failures: 2}}"


def at(number: int, result: str = "Unschedulable", **more: Any) -> MadeAttempt:
    """Return a Pod's attempt of that number, a second after the one before."""
    return MadeAttempt(number=number, result=result, start=START + number * SECOND, **more)


def waiting(milliseconds: Value) -> MadeAttempt:
    """Return an attempt with such a wait on its root."""
    return MadeAttempt(attributes={"scheduler.queue_wait_ms": milliseconds})


@pytest.mark.parametrize(
    ("milliseconds", "kept"),
    [(10_000, False), (10_001, True), (60_000, True), (60_001, False), (12_300.5, True)],
)
def test_a_wait_above_the_threshold_is_kept_up_to_the_upper_one(watch: Watch, milliseconds: Value, kept: bool) -> None:
    policy = "{name: p, type: queue_wait, queue_wait: {threshold: 10s, upper_threshold: 1m}}"
    assert watch(policy, [waiting(milliseconds)]).kept == ([0] if kept else [])


def test_a_verdict_tells_how_long_the_pod_waited(watch: Watch) -> None:
    policy = "{name: p, type: queue_wait, queue_wait: {threshold: 10s}}"
    seen = watch(policy, [at(0, queue_wait_ms=12_300), at(1, queue_wait_ms=340)])
    assert seen.reasons[0] == "Pod default/web-0 waited 12.3 s in the queue, longer than 10 s"
    assert seen.explained == [
        "Pod default/web-0 waited 12.3 s in the queue, longer than 10 s",
        "Pod default/web-0 waited 340 ms in the queue, not longer than 10 s",
    ]


@pytest.mark.parametrize(
    "wait", ["12000", True, None, -1, float("nan"), float("inf"), 1e300, [20_000], {"ms": 20_000}, b"20000"]
)
def test_a_wait_that_makes_no_sense_keeps_nothing(watch: Watch, wait: Value) -> None:
    seen = watch("{name: p, type: queue_wait, queue_wait: {threshold: 1ms}}", [waiting(wait)])
    assert (seen.kept, seen.explained) == ([], ["it does not tell how long its Pod waited in the queue"])


def test_attempts_are_kept_from_the_nth_of_their_pod_on(watch: Watch) -> None:
    mine = [at(number) for number in range(1, 5)]
    other = [at(number, uid="other", name="web-1") for number in range(1, 3)]
    seen = watch(ATTEMPTS, sorted([*mine, *other], key=lambda one: one.start))
    assert seen.kept == [4, 5]
    assert seen.reasons[5] == "attempt 4 of Pod default/web-0; kept from attempt 3 on"
    assert seen.explained[0] == "attempt 1 of Pod default/web-0, fewer than 3"


def test_a_number_that_the_scheduler_counted_holds_if_it_is_more(watch: Watch) -> None:
    declared = [{"scheduler.attempts": number} for number in (2, 3, 1)]
    attempts = [at(number, attributes=one) for number, one in enumerate(declared)]
    seen = watch(ATTEMPTS, attempts)
    assert seen.kept == [1, 2]
    assert seen.reasons[2] == "attempt 4 of Pod default/web-0; kept from attempt 3 on"


@pytest.mark.parametrize("declared", [True, "9", 9.5, -9, 0, 1 << 62, [9]])
def test_a_number_that_makes_no_sense_does_not_count(watch: Watch, declared: Value) -> None:
    assert watch(ATTEMPTS, [at(1, attributes={"scheduler.attempts": declared})]).kept == []


@pytest.mark.parametrize(
    "named", [{"k8s.pod.uid": ""}, {"k8s.pod.uid": 7}, {"k8s.pod.uid": "u" * 100_000}, {"k8s.pod.name": "n" * 100_000}]
)
def test_pods_are_told_apart_by_uid_or_else_by_name_however_long(watch: Watch, named: Mapping[str, Value]) -> None:
    seen = watch(ATTEMPTS, [at(number, attributes=named) for number in range(1, 4)])
    assert seen.kept == [2]
    assert len(seen.reasons[2]) < 500


def test_attempts_without_uid_and_name_are_not_taken_for_one_pod(watch: Watch) -> None:
    nobody = {"k8s.pod.uid": "", "k8s.pod.name": ""}
    seen = watch(ATTEMPTS, [at(number, attributes=nobody) for number in range(1, 5)])
    assert (seen.kept, seen.explained[3]) == ([], "attempt 1 of a Pod without a name, fewer than 3")


def test_a_pod_is_forgotten_when_it_has_a_node(watch: Watch) -> None:
    results = ["Unschedulable", "Unschedulable", "Success", "Unschedulable"]
    seen = watch(ATTEMPTS, [at(number, result) for number, result in enumerate(results)])
    assert seen.kept == [2]


def test_a_pod_is_forgotten_when_nothing_was_heard_of_it(watch: Watch) -> None:
    policy = "{name: p, type: attempts, attempts: {min_attempts: 2, forget_after: 1m}}"
    seen = watch(policy, [at(0), at(59), at(119)])
    assert seen.kept == [1]
    assert seen.counted("policy_forgotten") == {"policy=p,reason=ttl": 1}


def test_the_pod_not_tried_for_longest_is_forgotten_when_there_are_too_many(watch: Watch) -> None:
    policy = "{name: p, type: attempts, attempts: {min_attempts: 2, max_pods: 2}}"
    pods = ["a", "b", "a", "c", "b", "a"]
    seen = watch(policy, [at(number, uid=uid) for number, uid in enumerate(pods)])
    assert seen.kept == [2]
    assert seen.counted("policy_forgotten") == {"policy=p,reason=full": 3}


def test_the_first_success_after_failures_is_kept(watch: Watch) -> None:
    results = ["Unschedulable", "Error", "Success"]
    seen = watch(RECOVERED, [at(number, result) for number, result in enumerate(results)])
    assert seen.kept == [2]
    assert seen.explained == [
        "Pod default/web-0 has no node yet: the attempt ended Unschedulable",
        "Pod default/web-0 has no node yet: the attempt ended Error",
        "Pod default/web-0 got a node after 2 failed attempts",
    ]


def test_a_success_after_fewer_failures_is_not_kept(watch: Watch) -> None:
    others = [at(3, "Unschedulable", uid="b", name="web-1"), at(4, "Success", uid="b", name="web-1")]
    seen = watch(RECOVERED, [at(1, "Success"), *others])
    assert seen.kept == []
    assert seen.explained[0] == "Pod default/web-0 got a node at the first attempt, fewer than 2"
    assert seen.explained[2] == "Pod default/web-1 got a node after 1 failed attempt, fewer than 2"


def test_failures_before_podtrail_began_are_known_from_the_schedulers_count(watch: Watch) -> None:
    seen = watch(RECOVERED, [at(1, "Success", attributes={"scheduler.attempts": 5})])
    assert seen.reasons == ["Pod default/web-0 got a node after 4 failed attempts"]


def test_failures_count_though_a_drop_policy_or_a_first_match_had_the_word(watch: Watch) -> None:
    failed = "{name: f, type: scheduling_result, scheduling_result: {results: [Unschedulable]}}"
    drop = f"{{name: d, type: drop, drop: {{drop_sub_policy: [{failed}]}}}}"
    attempts = [at(1), at(2), at(3, "Success")]
    assert watch(f"{drop}, {RECOVERED}", attempts).kept == [2]
    seen = watch(f"{failed}, {RECOVERED}", attempts, settings="sample_on_first_match: true")
    assert [verdict.policy for verdict in seen.verdicts] == ["f", "f", "p"]


def test_with_linked_traces_the_failures_come_back_with_the_success(watch: Watch) -> None:
    linked = "linked_traces: {keep: true, grace_period: 1m, join_on: [k8s.pod.uid]}"
    seen = watch(RECOVERED, [at(1), at(2), at(3, "Success"), at(4, uid="other", name="web-1")], settings=linked)
    assert seen.kept == [0, 1, 2]
    assert seen.reasons[2] == "Pod default/web-0 got a node after 2 failed attempts"


def test_a_shadow_learns_too(watch: Watch) -> None:
    shadow = RECOVERED.replace("name: p", "name: s, shadow: true")
    never = "{name: never, type: span_count, span_count: {min_spans: 1000}}"
    seen = watch(f"{never}, {shadow}", [at(1), at(2), at(3, "Success")])
    (vote,) = [vote for vote in seen.verdicts[2].explained() if vote.shadow]
    assert (vote.decision, vote.why) == ("sampled", "Pod default/web-0 got a node after 2 failed attempts")


@pytest.mark.parametrize("around", ["and: {and_sub_policy: [P]}", "composite: {max_total_spans_per_second: 9, X: [P]}"])
def test_they_may_be_parts_of_other_policies(watch: Watch, around: str) -> None:
    type, _, _ = around.partition(":")
    inner = around.replace("P]", f"{RECOVERED}]").replace("X", "composite_sub_policy")
    seen = watch(f"{{name: o, type: {type}, {inner}}}", [at(1), at(2), at(3, "Success")])
    assert seen.kept == [2]


def test_their_opposite_is_kept_by_not(watch: Watch) -> None:
    policy = f"{{name: o, type: not, not: {{not_sub_policy: {ATTEMPTS}}}}}"
    assert watch(policy, [at(number) for number in range(1, 5)]).kept == [0, 1]


def test_which_part_of_an_and_said_no_is_told_afterwards(watch: Watch) -> None:
    failed = "{name: f, type: scheduling_result, scheduling_result: {results: [Unschedulable]}}"
    policy = f"{{name: o, type: and, and: {{and_sub_policy: [{failed}, {ATTEMPTS}]}}}}"
    seen = watch(policy, [at(1), at(2)])
    assert seen.explained[1] == "p: attempt 2 of Pod default/web-0, fewer than 3"


def test_attempts_that_do_not_tell_how_they_ended_count(watch: Watch) -> None:
    silent = {"scheduler.result": ""}
    seen = watch(f"{ATTEMPTS}, {RECOVERED.replace('name: p', 'name: q')}", [at(n, attributes=silent) for n in (1, 2)])
    assert seen.kept == []
    last = at(3, "Success")
    seen = watch(RECOVERED, [at(1, attributes=silent), at(2, attributes=silent), last])
    assert seen.reasons[2] == "Pod default/web-0 got a node after 2 failed attempts"


def test_a_reload_goes_on_counting_with_other_settings() -> None:
    def sampler(min_attempts: int) -> Any:
        part = {"name": "p", "type": "attempts", "attempts": {"min_attempts": min_attempts}}
        whole = {"name": "o", "type": "and", "and": {"and_sub_policy": [part]}}
        return FACTORY.create(FACTORY.Config.model_validate({"policies": [whole]}), Context(id="tail_sampling"))

    before, after = sampler(5), sampler(3)
    said: list[Verdict] = []
    for number in range(1, 4):
        made = before if number < 3 else after
        if number == 3:
            after.take_over(before, START)
        made.add(Batch(at(number).groups(), START), START)
        said += [verdict for batch in made.drain(START) for verdict in batch.verdicts]
    assert [verdict.decision for verdict in said] == ["not_sampled", "not_sampled", "sampled"]


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.booleans(), st.integers(0, 40), st.integers(0, 4)),
        max_size=60,
    )
)
def test_numbers_are_those_of_a_memory_that_never_forgets_as_long_as_there_is_room(
    steps: list[tuple[str, bool, int, int]],
) -> None:
    tries, truth, now = Tries(limit=6, forget_after=MINUTE, forgotten=lambda *_: None), dict[str, tuple[int, int]](), 0
    for uid, failed, pause, declared in steps:
        now += pause * SECOND
        made = MadeAttempt(
            uid=uid, result="Unschedulable" if failed else "Success", attributes={"scheduler.attempts": declared}
        )
        attempt = attempt_of(made.groups())
        assert attempt is not None
        before, seen = truth.pop(uid, (0, now))
        expected = max((before if seen + MINUTE > now else 0) + 1, declared)
        if failed:
            truth[uid] = (expected, now)
        assert tries.count(attempt, "", now) == expected


def test_pods_without_a_uid_count_for_themselves_in_each_cluster() -> None:
    tries = Tries(limit=6, forget_after=MINUTE, forgotten=lambda *_: None)
    attempt = attempt_of(MadeAttempt(uid="", result="Unschedulable").groups())
    assert attempt is not None
    assert [tries.count(attempt, cluster, 0) for cluster in ("east", "west", "east", "")] == [1, 1, 2, 1]
