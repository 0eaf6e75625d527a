"""What the other Score plugins about nodes prefer."""

from collections.abc import Callable, Mapping

from podtrail_scheduler.configuration.args import NodeAffinityArgs, NodeResourcesBalancedAllocationArgs, ResourceSpec
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.image_states import ImageStates
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP
from podtrail_scheduler.objects import (
    Node,
    Pod,
)
from podtrail_scheduler.plugins.balanced_allocation import BalancedAllocation
from podtrail_scheduler.plugins.image_locality import ImageLocality
from podtrail_scheduler.plugins.node_affinity import NodeAffinity as NodeAffinityPlugin

STATE = CycleState()
MIB = 1024**2
GPU = "example.com/gpu"
MakeNode = Callable[..., NodeInfo]


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


def test_preferred_terms_of_the_args_count_for_every_pod(handle: Handle, node: MakeNode) -> None:
    term = {"weight": 7, "preference": {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}}
    plugin = NodeAffinityPlugin(handle, NodeAffinityArgs({"preferredDuringSchedulingIgnoredDuringExecution": [term]}))
    assert plugin.pre_score(STATE, Pod("a"), []) is None
    assert plugin.score(STATE, Pod("a"), node(labels={"ssd": ""})) == 7


def cluster_with_images(*images: Mapping[str, int]) -> list[NodeInfo]:
    states = ImageStates()
    return [NodeInfo(Node(f"n{number}", images=each), states) for number, each in enumerate(images)]


def test_what_is_remembered_of_an_image_ends_when_it_spreads(handle_of: Callable[..., Handle]) -> None:
    nodes = cluster_with_images({"web:1": 1000 * MIB}, {})
    plugin, pod = ImageLocality(handle_of(*nodes)), Pod("a", images=("web:1",))
    before = plugin.score_key(pod)
    assert plugin.score_key(Pod("b", images=("web:1",))) == before
    nodes[1].set_node(Node("n1", images={"web:1": 5}))
    assert plugin.score_key(pod) != before
    assert plugin.score_nodes(STATE, pod, nodes) == [100, 100]
