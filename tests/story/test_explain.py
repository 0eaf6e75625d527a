"""The five cases of a Pod that waits or was slow, told from a recording of the simulated scheduler or made attempts."""

from pathlib import Path

import pytest

from podtrail.otlp import Batch, Event, Group, Link, Value, encode_span, frame, split
from podtrail.recording import Record, read_recording
from podtrail.story import Explanation, Library, PodStory, plain
from podtrail.testing.attempts import MS, START, MadeAttempt, No, no_room, nodes

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "scheduler.otlp.gz"
SECOND = 1_000_000_000
NOW = START + 252 * SECOND
EVENT = "Next try: when a Node or Pod event may help TaintToleration, NodeAffinity or NodeResourcesFit, "
HOSTILE = "x\x1b]8;;http://x\x07\u202e\n[red]"


@pytest.fixture(scope="module")
def recorded() -> Library:
    library = Library()
    for record in read_recording(RECORDING):
        assert isinstance(record, Record)
        library.keep(record.intake.groups, record.arrival)
    return library


def library_of(*batches: Batch) -> Library:
    library = Library()
    for batch in batches:
        library.decide("traces", batch)
        library.keep(batch.groups, batch.arrived)
    return library


def pod_of(library: Library, name: str = "web-0") -> PodStory:
    (pod,) = library.find(name, "default")
    return pod


def lines(library: Library, name: str = "web-0", now: int = NOW, attempt: int | None = None) -> list[str]:
    told = library.why_pod(pod_of(library, name), now, live=True, attempt=attempt)
    assert isinstance(told, Explanation)
    assert len(told.lines) <= 12
    return list(map(plain, told.lines))


def from_recording(library: Library, name: str) -> list[str]:
    return lines(library, name, library.stories.latest)


def test_unschedulable_names_plugins_reasons_nodes_and_when_it_is_tried_again() -> None:
    attempts = [no_room(number=n, start=START + n * SECOND) for n in (1, 2)]
    assert lines(library_of(*(attempt.batch() for attempt in attempts))) == [
        "default/web-0 is Pending for 4m 11s: unschedulable. 2 attempts, last 4m 10s ago.",
        "No node fits. 34 nodes, each under the first plugin that said no:",
        "   1  TaintToleration   untolerated taint(s)  cp-0",
        "  31  NodeAffinity      no match              node-00, node-01, 29 more",
        "   2  NodeResourcesFit  Insufficient cpu      tight0, tight1",
        "Preemption does not help: 1 no victims, 33 not helpful.",
        "Same answer in all 2 attempts, since 14:13:21 UTC.",
        EVENT + "or by 14:18:22 UTC.",
        f"Trace {attempts[1].trace_id.hex()}, attempt 2: kept by failed",
    ]


def test_unschedulable_in_the_recording_counts_the_attempts_before_it_as_well(recorded: Library) -> None:
    told = from_recording(recorded, "huge-0")
    assert told[0].startswith("default/huge-0 is Pending for at least 22 s: unschedulable. 54 attempts, last just now.")
    assert told[2].split()[:2] == ["3", "TaintToleration"]
    assert told[3].split()[:2] == ["12", "NodeResourcesFit"]
    assert "Same answer in the 3 attempts seen of 54, since 17:52:11 UTC." in told


def test_what_only_the_message_tells_is_said_to_be_so() -> None:
    dropped = no_room().batch("not_sampled", "", "no policy said yes")
    dropped.verdicts[0].groups = list(map(root_only, dropped.verdicts[0].groups))
    told = lines(library_of(dropped))
    assert "No node fits. 34 nodes, by the scheduler's message, which counts reasons:" in told
    assert any("not in this source" in line for line in told)
    assert told[-1].endswith("not kept: no policy said yes")


def root_only(group: Group) -> Group:
    root = split(group.spans)[:1]
    return group._replace(spans=frame(root), span_count=1)


def test_an_attempt_that_was_not_kept_is_told_in_full_while_its_decision_is_held() -> None:
    told = lines(library_of(no_room().batch("not_sampled", "", "no policy said yes")))
    assert "  31  NodeAffinity      no match              node-00, node-01, 29 more" in told
    refused = MadeAttempt(result="Error", bind_error="is forbidden: no").batch("not_sampled", "", "no policy said yes")
    pod = pod_of(library_of(refused))
    assert (pod.node, pod.attempts[0].kept) == ("node-07", False)


def test_more_refusals_than_lines_are_counted() -> None:
    refusals = [No(plugin=f"Plugin{n}", reason="no", nodes=nodes(2)) for n in range(20)]
    told = lines(library_of(no_room(refusals=refusals).batch()))
    assert len(told) == 12
    shown = [line for line in told if "Plugin" in line and "Next" not in line]
    assert f"  {20 - len(shown)} more reasons (-v)" in told


