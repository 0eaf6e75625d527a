"""How victims are made to go while the Pod that preempts them waits (KEP-4832)."""

from dataclasses import replace
from typing import Any

import pytest
from podtrail_scheduler.framework.client import ApiError, PodCondition
from podtrail_scheduler.framework.status import error, unresolvable
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.plugins.preemption.victims import Candidate

BIG = Pod("big", uid="big", requests={"cpu": 3000}, priority=100, scheduler_name="mine")
WAITS = unresolvable("waiting for the preemption for this pod to be finished")
CONDITION = PodCondition(
    "DisruptionTarget", "True", "PreemptionByScheduler", "mine: preempting to accommodate a higher priority pod"
)
REFUSED = ApiError("etcdserver: request timed out", "InternalError", 500)


def pod(name: str, cpu: int, priority: int = 0, **fields: Any) -> Pod:
    return Pod(name, uid=name, requests={"cpu": cpu}, priority=priority, **fields)


def test_victims_get_the_condition_are_deleted_and_told(cluster: Any) -> None:
    cluster.node("n1", pod("a", 2000, 1), pod("b", 2000))
    cluster.preempt(BIG)
    assert cluster.client.log == [
        ("patch", "a", CONDITION, None),
        ("delete", "a"),
        ("patch", "b", CONDITION, None),
        ("delete", "b"),
    ]
    assert cluster.events == [
        ("default/a", "Preempted by pod big on node n1"),
        ("default/b", "Preempted by pod big on node n1"),
    ]
    assert cluster.activated == []


def test_a_victim_that_has_the_condition_is_only_deleted(cluster: Any) -> None:
    cluster.node("n1", pod("a", 4000, conditions={"DisruptionTarget": CONDITION[1:]}))
    cluster.preempt(BIG)
    assert cluster.client.log == [("delete", "a")]


def test_a_victim_that_terminates_already_needs_no_request(cluster: Any) -> None:
    cluster.node("n1", pod("a", 4000, deletion_timestamp=1))
    assert cluster.preempt(BIG) == ("n1", [])
    assert cluster.plugin.pre_enqueue(BIG) is None


def test_the_pod_waits_outside_the_queue_until_the_last_victim_goes(cluster: Any) -> None:
    cluster.node("n1", pod("a", 2000, 1), pod("b", 2000))
    seen = {}
    cluster.client.watch = lambda name: seen.update({name: cluster.plugin.pre_enqueue(BIG)})
    cluster.try_for(BIG)
    assert cluster.plugin.pre_enqueue(BIG) == WAITS
    assert cluster.plugin.pre_enqueue(pod("other", 1)) is None
    cluster.clock.run()
    assert seen == {"a": WAITS, "b": None}
    assert cluster.plugin.pre_enqueue(BIG) is None


