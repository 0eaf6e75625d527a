"""Extenders that have a say in preemption: asked with the candidates, before one is picked."""

import asyncio
from collections.abc import Mapping
from typing import Any

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.diagnosis import Diagnosis
from podtrail_scheduler.framework.extending import ExtenderError, PodsOn, Victims
from podtrail_scheduler.framework.extension_points import PostFilterResult
from podtrail_scheduler.framework.status import Code, unschedulable
from podtrail_scheduler.objects import Pod

SHORT = unschedulable("Insufficient cpu")


class Extenders:
    """Leaves what it is told to; keeps what it was asked."""

    filters = prioritizes = False
    preempts = True

    def __init__(self, left: Mapping[str, int] | Exception) -> None:
        self._left = left
        self.asked: dict[str, list[str]] = {}

    async def preempt(self, pod: Pod, victims: Mapping[str, Victims], pods_on: PodsOn) -> dict[str, Victims]:
        self.asked = {node: [each.name for each in some.pods] for node, some in victims.items()}
        if isinstance(self._left, Exception):
            raise self._left
        return {node: Victims(tuple(pods_on(node) or ()), violations) for node, violations in self._left.items()}

    async def filter(self, pod: Pod, nodes: Any, diagnosis: Diagnosis) -> Any:
        raise NotImplementedError

    async def prioritize(self, pod: Pod, nodes: Any) -> Any:
        raise NotImplementedError

    async def bind(self, pod: Pod, node_name: str) -> bool:
        raise NotImplementedError


def a_pod(name: str, cpu: int, priority: int) -> Pod:
    return Pod(name, uid=name, requests={"cpu": cpu}, priority=priority)


def preempt(cluster: Any, left: Mapping[str, int] | Exception) -> tuple[PostFilterResult, Extenders]:
    cluster.node("n1", a_pod("cheap", 4000, 1))
    cluster.node("n2", a_pod("dear", 3000, 5), a_pod("spared", 1000, 5))
    cluster.handle.extenders = extenders = Extenders(left)
    pod = a_pod("wants", 2000, 10)
    cluster.client.pods[pod.uid] = pod

    async def scene() -> PostFilterResult:
        answer = cluster.plugin.post_filter(CycleState(), pod, {node.name: SHORT for node in cluster.nodes})
        result: PostFilterResult = await answer
        return result

    result = asyncio.run(scene())
    cluster.clock.run()
    return result, extenders


def test_are_shown_every_candidate_with_its_victims(cluster: Any) -> None:
    _, extenders = preempt(cluster, {"n1": 0})

    assert extenders.asked == {"n1": ["cheap"], "n2": ["dear"]}


def test_may_rule_out_the_best_node_and_name_other_victims(cluster: Any) -> None:
    result, _ = preempt(cluster, {"n2": 0})

    assert result.nominated_node == "n2"
    assert sorted(cluster.client.deleted) == ["dear", "spared"]


def test_change_which_node_is_the_cheapest_by_the_budgets_that_they_see_broken(cluster: Any) -> None:
    result, _ = preempt(cluster, {"n1": 1, "n2": 0})

    assert result.nominated_node == "n2"


def test_that_leave_no_candidate_leave_the_nomination_as_it_was(cluster: Any) -> None:
    result, _ = preempt(cluster, {})

    assert result == PostFilterResult(unschedulable("preemption: no candidate node for preemption"), None)
    assert cluster.client.deleted == []


def test_that_fail_make_it_an_error(cluster: Any) -> None:
    result, _ = preempt(cluster, ExtenderError("no answer"))

    assert result.status is not None
    assert (result.status.code, result.status.message) == (Code.ERROR, "preemption: no answer")


def test_without_the_verb_are_not_asked(cluster: Any) -> None:
    cluster.node("n1", a_pod("cheap", 4000, 1))
    cluster.handle.extenders = extenders = Extenders({})
    extenders.preempts = False

    assert cluster.preempt(a_pod("wants", 2000, 10)) == ("n1", ["cheap"])
    assert extenders.asked == {}
