"""Events: what they say, how they become series, and what happens when they can't be written."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.event_recording.broadcaster import EventBroadcaster
from podtrail_scheduler.event_recording.event import Event, truncated
from podtrail_scheduler.framework.client import ApiError
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.durations import MILLISECOND, MINUTE, SECOND

from tests.scheduler.virtual_time import let_pass

START = 1_795_000_000 * SECOND + 123_456_789
POD = Pod("web", "shop", "u1", resource_version="7")
VICTIM = Pod("old", "shop", "u2", resource_version="8")


class Sink:
    """Keeps Events as the API server would."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.requests: list[tuple[str, Event]] = []
        self.failures: list[ApiError] = []
        self.events: dict[str, Event] = {}

    async def create_event(self, event: Event) -> None:
        await self._answer("create", event)
        if event.name in self.events:
            raise ApiError("exists", "AlreadyExists", 409)
        self.events[event.name] = event

    async def patch_event(self, event: Event) -> None:
        await self._answer("patch", event)
        if event.name not in self.events:
            raise ApiError("not found", "NotFound", 404)
        self.events[event.name] = event

    async def _answer(self, verb: str, event: Event) -> None:
        self.requests.append((verb, event))
        await self._timeline.sleep(5 * MILLISECOND)
        if self.failures:
            raise self.failures.pop(0)


class Bench:
    def __init__(self) -> None:
        self.timeline = Timeline(START, "test")
        self.sink = Sink(self.timeline)
        self.broadcaster = EventBroadcaster(self.sink, self.timeline)
        self.recorder = self.broadcaster.recorder("default-scheduler", "node-7")

    def fail(self, pod: Pod = POD, note: str = "0/3 nodes are available.") -> None:
        self.recorder(pod, None, "Warning", "FailedScheduling", "Scheduling", note)

    def run(self, duration: int = SECOND) -> None:
        let_pass(self.timeline, duration)

    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.sink.requests]


def count_of(event: Event) -> int:
    """How often an Event was observed that is a series."""
    assert event.series is not None
    return event.series.count


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.timeline.close()


def test_an_event_is_written_as_kube_scheduler_writes_it(bench: Bench) -> None:
    bench.recorder(VICTIM, POD, "Normal", "Preempted", "Preempting", "Preempted by pod u1 on node n")
    bench.run()
    [(verb, event)] = bench.sink.requests
    assert verb == "create"
    assert event.manifest() == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"old.{START:x}", "namespace": "shop"},
        "eventTime": "2026-11-18T11:06:40.123456Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-node-7",
        "action": "Preempting",
        "reason": "Preempted",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "shop",
            "name": "old",
            "uid": "u2",
            "resourceVersion": "8",
        },
        "related": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "shop",
            "name": "web",
            "uid": "u1",
            "resourceVersion": "7",
        },
        "note": "Preempted by pod u1 on node n",
        "type": "Normal",
    }


def test_recording_writes_nothing_at_once(bench: Bench) -> None:
    bench.fail()
    assert bench.sink.requests == []


def test_a_repetition_becomes_a_series_with_the_first_note(bench: Bench) -> None:
    bench.fail(note="first")
    bench.run()
    bench.fail(note="second")
    bench.run()
    [event] = bench.sink.events.values()
    assert (event.note, count_of(event)) == ("first", 2)
    assert bench.verbs() == ["create", "patch"]
    assert bench.sink.requests[1][1].series_patch() == {
        "series": {"count": 2, "lastObservedTime": "2026-11-18T11:06:41.123456Z"}
    }


def test_further_repetitions_are_counted_and_written_when_the_series_is_over(bench: Bench) -> None:
    for _ in range(5):
        bench.fail()
        bench.run()
    assert bench.verbs() == ["create", "patch"]
    bench.run(13 * MINUTE)
    [event] = bench.sink.events.values()
    assert count_of(event) == 5
    bench.fail()
    bench.run()
    assert len(bench.sink.events) == 2


def test_a_series_that_goes_on_is_written_every_half_hour(bench: Bench) -> None:
    for _ in range(32):
        bench.fail()
        bench.run(MINUTE)
    assert bench.verbs() == ["create", "patch", "patch"]
    [event] = bench.sink.events.values()
    assert count_of(event) >= 29


def test_a_changed_pod_begins_a_new_event(bench: Bench) -> None:
    bench.fail()
    bench.fail(replace(POD, resource_version="9"))
    bench.run()
    assert bench.verbs() == ["create", "create"]


def test_when_nothing_is_remembered_nothing_is_planned(bench: Bench) -> None:
    bench.fail()
    bench.run(13 * MINUTE)
    assert bench.timeline.next_time() is None


def test_a_series_whose_event_is_gone_is_created(bench: Bench) -> None:
    bench.fail()
    bench.run()
    bench.sink.events.clear()
    bench.fail()
    bench.run()
    assert bench.verbs() == ["create", "patch", "create"]


def test_without_an_answer_it_is_tried_again_and_then_given_up(bench: Bench) -> None:
    bench.sink.failures = [ApiError("no answer")] * 99
    bench.fail()
    bench.run(5 * MINUTE)
    assert len(bench.sink.requests) == 12
    assert bench.broadcaster.dropped["retries_exhausted"] == 1


def test_an_event_that_is_refused_is_not_tried_again(bench: Bench) -> None:
    bench.sink.failures = [ApiError("namespace is terminating", "Forbidden", 403)]
    bench.fail()
    bench.run(MINUTE)
    assert len(bench.sink.requests) == 1
    assert bench.broadcaster.dropped["rejected"] == 1


def test_events_that_fail_hold_up_no_others(bench: Bench) -> None:
    bench.sink.failures = [ApiError("no answer")]
    bench.fail()
    bench.run(0)
    bench.fail(VICTIM)
    bench.run()
    assert [event.regarding.name for event in bench.sink.events.values()] == ["old"]
    bench.run(11 * SECOND)
    assert len(bench.sink.events) == 2


def test_what_does_not_fit_the_queue_is_counted(bench: Bench) -> None:
    for number in range(1100):
        bench.fail(Pod(f"pod-{number}", uid=str(number)))
    assert bench.broadcaster.dropped["queue_full"] == 100
    bench.run(10 * SECOND)
    assert len(bench.sink.events) == 1000


def test_a_long_note_is_cut_to_a_kilobyte(bench: Bench) -> None:
    assert truncated("x" * 1024) == "x" * 1024
    assert truncated("x" * 1025) == "x" * 1020 + " ..."
    assert len(truncated("ä" * 1000).encode()) <= 1024
    assert truncated("ä" * 1000).endswith("ä ...")
    bench.fail(note="x" * 2000)
    bench.run()
    assert len(bench.sink.requests[0][1].note) == 1024