def test_gated_names_the_gates_and_who_must_act() -> None:
    library = Library()
    library.stories.note_gated("u", "default", "web-0", ["example.com/quota", "b"], START)
    assert lines(library) == [
        "default/web-0 is gated for 4m 12s: the scheduler has not tried it. 0 attempts.",
        "Gates left: example.com/quota, b   (spec.schedulingGates)",
        "Whoever set them must remove them; the scheduler starts when none is left.",
        "Evidence: the scheduler's Pod watch since 14:13:20 UTC. Who created it: not in this source.",
    ]


def test_a_pod_whose_gates_are_gone_and_that_was_not_tried_waits() -> None:
    library = Library()
    library.stories.note_gated("u", "default", "web-0", [], START)
    first, gates, others, *_ = lines(library)
    assert "waiting, the scheduler has not tried it" in first
    assert gates == "Its gates are gone."
    assert others == "No other Pod was scheduled meanwhile, as far as is known."


def test_preempting_names_node_and_victims_and_that_the_node_is_not_reserved(recorded: Library) -> None:
    told = from_recording(recorded, "critical-13")
    assert told[0].startswith("default/critical-13 is Pending for 17.2 s: preempting on node-3. 2 attempts, last 16 s")
    assert told[1:6] == [
        "Attempt 1: no node fits (12 NodeResourcesFit, 3 TaintToleration); chose node-3 and 1 Pod to evict there:",
        "  default/batch-54",
        "Attempt 2: not eligible due to a terminating pod on the nominated node.",
        "Whether they are gone: not in this source.",
        "Next try: when they are gone. node-3 is nominated, not reserved: a Pod of higher priority may take the room.",
    ]


def test_preempting_without_victims_in_the_source_says_so() -> None:
    told = lines(library_of(no_room(nominated="tight0").batch()))
    assert "chose tight0 and Pods to evict there (which: not in this source)." in told[1]


def test_slow_says_where_the_time_went_and_how_long_that_usually_takes(recorded: Library) -> None:
    told = from_recording(recorded, "train-0")
    assert told[:4] == [
        "default/train-0 was scheduled on gpu-0 in 4 s: slow. 1 attempt. Median of 8 attempts: 3.37 ms.",
        "Queue 0 s, scheduling 314 µs, binding 4 s.",
        "  100 %  preBind, plugin VolumeBinding  4 s  its median: 22.4 µs",
        "VolumeBinding took at least half as long in 1 of its last 11 calls seen, first at 17:43:27 UTC.",
    ]
    assert from_recording(recorded, "costly-0")[2] == "  100 %  score, plugin CostScorer  1.2 s  its median: 1.2 s"


def test_slow_without_spans_says_that_this_source_does_not_tell() -> None:
    library = Library()
    slow = MadeAttempt(duration=4_310 * MS)
    library.stories.observe(slow.batch("not_sampled", "", "no policy said yes"))
    told = lines(library)
    assert told[0] == "default/web-0 was scheduled on node-07 in 4.31 s: slow. 1 attempt."
    assert "Where the time went: not in this source" in told[2]


def test_a_refused_bind_gives_the_api_servers_words_and_a_command_that_looks(recorded: Library) -> None:
    told = from_recording(recorded, "frozen-0")
    assert "bind refused by the API server. 3 attempts" in told[0]
    assert told[1:5] == [
        "A node was found each time, last node-2 (9 of 13 fit). The bind was denied:",
        "  ValidatingAdmissionPolicy 'no-binding' with binding 'no-binding' denied request: not today",
        "Room is not the problem. Retried with growing back-off, at most 10 s; the next was due by 17:43:26 UTC.",
        "Look: kubectl get validatingadmissionpolicy no-binding -o yaml",
    ]


def api_call(path: str, status: int) -> tuple[Batch, Link]:
    """A span of the API server, and a link to it."""
    trace_id, span_id = path.encode().ljust(16, b"t")[-16:], b"a" * 8
    attributes: dict[str, Value] = {
        "http.request.method": "POST",
        "url.path": path,
        "http.response.status_code": status,
        "audit-id": "7d3c",
    }
    span = encode_span(
        trace_id=trace_id, span_id=span_id, name="POST", start=START, end=START + 3 * MS, attributes=attributes
    )
    kind = "binding" if "binding" in path else "creation"
    return Batch([Group(b"", b"", trace_id, frame([span]), 1)], START), Link(
        trace_id, span_id, {"podtrail.link.type": kind}
    )


def test_the_api_servers_call_is_told_where_it_is_linked() -> None:
    path = "/api/v1/namespaces/default/pods/web-0/binding"
    call, link = api_call(path, 422)
    refused = MadeAttempt(result="Error", bind_error='pods "web-0" is forbidden: no', links=[link])
    assert f"  POST {path}  422  audit-id 7d3c  3 ms" in lines(library_of(call, refused.batch()))
    call, link = api_call("/api/v1/namespaces/default/pods", 201)
    told = lines(library_of(call, MadeAttempt(links=[link]).batch()))
    assert told[2].startswith("Created by POST /api/v1/namespaces/default/pods  201  audit-id 7d3c  3 ms, trace ")


