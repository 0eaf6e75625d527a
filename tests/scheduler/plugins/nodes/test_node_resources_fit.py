"""Which nodes have room, and what each scoring strategy makes of them."""

from collections.abc import Callable, Mapping

import pytest
from podtrail_scheduler.configuration.args import (
    LEAST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Code, Status
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.plugins.node_resources_fit import NodeResourcesFit

STATE = CycleState()
MIB = 1024**2
GPU = "example.com/gpu"
MakeNode = Callable[..., NodeInfo]


def asking(**requests: int) -> Pod:
    return Pod("a", requests=requests)


@pytest.mark.parametrize(
    ("requests", "reasons", "code"),
    [
        ({"cpu": 3000, "memory": 1}, (), None),
        ({"cpu": 3001}, ("Insufficient cpu",), Code.UNSCHEDULABLE),
        ({"cpu": 4001}, ("Insufficient cpu",), Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        (
            {GPU: 1, "memory": 5000 * MIB, "cpu": 3500},
            ("Insufficient cpu", "Insufficient memory", f"Insufficient {GPU}"),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        ),
        ({GPU: 0, "ephemeral-storage": 0}, (), None),
        ({"ephemeral-storage": 1}, ("Insufficient ephemeral-storage",), Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        ({"hugepages-2Mi": 1}, ("Insufficient hugepages-2Mi",), Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
    ],
)
def test_what_a_pod_asks_for_must_be_free(
    handle: Handle, node: MakeNode, requests: Mapping[str, int], reasons: tuple[str, ...], code: Code | None
) -> None:
    used = node("n1", asking(cpu=1000))
    answer = NodeResourcesFit(handle).filter(STATE, Pod("a", requests=requests), used)
    assert answer == (None if code is None else Status(code, reasons))


@pytest.mark.parametrize(
    ("args", "passes"),
    [
        (NodeResourcesFitArgs(), False),
        (NodeResourcesFitArgs(ignored_resources=(GPU,)), True),
        (NodeResourcesFitArgs(ignored_resource_groups=("example.com",)), True),
        (NodeResourcesFitArgs(ignored_resource_groups=("example.org",)), False),
        (NodeResourcesFitArgs(ignored_resources=("cpu",)), False),
    ],
)
def test_extended_resources_may_be_ignored(
    handle: Handle, node: MakeNode, args: NodeResourcesFitArgs, passes: bool
) -> None:
    pod = Pod("a", requests={"cpu": 1, GPU: 1})
    assert (NodeResourcesFit(handle, args).filter(STATE, pod, node()) is None) is passes


def test_cpu_is_never_ignored(handle: Handle, node: MakeNode) -> None:
    plugin = NodeResourcesFit(handle, NodeResourcesFitArgs(ignored_resources=("cpu",)))
    assert plugin.filter(STATE, asking(cpu=5000), node()) is not None


def scoring(
    handle: Handle, kind: str, *resources: ResourceSpec, shape: Mapping[int, int] | None = None
) -> NodeResourcesFit:
    points = tuple(UtilizationShapePoint(at, score) for at, score in (shape or {}).items())
    ratio = RequestedToCapacityRatioParam(points) if points else None
    specs = resources or (ResourceSpec("cpu"), ResourceSpec("memory"))
    return NodeResourcesFit(handle, NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(kind, specs, ratio)))


def test_a_node_without_any_of_the_resources_scores_nothing(handle: Handle, node: MakeNode) -> None:
    assert scoring(handle, LEAST_ALLOCATED, ResourceSpec(GPU)).score(STATE, asking(cpu=1), node()) == 0


@pytest.mark.parametrize(
    ("shape", "used", "expected"),
    [
        ({0: 0, 100: 10}, 2000, 50),
        ({0: 10, 100: 0}, 1000, 75),
        ({0: 10, 100: 0}, 1330, 67),
        ({0: 0, 60: 10, 100: 0}, 3000, 100 - 100 * 15 // 40),
        ({20: 3, 100: 10}, 400, 30),
        ({0: 0, 50: 7}, 4000, 70),
        ({0: 0, 100: 10}, 9000, 100),
    ],
)
def test_a_shape_gives_the_score_of_a_utilization(
    handle: Handle, node: MakeNode, shape: Mapping[int, int], used: int, expected: int
) -> None:
    plugin = scoring(handle, REQUESTED_TO_CAPACITY_RATIO, ResourceSpec("cpu"), shape=shape)
    assert plugin.score(STATE, asking(cpu=used), node()) == expected


def test_resources_at_zero_of_a_shape_are_left_out_of_the_rounded_mean(handle: Handle, node: MakeNode) -> None:
    plugin = scoring(handle, REQUESTED_TO_CAPACITY_RATIO, shape={0: 0, 100: 10})
    assert plugin.score(STATE, asking(cpu=1000, memory=0), node()) == 25
    assert plugin.score(STATE, asking(cpu=1000, memory=1040 * MIB), node()) == 26
