"""Which node is chosen and which Pods on it give way."""

from typing import Any

import pytest
from podtrail_scheduler.configuration.args import DefaultPreemptionArgs
from podtrail_scheduler.framework.status import error
from podtrail_scheduler.objects import LabelSelector, Pod, PodDisruptionBudget

BIG = Pod("big", uid="big", requests={"cpu": 3000}, priority=100)


def pod(name: str, cpu: int, priority: int = 0, **fields: Any) -> Pod:
    return Pod(name, uid=name, requests={"cpu": cpu}, priority=priority, **fields)


def budget(allowed: int, **fields: Any) -> PodDisruptionBudget:
    return PodDisruptionBudget("b", "default", LabelSelector({"app": "web"}), allowed, **fields)


WEB = {"app": "web"}


@pytest.mark.parametrize(
    "exempting",
    [
        budget(0, disrupted_pods=frozenset(("a",))),
        PodDisruptionBudget("b", "elsewhere", LabelSelector(WEB), 0),
        PodDisruptionBudget("b", "default", LabelSelector(), 0),
        PodDisruptionBudget("b", "default", None, 0),
    ],
    ids=["disrupted already", "other namespace", "empty selector", "no selector"],
)
def test_a_budget_that_does_not_cover_a_pod_is_not_violated_by_its_end(
    cluster: Any, exempting: PodDisruptionBudget
) -> None:
    cluster.node("less", pod("a", 4000, 1, labels=WEB))
    cluster.node("more", pod("b", 4000, 9))
    cluster.handle.listers.put(exempting)
    assert cluster.preempt(BIG)[0] == "less"


def test_pods_nominated_to_the_node_with_more_priority_keep_their_room(cluster: Any) -> None:
    cluster.node("n1", pod("a", 2000, 1), pod("b", 1000, 2))
    cluster.handle.nominator.nominate(pod("ahead", 3000, 200), "n1")
    result = cluster.try_for(pod("p", 2000, 99))
    assert result.status is not None
    assert result.status.message.endswith("preemption: 0/1 nodes are available: 1 Insufficient cpu.")


def test_the_search_ends_when_there_are_candidates_enough(new_cluster: Any) -> None:
    few = new_cluster(DefaultPreemptionArgs(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=1))
    for number in range(20):
        few.node(f"n{number}", pod(f"a{number}", 4000, number))
    chosen = {few.try_for(pod(f"p{number}", 1000, 99)).nominated_node for number in range(20)}
    few.clock.run()
    assert len(chosen) > 1
    everywhere = new_cluster()
    for number in range(20):
        everywhere.node(f"n{number}", pod(f"a{number}", 4000, number))
    assert everywhere.preempt(BIG)[0] == "n0"


def test_a_plugin_that_fails_in_the_trial_fails_the_preemption(cluster: Any) -> None:
    class Failing:
        name = "Failing"

        def filter(self, state: Any, pod: Pod, node: Any) -> Any:
            return error("no idea")

    cluster.node("n1", pod("a", 4000))
    cluster.handle.trial.serve(cluster.handle.nominator, [Failing()], ())
    result = cluster.try_for(BIG)
    assert result.nominated_node is None
    assert result.status == error('preemption: running "Failing" filter plugin: no idea')


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param([pod("a", 4000, 5)], [pod("b", 4000, 4)], id="lowest highest priority"),
        pytest.param([pod("a", 2000, 5), pod("a2", 2000, 4)], [pod("b", 2000, 5), pod("b2", 2000, 3)], id="lowest sum"),
        pytest.param([pod("a", 2000, -5), pod("a2", 2000, -5)], [pod("b", 4000, -5)], id="fewest victims"),
        pytest.param([pod("a", 4000, start_time=1)], [pod("b", 4000, start_time=2)], id="latest start"),
        pytest.param(
            [pod("a", 2000, 2, start_time=1), pod("a2", 2000, 1, start_time=9)],
            [pod("b", 2000, 2, start_time=2), pod("b2", 2000, 1, start_time=1)],
            id="latest start of the most important",
        ),
        pytest.param([pod("a", 4000, start_time=1)], [pod("b", 4000)], id="not started is the latest start"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_node_whose_victims_matter_least_is_chosen(
    cluster: Any, first: list[Pod], second: list[Pod], turned: bool
) -> None:
    groups = {"dear": first, "cheap": second}
    for name in reversed(groups) if turned else groups:
        cluster.node(name, *groups[name])
    assert cluster.preempt(BIG)[0] == "cheap"
