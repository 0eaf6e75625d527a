"""`scheduling_metrics` says how many Pods wait, since when, and which plugins said no to them."""

from collections.abc import Mapping

import pytest
from podtrail_processors.scheduling_metrics import FACTORY, Config

from podtrail.component import Context
from podtrail.otlp import Batch, frame, split
from podtrail.reconstruction.pod_observer import PodObserver
from podtrail.testing.attempts import MS, MadeAttempt, no_room

SECOND = 1000 * MS
FIRST = MadeAttempt().start
PROFILE = "profile=default-scheduler"
THREE = {f"plugin={plugin},{PROFILE}" for plugin in ("NodeAffinity", "NodeResourcesFit", "TaintToleration")}


class Waiting:
    """A processor, told attempts at moments."""

    def __init__(self, **settings: object) -> None:
        self.context = Context(id="scheduling_metrics")
        self.made = FACTORY.create(Config.model_validate(settings), self.context)

    def send(self, attempt: MadeAttempt, now: int = 1) -> None:
        self.made.add(Batch(attempt.groups(), now), now)

    @property
    def pods(self) -> Mapping[str, float]:
        return self.context.metrics.snapshot()["podtrail_scheduling_pending_pods"]

    @property
    def since(self) -> Mapping[str, float]:
        return self.context.metrics.snapshot()["podtrail_scheduling_pending_since_timestamp_seconds"]


@pytest.fixture(name="waiting")
def _waiting() -> Waiting:
    return Waiting()


def test_a_pod_waits_from_its_first_failed_attempt_to_its_success(waiting: Waiting) -> None:
    first = no_room(start=FIRST)
    waiting.send(first)
    waiting.send(no_room(start=FIRST + 60 * SECOND, number=2))
    assert dict(waiting.pods) == dict.fromkeys(THREE, 1)
    assert set(waiting.since.values()) == {(first.start + first.duration) / SECOND}
    waiting.send(MadeAttempt(start=FIRST + 120 * SECOND, number=3))
    assert waiting.pods == waiting.since == {}


@pytest.mark.parametrize("change", ["DELETED", "MODIFIED"])
def test_a_pod_that_a_watch_shows_deleted_or_bound_waits_no_more(waiting: Waiting, change: str) -> None:
    made = no_room()
    waiting.send(made)
    metadata = {"namespace": "default", "name": "web-0", "uid": made.uid}
    pod = {"metadata": metadata, "spec": {"nodeName": "n1"} if change == "MODIFIED" else {}}
    waiting.made.add(Batch(PodObserver().take(change, pod, 1), 1), 1)
    assert waiting.pods == {}


def test_a_pod_counts_under_those_who_said_no_in_its_latest_attempt(waiting: Waiting) -> None:
    waiting.send(no_room())
    waiting.send(MadeAttempt(number=2, start=FIRST + SECOND, result="Error", message="the API server is down"))
    assert waiting.pods == {f"plugin=unknown,{PROFILE}": 1}


def test_pods_are_counted_together_since_the_first_of_them(waiting: Waiting) -> None:
    first = no_room(uid="one", start=FIRST)
    waiting.send(no_room(uid="two", start=FIRST + 5 * SECOND))
    waiting.send(first)
    assert dict(waiting.pods) == dict.fromkeys(THREE, 2)
    assert set(waiting.since.values()) == {(first.start + first.duration) / SECOND}


def test_spans_that_come_after_their_root_tell_who_said_no(waiting: Waiting) -> None:
    (group,) = no_room(message="").groups()
    root, *rest = split(group.spans)
    waiting.made.add(Batch([group._replace(spans=frame([root]), span_count=1)], 1), 1)
    assert waiting.pods == {f"plugin=unknown,{PROFILE}": 1}
    waiting.made.add(Batch([group._replace(spans=frame(rest), span_count=len(rest))], 1), 1)
    assert dict(waiting.pods) == dict.fromkeys(THREE, 1)


def test_an_attempt_that_comes_late_or_again_changes_nothing(waiting: Waiting) -> None:
    waiting.send(no_room(number=2, start=FIRST + SECOND))
    waiting.send(no_room(number=2, start=FIRST + SECOND))
    waiting.send(MadeAttempt(number=1, start=FIRST))
    assert dict(waiting.pods) == dict.fromkeys(THREE, 1)


def test_a_pod_that_is_tried_no_more_is_forgotten_at_its_time() -> None:
    waiting = Waiting(pending_forgotten_after="10m")
    waiting.send(no_room(), 5)
    assert waiting.made.deadline() == 5 + 600 * SECOND
    assert waiting.made.expire(4 + 600 * SECOND, 1000) == ()
    assert waiting.pods
    waiting.made.expire(5 + 600 * SECOND, 1000)
    assert (waiting.pods, waiting.made.deadline()) == ({}, None)


def test_no_more_than_so_many_are_remembered_and_they_outlive_a_reload() -> None:
    before, after = Waiting(), Waiting(max_pending_pods=2)
    for uid in ("one", "two", "three"):
        before.send(no_room(uid=uid))
    after.made.take_over(before.made, 1)
    assert set(after.pods.values()) == {2}
    after.send(no_room(uid="four"))
    assert set(after.pods.values()) == {2}
    assert set(Waiting(max_pending_pods=0).pods.values()) == set()
