"""What the other Score plugins about nodes prefer."""

from collections.abc import Callable, Mapping

import pytest
from podtrail_scheduler.configuration.args import NodeAffinityArgs, NodeResourcesBalancedAllocationArgs, ResourceSpec
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.image_states import ImageStates
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP
from podtrail_scheduler.objects import (
    PREFER_NO_SCHEDULE,
    Affinity,
    Node,
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PreferredSchedulingTerm,
    Requirement,
    Taint,
    Toleration,
)
from podtrail_scheduler.plugins.balanced_allocation import BalancedAllocation
from podtrail_scheduler.plugins.image_locality import ImageLocality
from podtrail_scheduler.plugins.node_affinity import NodeAffinity as NodeAffinityPlugin
from podtrail_scheduler.plugins.taint_toleration import TaintToleration

STATE = CycleState()
MIB = 1024**2
GPU = "example.com/gpu"
MakeNode = Callable[..., NodeInfo]


@pytest.mark.parametrize(
    ("there", "asked", "expected"),
    [
        ({}, {"cpu": 1000, "memory": 1000 * MIB}, 75),
        ({}, {"cpu": 4000}, 50),
        ({"cpu": 4000}, {"memory": 4000 * MIB}, 100),
        ({"cpu": 2000}, {"memory": 1000 * MIB}, 81),
        ({"cpu": 9000}, {"cpu": 100}, 75),
    ],
)
def test_a_pod_that_evens_out_cpu_and_memory_scores_over_75(
    handle: Handle, node: MakeNode, there: Mapping[str, int], asked: Mapping[str, int], expected: int
) -> None:
    used = node("n1", Pod("b", requests=there))
    assert BalancedAllocation(handle).score(STATE, Pod("a", requests=asked), used) == expected


def test_three_resources_are_as_even_as_their_standard_deviation(handle: Handle, node: MakeNode) -> None:
    args = NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu"), ResourceSpec("memory"), ResourceSpec(GPU)))
    plugin = BalancedAllocation(handle, args)
    gpus = node(allocatable={"cpu": 4000, "memory": 4000, "pods": 10, GPU: 4})
    # Shares of 1, 0 and 1/2 deviate by the root of 1/6, 0.408.
    assert plugin.score(STATE, Pod("a", requests={"cpu": 4000, GPU: 2}), gpus) == 50 + (50 + 59 - 100) // 2
    assert plugin.score(STATE, Pod("a", requests={"cpu": 4000}), gpus) == 50


def test_a_pod_that_asks_for_nothing_is_not_balanced(handle: Handle, node: MakeNode) -> None:
    plugin = BalancedAllocation(handle)
    assert plugin.pre_score(STATE, Pod("a", nonzero_requests=(100, 200 * MIB)), [node()]) == SKIP
    assert plugin.pre_score(STATE, Pod("a", requests={"cpu": 1}), [node()]) is None


def test_fewer_soft_taints_score_higher(handle: Handle, node: MakeNode) -> None:
    plugin = TaintToleration(handle)
    soft = [Taint(key, effect=PREFER_NO_SCHEDULE) for key in "abc"]
    nodes = [node(taints=tuple(soft[:number])) for number in range(4)] + [node(taints=(Taint("hard"),))]
    pod = Pod("p", tolerations=(Toleration("a", "Exists", effect=PREFER_NO_SCHEDULE),))
    scores = [plugin.score(STATE, pod, each) for each in nodes]
    assert scores == [0, 0, 1, 2, 0]
    assert plugin.normalize(STATE, pod, nodes, scores) == [100, 100, 50, 0, 100]
    assert plugin.normalize(STATE, pod, nodes, [0] * 5) == [100] * 5


def preferring(weights: Mapping[str, int]) -> tuple[PreferredSchedulingTerm, ...]:
    return tuple(
        PreferredSchedulingTerm(weight, NodeSelectorTerm((Requirement(key, "Exists"),)))
        for key, weight in weights.items()
    )


def test_preferred_terms_add_their_weights_up(handle: Handle, node: MakeNode) -> None:
    plugin = NodeAffinityPlugin(handle)
    pod = Pod("a", affinity=Affinity(NodeAffinity(preferred=preferring({"ssd": 20, "gpu": 60}))))
    nodes = [node(labels=labels) for labels in ({"ssd": ""}, {"ssd": "", "gpu": ""}, {})]
    scores = [plugin.score(STATE, pod, each) for each in nodes]
    assert scores == [20, 80, 0]
    assert plugin.normalize(STATE, pod, nodes, scores) == [25, 100, 0]
    assert plugin.normalize(STATE, pod, nodes, [0, 0, 0]) == [0, 0, 0]
    assert plugin.pre_score(STATE, pod, nodes) is None
    assert plugin.pre_score(STATE, Pod("b"), nodes) == SKIP


def test_preferred_terms_of_the_args_count_for_every_pod(handle: Handle, node: MakeNode) -> None:
    term = {"weight": 7, "preference": {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}}
    plugin = NodeAffinityPlugin(handle, NodeAffinityArgs({"preferredDuringSchedulingIgnoredDuringExecution": [term]}))
    assert plugin.pre_score(STATE, Pod("a"), []) is None
    assert plugin.score(STATE, Pod("a"), node(labels={"ssd": ""})) == 7


def cluster_with_images(*images: Mapping[str, int]) -> list[NodeInfo]:
    states = ImageStates()
    return [NodeInfo(Node(f"n{number}", images=each), states) for number, each in enumerate(images)]


def test_nodes_with_the_images_score_by_size_and_spread(handle_of: Callable[..., Handle]) -> None:
    nodes = cluster_with_images({"web:1": 1000 * MIB}, {"web:1": 1000 * MIB, "db:latest": 500 * MIB}, {}, {})
    plugin = ImageLocality(handle_of(*nodes))
    pod = Pod("a", images=("web:1",))
    # Half of the nodes have it: it counts as 500 MiB, of 23 to 1000.
    assert plugin.score_nodes(STATE, pod, nodes) == [48, 48, 0, 0]
    assert [plugin.score(STATE, pod, each) for each in nodes] == [48, 48, 0, 0]
    both = Pod("a", images=("web:1", "db"))
    # 500 and 125 MiB, of 23 to 2000.
    assert plugin.score_nodes(STATE, both, nodes) == [24, 30, 0, 0]
    assert plugin.score_nodes(STATE, Pod("a", images=("other",)), nodes) == [0] * 4


@pytest.mark.parametrize(
    ("image", "known"),
    [("web", "web:latest"), ("localhost:5000/web", "localhost:5000/web:latest"), ("a/web:1", "a/web:1")],
)
def test_an_image_without_a_tag_means_the_latest(handle_of: Callable[..., Handle], image: str, known: str) -> None:
    nodes = cluster_with_images({known: 1000 * MIB})
    assert ImageLocality(handle_of(*nodes)).score(STATE, Pod("a", images=(image,)), nodes[0]) == 100


def test_what_is_remembered_of_an_image_ends_when_it_spreads(handle_of: Callable[..., Handle]) -> None:
    nodes = cluster_with_images({"web:1": 1000 * MIB}, {})
    plugin, pod = ImageLocality(handle_of(*nodes)), Pod("a", images=("web:1",))
    before = plugin.score_key(pod)
    assert plugin.score_key(Pod("b", images=("web:1",))) == before
    nodes[1].set_node(Node("n1", images={"web:1": 5}))
    assert plugin.score_key(pod) != before
    assert plugin.score_nodes(STATE, pod, nodes) == [100, 100]
