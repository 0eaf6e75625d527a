from dataclasses import replace

import pytest

from podtrail.otlp import Batch, Link
from podtrail.story import PodStory, Stories, to_json
from podtrail.testing.attempts import MS, START, MadeAttempt, no_room

SECOND = 1_000_000_000
NOW = START + 252 * SECOND


def told(*batches: Batch) -> PodStory:
    stories = Stories()
    for batch in batches:
        stories.observe(batch)
    (pod,) = stories.pods()
    return pod


def test_a_pod_without_room_is_unschedulable_and_says_who_said_no_in_plugin_order() -> None:
    pod = told(no_room().batch())
    assert (pod.state, pod.namespace, pod.name, pod.tries) == ("unschedulable", "default", "web-0", 1)
    assert pod.headline == "31 NodeAffinity, 2 NodeResourcesFit, 1 more"
    assert pod.last is not None
    why = pod.last.why
    assert [(no.plugin, no.nodes) for no in why.rejections] == [
        ("TaintToleration", 1),
        ("NodeAffinity", 31),
        ("NodeResourcesFit", 2),
    ]
    assert (why.feasible, why.evaluated, why.nodes) == (0, 34, 34)
    assert why.rejections[0].names == ("cp-0",)
    assert len(why.rejections[1].names) == 10
    assert why.preemption.startswith("1 No preemption victims")


def test_a_dropped_attempt_counts_and_tells_its_reasons_from_the_message() -> None:
    pod = told(no_room().batch("not_sampled", "", "no policy said yes"))
    assert pod.state == "unschedulable"
    assert pod.last is not None
    assert (pod.last.kept, pod.last.decision, pod.last.reason) == (False, "not_sampled", "no policy said yes")
    assert pod.last.why.message_only
    assert {no.plugin: no.nodes for no in pod.last.why.rejections} == {
        "TaintToleration": 1,
        "NodeResourcesFit": 2,
        "NodeAffinity": 31,
    }
    assert pod.last.cycle is None


def test_a_scheduled_pod_names_its_node_and_how_long_it_waited_in_all() -> None:
    first = no_room()
    second = MadeAttempt(number=2, start=START + 10 * SECOND, queue_wait_ms=10_000)
    pod = told(second.batch(), first.batch())
    assert (pod.state, pod.node, pod.headline) == ("scheduled", "node-07", "on node-07")
    assert [attempt.number for attempt in pod.attempts] == [1, 2]
    assert pod.waiting(NOW) == 10 * SECOND + 9 * MS + 2 * MS


def test_a_refused_bind_shows_the_words_of_the_refusal() -> None:
    pod = told(MadeAttempt(result="Error", bind_error="denied by no-binding").batch())
    assert (pod.state, pod.headline, pod.node) == ("bind refused", "denied by no-binding", "node-07")


@pytest.mark.parametrize(
    ("attempt", "state"),
    [
        (no_room(nominated="tight0"), "preempting"),
        (no_room(message="not eligible due to a terminating pod on the nominated node."), "preempting"),
        (MadeAttempt(result="Error", message="plugin panicked"), "error"),
        (MadeAttempt(result="", node=""), "waiting"),
        (MadeAttempt(result="", attributes={"scheduler.selected_node": "node-07"}), "binding"),
    ],
)
def test_the_last_attempt_gives_the_state(attempt: MadeAttempt, state: str) -> None:
    assert told(attempt.batch()).state == state


def test_a_gated_pod_has_no_attempt_and_names_its_gates_until_it_is_tried() -> None:
    stories = Stories()
    stories.note_gated("1f3c0a52-0000-4000-8000-000000000001", "default", "web-0", ["example.com/quota", "b"], START)
    (pod,) = stories.pods()
    assert (pod.state, pod.tries, pod.waiting(NOW)) == ("gated", 0, 252 * SECOND)
    assert pod.headline == "gates: example.com/quota, 1 more"
    stories.observe(MadeAttempt().batch())
    assert [pod.state for pod in stories.pods()] == ["scheduled"]


def test_spans_and_verdicts_may_come_by_different_ways_in_any_order() -> None:
    whole = no_room().batch()
    verdict, spans = replace(whole, groups=()), replace(whole, verdicts=())
    expected = told(whole)
    assert told(verdict, spans) == expected
    assert told(spans, verdict) == expected
    assert told(spans, verdict, spans, verdict, whole) == expected


def test_spans_of_one_attempt_may_come_one_by_one_with_the_root_last() -> None:
    from podtrail.otlp import frame, split

    (group,) = no_room().groups()
    root, *others = split(group.spans)
    batches = [Batch([group._replace(spans=frame([span]), span_count=1)], START) for span in (*others, root)]
    assert told(*batches) == told(Batch([group], START))


def test_attempts_without_a_number_are_counted_on_from_the_last_known_one() -> None:
    attempts = [no_room(number=n, start=START + n * SECOND, attributes={"podtrail.attempt.number": 0}) for n in (1, 2)]
    numbered = no_room(number=7, start=START + 7 * SECOND)
    pod = told(*(attempt.batch() for attempt in (*attempts, numbered)))
    assert [attempt.number for attempt in pod.attempts] == [1, 2, 7]
    assert (pod.tries, pod.seen, pod.same) == (7, 3, 3)