def test_the_pods_user_is_told_what_is_waited_for_where_pre_enqueue_writes_the_status(cluster: Any) -> None:
    cluster.handle.pre_enqueue_pod_status = True
    cluster.node("n1", pod("a", 2000, 1), pod("b", 2000))
    cluster.try_for(BIG)
    assert cluster.plugin.pre_enqueue(BIG) == unresolvable(
        "Waiting for the pods of lower priority that make room for this pod to be told to end"
    )
    cluster.clock.run()
    assert cluster.plugin.pre_enqueue(BIG) is None


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_deletion_that_fails_gives_the_pod_another_attempt(
    cluster: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.node("n1", pod("a", 2000, 1), pod("b", 2000))
    cluster.client.refusals[name] = REFUSED
    cluster.preempt(BIG)
    assert cluster.activated == ["big"]
    assert cluster.client.deleted == ([] if name == "a" else ["a"])
    assert cluster.plugin.pre_enqueue(BIG) is None
    assert "preemption for default/big on node n1: etcdserver: request timed out" in caplog.text


def test_a_victim_that_is_gone_already_is_no_failure_and_no_event(cluster: Any) -> None:
    cluster.node("n1", pod("a", 2000, 1), pod("b", 2000))
    cluster.client.refusals["a"] = ApiError('pods "a" not found', "NotFound", 404)
    cluster.preempt(BIG)
    assert cluster.client.deleted == ["b"]
    assert [key for key, _ in cluster.events] == ["default/b"]
    assert cluster.activated == []


@pytest.mark.parametrize("last_is_refused", [False, True])
def test_a_pod_that_was_kept_back_until_all_victims_were_gone_is_tried_again(
    cluster: Any, last_is_refused: bool
) -> None:
    """Nobody tells of the last one's end any more: it was seen while the others were dealt with."""
    cluster.node("n1", pod("a", 2000, 1), pod("b", 2000))

    def watch(name: str) -> None:
        if name == "a":
            cluster.client.pods.pop("b")
            assert cluster.plugin.pre_enqueue(BIG) == WAITS

    cluster.client.watch = watch
    if last_is_refused:
        cluster.client.refusals["b"] = ApiError('pods "b" not found', "NotFound", 404)
    cluster.preempt(BIG)
    assert cluster.activated == ["big"]


def test_a_pod_that_preempts_again_before_the_last_answer_waits_for_that_too(cluster: Any) -> None:
    cluster.node("n1", pod("a", 2000, 1), pod("b", 2000), pod("c", 500))
    again: list[str] = []

    def watch(name: str) -> None:
        if name == "b" and not again:
            again.append(name)
            cluster.plugin._executor.start(BIG, Candidate("n1", (pod("d", 1), pod("e", 1)), 0))
            cluster.client.pods.update(d=pod("d", 1), e=pod("e", 1))
            assert cluster.plugin.pre_enqueue(BIG) == WAITS

    cluster.client.watch = watch
    cluster.preempt(BIG)
    assert cluster.client.deleted == ["a", "b", "d", "e"]
    assert cluster.plugin.pre_enqueue(BIG) is None


class Waiting:
    """A Pod that Permit has told to wait."""

    def __init__(self, *, in_time: bool) -> None:
        self.in_time = in_time
        self.told: list[tuple[str, str]] = []

    def preempt(self, plugin: str, message: str) -> bool:
        self.told.append((plugin, message))
        return self.in_time


def test_a_victim_that_waits_in_permit_goes_without_a_request(cluster: Any) -> None:
    cluster.node("n1", pod("a", 4000))
    waiting = cluster.handle.waiting["a"] = Waiting(in_time=True)
    assert cluster.preempt(BIG) == ("n1", [])
    assert waiting.told == [("DefaultPreemption", "preempted")]
    assert cluster.events == [("default/a", "Preempted by pod big on node n1 (in kube-scheduler memory).")]
    assert cluster.activated == ["big"]


def test_a_victim_that_was_just_allowed_to_bind_is_deleted(cluster: Any) -> None:
    cluster.node("n1", pod("a", 4000))
    cluster.handle.waiting["a"] = Waiting(in_time=False)
    assert cluster.preempt(BIG) == ("n1", ["a"])


def test_pods_of_lower_priority_lose_their_nomination_to_the_node(cluster: Any) -> None:
    cluster.node("n1", pod("a", 4000))
    nominator = cluster.handle.nominator
    nominator.nominate(pod("lower", 1, 5, nominated_node_name="n1"), "n1")
    nominator.nominate(replace(pod("higher", 1, 500), nominated_node_name="n1"), "n1")
    nominator.nominate(replace(pod("elsewhere", 1), nominated_node_name="n2"), "n2")
    cluster.preempt(BIG)
    assert cluster.client.log[0] == ("patch", "lower", None, "")
    assert [each.name for each in nominator.on("n1")] == ["higher"]
    assert [each.name for each in nominator.on("n2")] == ["elsewhere"]


def test_attempts_and_victims_are_counted(cluster: Any) -> None:
    cluster.node("n1", pod("a", 2000), pod("b", 2000))
    cluster.try_for(replace(BIG, uid="never", preemption_policy="Never"))
    cluster.preempt(BIG)
    assert cluster.measures.attempts == 2
    assert cluster.measures.victims == [2]


def test_with_the_gate_off_the_scheduling_cycle_waits_for_the_deletions(cluster: Any) -> None:
    cluster.handle.async_preemption = False
    cluster.node("n1", pod("a", 2000, 1), pod("b", 2000))
    cluster.handle.nominator.nominate(pod("lower", 1, 5, nominated_node_name="n1"), "n1")
    assert cluster.try_for(BIG).nominated_node == "n1"
    assert cluster.client.deleted == ["a", "b"]
    assert cluster.client.log[-1] == ("patch", "lower", None, "")
    assert cluster.clock.work == []
    assert cluster.plugin.events_to_register() == ()


def test_with_the_gate_off_a_deletion_that_fails_is_the_answer(cluster: Any) -> None:
    cluster.handle.async_preemption = False
    cluster.node("n1", pod("a", 4000))
    cluster.client.refusals["a"] = REFUSED
    result = cluster.try_for(BIG)
    assert result == (error("preemption: etcdserver: request timed out"), None)