def test_no_command_is_made_of_a_name_that_a_shell_would_act_on() -> None:
    error = "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'a; rm -rf /' with binding 'b' denied request: no"
    told = lines(library_of(MadeAttempt(result="Error", bind_error=error).batch()))
    assert not any(line.startswith("Look:") for line in told)


def test_scheduled_after_failures_tells_what_the_last_of_them_met() -> None:
    told = lines(library_of(no_room().batch(), MadeAttempt(number=2, start=START + SECOND).batch()))
    assert told[0] == "default/web-0 was scheduled on node-07 in 1.01 s. 2 attempts."
    assert told[1] == (
        "1 attempt before failed, the last of them: Unschedulable: 31 NodeAffinity, 2 NodeResourcesFit, "
        "1 TaintToleration."
    )
    assert told[2] == "Attempt 2: queue 2 ms, scheduling 8.01 ms, binding 900 µs."


def test_an_attempt_before_that_succeeded_is_not_said_to_have_failed() -> None:
    again = MadeAttempt(number=2, start=START + SECOND)
    assert (
        lines(library_of(MadeAttempt().batch(), again.batch()))[1]
        == "1 attempt before, the last of them: Success: node-07."
    )
    third = MadeAttempt(number=3, start=START + 2 * SECOND)
    told = lines(library_of(MadeAttempt().batch(), no_room(number=2, start=START + SECOND).batch(), third.batch()))
    assert told[1].startswith("2 attempts before, the last of them: Unschedulable: 31 NodeAffinity")


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (MadeAttempt(result="Error", message="etcd is gone"), "  etcd is gone"),
        (MadeAttempt(result=""), "No attempt with a result was seen"),
        (MadeAttempt(result="", attributes={"scheduler.selected_node": "node-1"}), "being bound to node-1"),
    ],
)
def test_other_states_are_told_as_well(attempt: MadeAttempt, words: str) -> None:
    assert words in "\n".join(lines(library_of(attempt.batch())))


def test_one_attempt_can_be_asked_for_and_an_unknown_one_is_none() -> None:
    library = library_of(no_room().batch(), MadeAttempt(number=2, start=START + SECOND).batch())
    first = lines(library, attempt=1)
    assert first[0] == "Attempt 1 of 2 of default/web-0, 14:13:20 UTC: Unschedulable, took 9 ms."
    assert any("31  NodeAffinity" in line for line in first)
    assert lines(library, attempt=2)[1] == "It chose node-07."
    assert library.why_pod(pod_of(library), NOW, live=True, attempt=3) is None


def test_the_details_compare_the_first_attempt_with_the_last(recorded: Library) -> None:
    told = recorded.why_pod(pod_of(recorded, "critical-13"), recorded.stories.latest, live=True)
    assert told is not None
    details = list(map(plain, told.details))
    assert "Attempt 1 compared with attempt 2:" in details
    assert next(line.split() for line in details if "NodeResourcesFit" in line)[-3:] == ["12", "12", "same"]


def test_hostile_text_stays_text_and_in_one_line() -> None:
    hostile = no_room(
        namespace=HOSTILE, name=HOSTILE, message=HOSTILE, nominated=HOSTILE, attributes={"scheduler.profile": HOSTILE}
    )
    refused = MadeAttempt(
        number=2, start=START + 1, namespace=HOSTILE, name=HOSTILE, result="Error", bind_error=HOSTILE
    )
    for batches in ([hostile], [hostile, refused], [refused]):
        library = library_of(*(attempt.batch("sampled", HOSTILE, HOSTILE) for attempt in batches))
        (pod,) = library.stories.pods()
        told = library.why_pod(pod, NOW, live=False)
        assert told is not None
        for line in (*told.lines, *told.details):
            assert plain(line).isprintable()


def test_victims_are_told_from_the_span_of_the_preemption() -> None:
    attempt = no_room(nominated="tight0")
    victims: dict[str, object] = {
        "scheduler.nominated_node": "tight0",
        "scheduler.victims.count": 12,
        "scheduler.victims.names": [f"batch/low-{n}" for n in range(9)],
    }
    span = encode_span(
        trace_id=attempt.trace_id,
        span_id=b"v" * 8,
        name="plugin: DefaultPreemption",
        start=START,
        end=START + 1,
        events=[Event(START, "preemption", victims)],  # type: ignore[arg-type] # values are of OTLP's kinds
    )
    (group,) = attempt.groups()
    library = library_of(attempt.batch(), Batch([group._replace(spans=frame([span]), span_count=1)], START))
    told = lines(library)
    assert told[1].endswith("chose tight0 and 12 Pods to evict there:")
    assert told[2:7] == ["  batch/low-0", "  batch/low-1", "  batch/low-2", "  batch/low-3", "  8 more"]
