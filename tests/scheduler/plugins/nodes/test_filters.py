"""What the Filter plugins about nodes let pass, and the words with which they refuse."""

from collections.abc import Callable, Mapping

import pytest
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import PreFilterResult
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Code, Status
from podtrail_scheduler.objects import (
    NO_EXECUTE,
    PREFER_NO_SCHEDULE,
    Affinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    Requirement,
    Taint,
    Toleration,
)
from podtrail_scheduler.objects import NodeAffinity as Wanted
from podtrail_scheduler.plugins.node_affinity import NodeAffinity
from podtrail_scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from podtrail_scheduler.plugins.node_name import NodeName
from podtrail_scheduler.plugins.scheduling_gates import SchedulingGates
from podtrail_scheduler.plugins.taint_toleration import TaintToleration

STATE = CycleState()
FOR_GOOD = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
MakeNode = Callable[..., NodeInfo]


def requiring(*terms: NodeSelectorTerm) -> Pod:
    return Pod("a", affinity=Affinity(Wanted(NodeSelector(terms))))


def named(*names: str) -> Requirement:
    return Requirement("metadata.name", "In", names)


def test_gates_are_told_in_the_api_servers_words_where_pre_enqueue_writes_the_status(
    handle_of: Callable[..., Handle],
) -> None:
    handle = handle_of()
    handle.pre_enqueue_pod_status = True
    held = SchedulingGates(handle).pre_enqueue(Pod("a", scheduling_gates=("a", "b")))
    assert held == Status(FOR_GOOD, ("Scheduling is blocked due to non-empty scheduling gates",))


def test_a_named_node_is_the_only_one(handle: Handle, node: MakeNode) -> None:
    plugin = NodeName(handle)
    bound = Pod("a", node_name="n2")
    assert plugin.filter(STATE, Pod("a"), node()) is None
    assert plugin.filter(STATE, bound, node("n2")) is None
    assert plugin.filter(STATE, bound, node()) == Status(FOR_GOOD, ("node(s) didn't match the requested node name",))
    assert plugin.pre_filter(STATE, bound, []) == PreFilterResult(frozenset(("n2",)))
    assert plugin.pre_filter(STATE, Pod("a"), []) is None


SSD = NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),))


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ((NodeSelectorTerm((), (named("n1"),)), NodeSelectorTerm((), (named("n2"),))), {"n1", "n2"}),
        ((NodeSelectorTerm((), (named("n1"),)), SSD), None),
        ((NodeSelectorTerm((), (Requirement("metadata.name", "NotIn", ("n1",)),)),), None),
    ],
)
def test_a_pod_for_named_nodes_has_only_these_looked_at(
    handle: Handle, terms: tuple[NodeSelectorTerm, ...], expected: set[str] | None
) -> None:
    found = NodeAffinity(handle).pre_filter(STATE, requiring(*terms), [])
    assert found == (None if expected is None else PreFilterResult(frozenset(expected)))


def test_terms_that_name_different_nodes_at_once_refuse_the_pod(handle: Handle) -> None:
    pod = requiring(NodeSelectorTerm((), (named("n1"), named("n2"))))
    assert NodeAffinity(handle).pre_filter(STATE, pod, []) == Status(FOR_GOOD, ("pod affinity terms conflict",))


def test_features_of_the_kubelet_must_be_declared(handle: Handle, node: MakeNode) -> None:
    plugin = NodeDeclaredFeatures(handle)
    pod = Pod("a", required_node_features=frozenset(("F",)))
    refused = Status(FOR_GOOD, ("node(s) didn't match Pod's required features",))
    assert plugin.pre_filter(STATE, Pod("a"), []) == SKIP
    assert plugin.pre_filter(STATE, pod, []) is None
    assert plugin.filter(STATE, pod, node(declared_features=frozenset(("E",)))) == refused
    assert plugin.filter(STATE, pod, node(declared_features=frozenset(("E", "F")))) is None


@pytest.mark.parametrize(
    ("taint", "toleration", "passes"),
    [
        (Taint("k", "v"), None, False),
        (Taint("k", "v", NO_EXECUTE), None, False),
        (Taint("k", "v", PREFER_NO_SCHEDULE), None, True),
        (Taint("k", "v"), Toleration("k", "Equal", "v"), True),
        (Taint("k", "v"), Toleration("k", "", "v"), True),
        (Taint("k", "v"), Toleration("k", "Equal", "w"), False),
        (Taint("k", "v"), Toleration("k", "Exists"), True),
        (Taint("k", "v"), Toleration("k", "Exists", effect=NO_EXECUTE), False),
        (Taint("k", "5"), Toleration("k", "Gt", "3"), False),
        (Taint("k", "v"), Toleration("", "Exists"), True),
    ],
)
def test_a_hard_taint_must_be_tolerated(
    handle: Handle, node: MakeNode, taint: Taint, toleration: Toleration | None, passes: bool
) -> None:
    pod = Pod("a", tolerations=() if toleration is None else (toleration,))
    answer = TaintToleration(handle).filter(STATE, pod, node(taints=(taint,)))
    assert answer == (None if passes else Status(FOR_GOOD, ("node(s) had untolerated taint(s)",)))


TWO_OR_MORE = NodeSelectorTerm((Requirement("cores", "Gt", ("1",)),))


NOT_THERE = NodeSelectorTerm((Requirement("zone", "NotIn", ("a",)),), (named("n1"),))


@pytest.mark.parametrize(
    ("pod", "labels", "passes"),
    [
        (Pod("a", node_selector={"disk": "ssd"}), {"disk": "ssd"}, True),
        (Pod("a", node_selector={"disk": "ssd"}), {}, False),
        (requiring(SSD, TWO_OR_MORE), {"cores": "2"}, True),
        (requiring(SSD, TWO_OR_MORE), {"cores": "1"}, False),
        (requiring(SSD, TWO_OR_MORE), {"cores": "many"}, False),
        (requiring(NOT_THERE), {}, True),
        (requiring(NOT_THERE), {"zone": "a"}, False),
        (requiring(NodeSelectorTerm()), {}, False),
        (requiring(), {}, False),
    ],
)
def test_selector_and_required_terms_are_for_matching_nodes(
    handle: Handle, node: MakeNode, pod: Pod, labels: Mapping[str, str], passes: bool
) -> None:
    plugin = NodeAffinity(handle)
    assert plugin.pre_filter(STATE, pod, []) != SKIP
    answer = plugin.filter(STATE, pod, node(labels=labels))
    assert answer == (None if passes else Status(FOR_GOOD, ("node(s) didn't match Pod's node affinity/selector",)))