def test_the_urgent_stand_first_then_those_that_wait_longest() -> None:
    stories = Stories()
    stories.observe(MadeAttempt(uid="a", name="done").batch())
    stories.observe(no_room(uid="b", name="new", start=START + SECOND).batch())
    stories.observe(no_room(uid="c", name="old").batch())
    stories.observe(MadeAttempt(uid="d", name="frozen", result="Error", bind_error="denied").batch())
    assert [pod.name for pod in stories.pods()] == ["frozen", "old", "new", "done"]


def test_a_slow_attempt_is_named_with_the_plugin_that_took_the_time() -> None:
    from podtrail.testing.attempts import No

    slow = MadeAttempt(duration=4 * SECOND, refusals=[No(plugin="CostScorer", reason="dear", nodes=["a"])])
    pod = told(slow.batch())
    assert pod.slow
    assert pod.headline == "filter: CostScorer took 40 %"


def test_a_pod_created_anew_is_another_pod() -> None:
    stories = Stories()
    stories.observe(MadeAttempt(uid="a").batch())
    stories.observe(MadeAttempt(uid="b").batch())
    assert {pod.uid for pod in stories.named("web-0", "default")} == {"a", "b"}


def test_pods_are_bounded_by_number_and_bytes_and_the_sums_stay() -> None:
    few = Stories(max_pods=10)
    small = Stories(max_bytes=200_000)
    for n in range(500):
        batch = no_room(uid=f"uid-{n}").batch()
        few.observe(batch)
        small.observe(batch)
    assert [len(few), few.tallies.forgotten_pods, few.tallies.attempts["Unschedulable"]] == [10, 490, 500]
    assert few.pod("uid-499")
    assert few.pod("uid-0") is None
    assert 0 < small.size <= 230_000


def test_attempts_of_a_pod_are_bounded_and_the_first_stays() -> None:
    stories = Stories(max_attempts=5)
    for n in range(1, 41):
        stories.observe(no_room(number=n, start=START + n * SECOND, attributes={"podtrail.attempt.number": 0}).batch())
    (pod,) = stories.pods()
    assert (pod.tries, pod.forgotten) == (40, 35)
    assert [attempt.number for attempt in pod.attempts] == [1, 37, 38, 39, 40]


def test_an_attempt_that_comes_again_after_its_pod_had_too_many_is_counted_once() -> None:
    stories = Stories(max_attempts=5)
    attempts = [no_room(number=n, start=START + n * SECOND) for n in range(1, 41)]
    for attempt in attempts:  # a verdict tells of each at once, its spans come when their neighbours are decided
        stories.observe(attempt.batch())
    for attempt in attempts:
        stories.observe(attempt.batch())
    assert stories.tallies.attempts["Unschedulable"] == 40
    (pod,) = stories.pods()
    assert (pod.tries, pod.forgotten) == (40, 35)


def test_links_are_counted_by_type_with_those_not_resolved() -> None:
    kinds = [("creation", True), ("previous-attempt", False)]
    links = [Link(b"t" * 16, b"s" * 8, {"podtrail.link.type": k, "podtrail.link.resolved": r}) for k, r in kinds]
    stories = Stories()
    stories.observe(no_room(links=links).batch())
    assert stories.tallies.links == {"creation": 1, "previous-attempt": 1}
    assert stories.tallies.unresolved == 1


def test_a_trace_finds_its_attempt_and_its_pod() -> None:
    stories = Stories()
    stories.observe(no_room().batch())
    found = stories.attempt(no_room().trace_id)
    assert found is not None
    assert (found[0].name, found[1].number) == ("web-0", 1)
    assert stories.attempt(b"x" * 16) is None


def test_a_story_is_json_with_ids_in_hex_and_times_in_digits() -> None:
    story = to_json(told(no_room().batch()))
    assert isinstance(story, dict)
    assert story["sinceUnixNano"] == str(START - 2 * MS)
    attempts = story["attempts"]
    assert isinstance(attempts, list)
    assert isinstance(attempts[0], dict)
    assert attempts[0]["traceId"] == no_room().trace_id.hex()


def test_an_attempt_whose_beginning_nothing_tells_has_no_duration() -> None:
    inferred = ["attempts: counted", "start: the first line that tells of the attempt; nothing tells its beginning"]
    pod = told(no_room(attributes={"podtrail.inferred": inferred}).batch())
    assert [attempt.duration for attempt in pod.attempts] == [None]
    by_trace = ["start: as the trace in the log says, to the millisecond"]
    pod = told(no_room(attributes={"podtrail.inferred": by_trace}).batch())
    assert all(attempt.duration for attempt in pod.attempts)


def test_pods_are_found_by_name_whatever_was_forgotten_meanwhile() -> None:
    stories = Stories(max_pods=20)
    for number in range(200):
        name, namespace = ("", "web-0", "web-1")[number % 3], f"ns-{number % 2}"
        stories.observe(MadeAttempt(uid=f"{number * 7 % 30}", name=name, namespace=namespace).batch())
        for asked in ("", "web-0", "web-1", "nobody"):
            there = {pod.key for pod in stories.each() if pod.name == asked}
            assert {pod.key for pod in stories.named(asked)} == there
            within = {pod.key for pod in stories.each() if (pod.namespace, pod.name) == ("ns-1", asked)}
            assert {pod.key for pod in stories.named(asked, "ns-1")} == within
