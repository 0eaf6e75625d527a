"""What is said when nobody can be preempted, and when somebody can."""

import asyncio
from dataclasses import replace
from typing import Any

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.status import Code, Status, unresolvable, unschedulable
from podtrail_scheduler.objects import Pod

BIG = Pod("big", uid="big", requests={"cpu": 3000}, priority=100)
CONDITION = {"DisruptionTarget": ("True", "PreemptionByScheduler", "m")}


def pod(name: str, cpu: int, priority: int = 0, **fields: Any) -> Pod:
    return Pod(name, uid=name, requests={"cpu": cpu}, priority=priority, **fields)


def refused(text: str) -> Status:
    return unschedulable(f"preemption: {text}")


def test_a_pod_whose_victims_still_terminate_waits_for_them(cluster: Any) -> None:
    cluster.node("n1", pod("a", 4000, deletion_timestamp=1, conditions=CONDITION))
    result = cluster.try_for(replace(BIG, nominated_node_name="n1"))
    assert result == (refused("not eligible due to a terminating pod on the nominated node."), None)


def test_pods_that_terminate_for_another_reason_are_not_waited_for(cluster: Any) -> None:
    cluster.node("n1", pod("a", 2000, deletion_timestamp=1), pod("b", 2000))
    assert cluster.try_for(replace(BIG, nominated_node_name="n1")).nominated_node == "n1"
    cluster.clock.run()


def test_a_nominated_node_that_became_hopeless_is_given_up(cluster: Any) -> None:
    cluster.node("n1", pod("a", 4000, deletion_timestamp=1, conditions=CONDITION))
    cluster.node("n2", pod("b", 4000))
    refusals = {"n1": unresolvable("x"), "n2": unschedulable("y")}
    assert cluster.try_for(replace(BIG, nominated_node_name="n1"), refusals).nominated_node == "n2"
    cluster.clock.run()


def test_a_pod_that_is_gone_preempts_nobody(cluster: Any) -> None:
    cluster.node("n1", pod("a", 4000))
    result = asyncio.run(cluster.plugin.post_filter(CycleState(), BIG, {}))
    assert result == (Status(Code.ERROR, ('preemption: pod "big" not found',)), None)


def test_the_nodes_are_left_as_they_were(cluster: Any) -> None:
    node = cluster.node("n1", pod("a", 2000), pod("b", 2000))
    before = node.generation, dict(node.pods), dict(node.requested)
    cluster.preempt(BIG)
    assert (node.generation, dict(node.pods), dict(node.requested)) == before
