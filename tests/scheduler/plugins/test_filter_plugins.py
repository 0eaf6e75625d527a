"""What each Filter plugin lets pass and the text with which it refuses."""

from dataclasses import replace

import pytest
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Code, Status
from podtrail_scheduler.objects import (
    NO_EXECUTE,
    PREFER_NO_SCHEDULE,
    Affinity,
    HostPort,
    Node,
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    Requirement,
    Taint,
    Toleration,
)
from podtrail_scheduler.plugins.inter_pod_affinity import InterPodAffinity
from podtrail_scheduler.plugins.node_affinity import NodeAffinity as NodeAffinityPlugin
from podtrail_scheduler.plugins.node_name import NodeName
from podtrail_scheduler.plugins.node_ports import NodePorts
from podtrail_scheduler.plugins.node_resources_fit import NodeResourcesFit
from podtrail_scheduler.plugins.node_unschedulable import NodeUnschedulable
from podtrail_scheduler.plugins.scheduling_gates import SchedulingGates
from podtrail_scheduler.plugins.taint_toleration import TaintToleration

STATE = CycleState()
RESOURCES = {"cpu": 2000, "memory": 4096, "pods": 3}
REFUSED = Code.UNSCHEDULABLE
FOR_GOOD = Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def node(name: str = "n1", *pods: Pod, **fields: object) -> NodeInfo:
    info = NodeInfo(Node(name, **{"allocatable": RESOURCES, **fields}))  # type: ignore[arg-type]
    for number, each in enumerate(pods):
        info.add(replace(each, uid=f"{name}-{number}", node_name=name))
    return info


def test_gates_hold_a_pod_back_and_are_named() -> None:
    plugin = SchedulingGates()
    assert plugin.pre_enqueue(Pod("a")) is None
    held = plugin.pre_enqueue(Pod("a", scheduling_gates=("a", "b")))
    assert held == Status(FOR_GOOD, ("waiting for scheduling gates: [a b]",))


def test_a_cordoned_node_is_for_those_who_tolerate_it() -> None:
    cordoned = node(unschedulable=True)
    plugin = NodeUnschedulable()
    assert plugin.filter(STATE, Pod("a"), node()) is None
    assert plugin.filter(STATE, Pod("a"), cordoned) == Status(FOR_GOOD, ("node(s) were unschedulable",))
    assert plugin.filter(STATE, Pod("a", tolerations=(Toleration(operator="Exists"),)), cordoned) is None


def test_a_named_node_is_the_only_one() -> None:
    refused = Status(FOR_GOOD, ("node(s) didn't match the requested node name",))
    assert NodeName().filter(STATE, Pod("a", node_name="n1"), node("n1")) is None
    assert NodeName().filter(STATE, Pod("a", node_name="n2"), node("n1")) == refused


@pytest.mark.parametrize(
    ("taint", "toleration", "passes"),
    [
        (Taint("k", "v"), None, False),
        (Taint("k", "v", NO_EXECUTE), None, False),
        (Taint("k", "v", PREFER_NO_SCHEDULE), None, True),
        (Taint("k", "v"), Toleration("k", "Equal", "v"), True),
        (Taint("k", "v"), Toleration("k", "Equal", "other"), False),
        (Taint("k", "v"), Toleration("k", "Exists"), True),
        (Taint("k", "v"), Toleration("", "Exists"), True),
        (Taint("k", "v"), Toleration("k", "Exists", effect=NO_EXECUTE), False),
    ],
)
def test_taints_must_be_tolerated(taint: Taint, toleration: Toleration | None, passes: bool) -> None:
    pod = Pod("a", tolerations=(toleration,) if toleration else ())
    status = TaintToleration().filter(STATE, pod, node(taints=(taint,)))
    assert status == (None if passes else Status(FOR_GOOD, ("node(s) had untolerated taint(s)",)))


@pytest.mark.parametrize(
    ("operator", "values", "passes"),
    [
        ("In", ("ssd", "nvme"), True),
        ("In", ("tape",), False),
        ("NotIn", ("tape",), True),
        ("Exists", (), True),
        ("DoesNotExist", (), False),
        ("Gt", ("5",), False),
    ],
)
def test_required_node_affinity_must_match(operator: str, values: tuple[str, ...], passes: bool) -> None:
    term = NodeSelectorTerm((Requirement("disk", operator, values),))
    pod = Pod("a", affinity=Affinity(NodeAffinity((term,))))
    status = NodeAffinityPlugin().filter(STATE, pod, node(labels={"disk": "ssd"}))
    assert status == (None if passes else Status(FOR_GOOD, ("node(s) didn't match Pod's node affinity/selector",)))


@pytest.mark.parametrize(("operator", "passes"), [("Gt", True), ("Lt", False)])
def test_node_affinity_compares_integers(operator: str, passes: bool) -> None:
    assert Requirement("cores", operator, ("8",)).matches({"cores": "16"}) is passes


