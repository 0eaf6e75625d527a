"""What each Score plugin prefers."""

from podtrail_scheduler.framework.cycle_state import CycleState
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
)
from podtrail_scheduler.plugins.balanced_allocation import BalancedAllocation
from podtrail_scheduler.plugins.image_locality import ImageLocality
from podtrail_scheduler.plugins.node_affinity import NodeAffinity as NodeAffinityPlugin
from podtrail_scheduler.plugins.node_resources_fit import NodeResourcesFit
from podtrail_scheduler.plugins.taint_toleration import TaintToleration

STATE = CycleState()
MIB = 1024**2
EMPTY = NodeInfo(Node("empty", allocatable={"cpu": 4000, "memory": 4000 * MIB, "pods": 10}))
POD = Pod("a", requests={"cpu": 1000, "memory": 1000 * MIB})


def test_the_emptier_node_scores_higher_by_its_free_shares() -> None:
    used = EMPTY.clone()
    used.add(Pod("b", uid="b", requests={"cpu": 2000, "memory": 0}))
    assert NodeResourcesFit().score(STATE, POD, EMPTY) == 75
    assert NodeResourcesFit().score(STATE, POD, used) == (25 + 75) // 2


def test_pods_that_ask_for_nothing_count_something() -> None:
    node = EMPTY.clone()
    node.add(Pod("b", uid="b"))
    assert (node.cpu, node.memory, node.requested) == (100, 200 * MIB, {})


def test_even_use_of_cpu_and_memory_scores_higher() -> None:
    plugin = BalancedAllocation()
    assert plugin.score(STATE, POD, EMPTY) == 100
    assert plugin.score(STATE, Pod("b", requests={"cpu": 4000}), EMPTY) == 50
    assert plugin.pre_score(STATE, Pod("b"), [EMPTY]) == SKIP


def test_fewer_soft_taints_score_higher() -> None:
    plugin = TaintToleration()
    soft = NodeInfo(Node("soft", taints=(Taint("k", effect=PREFER_NO_SCHEDULE),)))
    scores = [plugin.score(STATE, POD, node) for node in (EMPTY, soft)]
    assert plugin.normalize(scores) == [100, 0]
    assert plugin.pre_score(STATE, POD, [EMPTY]) == SKIP
    assert plugin.pre_score(STATE, POD, [EMPTY, soft]) is None


def test_preferred_node_affinity_adds_its_weights_up() -> None:
    plugin = NodeAffinityPlugin()
    terms = [NodeSelectorTerm((Requirement(key, "Exists"),)) for key in ("ssd", "gpu")]
    preferred = tuple(PreferredSchedulingTerm(weight, term) for weight, term in zip((20, 60), terms, strict=True))
    pod = Pod("a", affinity=Affinity(NodeAffinity(preferred=preferred)))
    nodes = [
        NodeInfo(Node(name, labels=labels)) for name, labels in (("a", {"ssd": ""}), ("b", {"ssd": "", "gpu": ""}))
    ]
    assert plugin.normalize([plugin.score(STATE, pod, node) for node in nodes]) == [25, 100]
    assert plugin.pre_score(STATE, POD, nodes) == SKIP


def test_nodes_with_the_images_score_higher() -> None:
    plugin = ImageLocality()
    pod = Pod("a", images=("web:1",))
    cold, warm = NodeInfo(Node("cold")), NodeInfo(Node("warm", images={"web:1": 1000 * MIB}))
    assert [plugin.score(STATE, pod, node) for node in (cold, warm)] == [0, 100]
    assert plugin.pre_score(STATE, pod, [cold]) == SKIP
    assert plugin.pre_score(STATE, pod, [cold, warm]) is None
