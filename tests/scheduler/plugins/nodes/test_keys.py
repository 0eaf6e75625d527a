"""Answers are remembered by key: Pods of equal keys must get equal answers from the same node."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import LocalFilterPlugin, LocalScorePlugin
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import (
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    UNSCHEDULABLE_TAINT,
    Affinity,
    HostPort,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PreferredSchedulingTerm,
    Requirement,
    Taint,
    Toleration,
)
from podtrail_scheduler.plugins.balanced_allocation import BalancedAllocation
from podtrail_scheduler.plugins.node_affinity import NodeAffinity as NodeAffinityPlugin
from podtrail_scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from podtrail_scheduler.plugins.node_name import NodeName
from podtrail_scheduler.plugins.node_ports import NodePorts
from podtrail_scheduler.plugins.node_resources_fit import NodeResourcesFit
from podtrail_scheduler.plugins.node_unschedulable import NodeUnschedulable
from podtrail_scheduler.plugins.taint_toleration import TaintToleration

KINDS: list[Any] = [
    NodeName,
    NodeUnschedulable,
    TaintToleration,
    NodeAffinityPlugin,
    NodePorts,
    NodeDeclaredFeatures,
    NodeResourcesFit,
    BalancedAllocation,
]
TERM = NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),))
TOLERATIONS = (
    Toleration("k", "Exists"),
    Toleration("k", "Equal", "v", PREFER_NO_SCHEDULE),
    Toleration(UNSCHEDULABLE_TAINT, "Exists"),
)
amounts = st.dictionaries(st.sampled_from(("cpu", "memory", "example.com/gpu")), st.integers(0, 3), max_size=3)
pods = st.builds(
    Pod,
    st.just("p"),
    uid=st.uuids().map(str),
    labels=st.sampled_from(({}, {"app": "web"})),
    requests=amounts,
    nonzero_requests=st.one_of(st.none(), st.tuples(st.integers(0, 3), st.integers(0, 3))),
    node_selector=st.sampled_from(({}, {"disk": "ssd"})),
    tolerations=st.lists(st.sampled_from(TOLERATIONS), max_size=2).map(tuple),
    affinity=st.sampled_from(
        (
            Affinity(),
            Affinity(NodeAffinity(NodeSelector((TERM,)))),
            Affinity(NodeAffinity(preferred=(PreferredSchedulingTerm(5, TERM),))),
        )
    ),
    host_ports=st.sampled_from(((), (HostPort(80),), (HostPort(80, host_ip="10.0.0.1"),))),
    node_name=st.sampled_from(("", "n", "m")),
    required_node_features=st.sampled_from((frozenset(), frozenset(("F",)))),
)
nodes = st.builds(
    Node,
    st.just("n"),
    labels=st.sampled_from(({}, {"disk": "ssd"})),
    allocatable=amounts.map(lambda each: {"pods": 2, **each}),
    taints=st.lists(
        st.builds(Taint, st.just("k"), st.sampled_from("vw"), st.sampled_from((NO_SCHEDULE, PREFER_NO_SCHEDULE))),
        max_size=2,
    ).map(tuple),
    unschedulable=st.booleans(),
    declared_features=st.sampled_from((frozenset(), frozenset(("F",)))),
)


@given(st.sampled_from(KINDS), nodes, pods, pods, pods)
def test_pods_of_equal_keys_get_equal_answers(kind: Any, node: Node, there: Pod, one: Pod, other: Pod) -> None:
    state, info = CycleState(), NodeInfo(node)
    info.add(there)
    plugin = kind(Handle(None, None, tuple))  # type: ignore[arg-type]
    if isinstance(plugin, LocalFilterPlugin) and plugin.filter_key(one) == plugin.filter_key(other):
        assert plugin.filter(state, one, info) == plugin.filter(state, other, info)
    if isinstance(plugin, LocalScorePlugin) and plugin.score_key(one) == plugin.score_key(other):
        assert plugin.score(state, one, info) == plugin.score(state, other, info)
    assert isinstance(plugin, LocalFilterPlugin | LocalScorePlugin)