def test_the_node_selector_must_match() -> None:
    pod = Pod("a", node_selector={"disk": "ssd"})
    assert NodeAffinityPlugin().filter(STATE, pod, node(labels={"disk": "ssd", "zone": "a"})) is None
    refused = NodeAffinityPlugin().filter(STATE, pod, node())
    assert refused == Status(FOR_GOOD, ("node(s) didn't match Pod's node affinity/selector",))


def test_who_asks_nothing_of_nodes_skips_their_labels_and_ports() -> None:
    for plugin in (NodeAffinityPlugin(), NodePorts(), InterPodAffinity()):
        status = plugin.pre_filter(STATE, Pod("a"), [node()])
        assert status is not None
        assert status.code is Code.SKIP


def test_a_host_port_is_for_one_pod() -> None:
    pod = Pod("a", host_ports=(HostPort(80),))
    refused = Status(REFUSED, ("node(s) didn't have free ports for the requested pod ports",))
    assert NodePorts().filter(STATE, pod, node()) is None
    assert NodePorts().filter(STATE, pod, node("n1", pod)) == refused
    assert NodePorts().filter(STATE, Pod("b", host_ports=(HostPort(80, "UDP"),)), node("n1", pod)) is None


@pytest.mark.parametrize(
    ("requests", "status"),
    [
        ({"cpu": 500}, None),
        ({"cpu": 1500}, Status(REFUSED, ("Insufficient cpu",))),
        ({"cpu": 1500, "memory": 4000}, Status(REFUSED, ("Insufficient cpu", "Insufficient memory"))),
        ({"cpu": 2500}, Status(FOR_GOOD, ("Insufficient cpu",))),
        ({"example.com/gpu": 1}, Status(FOR_GOOD, ("Insufficient example.com/gpu",))),
        ({"example.com/gpu": 0}, None),
    ],
)
def test_what_is_asked_for_must_be_free(requests: dict[str, int], status: Status | None) -> None:
    used = node("n1", Pod("other", requests={"cpu": 1000, "memory": 1000}))
    assert NodeResourcesFit().filter(STATE, Pod("a", requests=requests), used) == status


def test_a_node_takes_no_more_pods_than_it_may() -> None:
    full = node("n1", Pod("a"), Pod("b"), Pod("c"))
    assert NodeResourcesFit().filter(STATE, Pod("d"), full) == Status(REFUSED, ("Too many pods",))


def inter_pod(pod: Pod, nodes: list[NodeInfo]) -> dict[str, str]:
    """The message for each node, empty where the Pod fits."""
    plugin, state = InterPodAffinity(), CycleState()
    status = plugin.pre_filter(state, pod, nodes)
    if status is not None:
        return {each.name: "" for each in nodes}
    answers = ((each.name, plugin.filter(state, pod, each)) for each in nodes)
    return {name: "" if answer is None else answer.message for name, answer in answers}


def zoned(name: str, zone: str, *pods: Pod) -> NodeInfo:
    return node(name, *pods, labels={"zone": zone})


WEB = PodAffinityTerm({"app": "web"}, "zone")


def test_affinity_wants_a_matching_pod_in_the_same_zone() -> None:
    nodes = [zoned("n1", "a", Pod("w", labels={"app": "web"})), zoned("n2", "a"), zoned("n3", "b")]
    pod = Pod("a", affinity=Affinity(pod_affinity=(WEB,)))
    assert inter_pod(pod, nodes) == {"n1": "", "n2": "", "n3": "node(s) didn't match pod affinity rules"}


def test_the_first_of_its_kind_may_go_anywhere_that_has_the_label() -> None:
    pod = Pod("w", labels={"app": "web"}, affinity=Affinity(pod_affinity=(WEB,)))
    answers = inter_pod(pod, [zoned("n1", "a"), node("n2")])
    assert answers == {"n1": "", "n2": "node(s) didn't match pod affinity rules"}


def test_anti_affinity_keeps_away_from_matching_pods() -> None:
    nodes = [zoned("n1", "a", Pod("w", labels={"app": "web"})), zoned("n2", "a"), zoned("n3", "b")]
    pod = Pod("a", affinity=Affinity(pod_anti_affinity=(WEB,)))
    text = "node(s) didn't match pod anti-affinity rules"
    assert inter_pod(pod, nodes) == {"n1": text, "n2": text, "n3": ""}


def test_pods_that_are_there_keep_others_away_as_well() -> None:
    hermit = Pod("h", affinity=Affinity(pod_anti_affinity=(WEB,)))
    nodes = [zoned("n1", "a", hermit), zoned("n2", "b")]
    text = "node(s) didn't satisfy existing pods anti-affinity rules"
    assert inter_pod(Pod("w", labels={"app": "web"}), nodes) == {"n1": text, "n2": ""}
    assert inter_pod(Pod("x", labels={"app": "db"}), nodes) == {"n1": "", "n2": ""}
