"""Whom DefaultPreemption has give way, and what it says when nobody can."""

from collections.abc import Mapping, Sequence

from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import PostFilterResult
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, unresolvable, unschedulable
from podtrail_scheduler.framework.trial import fits
from podtrail_scheduler.framework.waiting import WaitingPod
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.plugins.default_preemption import DefaultPreemption
from podtrail_scheduler.plugins.registry import default_profile

SHORT = unschedulable("Insufficient cpu")


class Requests:
    """The requests that reach the API server."""

    def __init__(self) -> None:
        self.deleted: list[tuple[str, str]] = []

    def get_pod(self, uid: str) -> Pod | None:
        return None

    def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        raise NotImplementedError

    def delete_pod(self, pod: Pod, reason: str) -> None:
        self.deleted.append((pod.name, reason))

    def patch_status(self, pod: Pod, message: str, nominated_node: str | None) -> None:
        raise NotImplementedError


def pod(name: str, cpu: int, priority: int = 0, created: int = 0, **fields: object) -> Pod:
    requests = {"cpu": cpu}
    return Pod(name, uid=name, requests=requests, priority=priority, creation_timestamp=created, **fields)  # type: ignore[arg-type]


def node(name: str, *pods: Pod) -> NodeInfo:
    info = NodeInfo(Node(name, allocatable={"cpu": 4000, "pods": 10}))
    for each in pods:
        info.add(each.on(name))
    return info


class Cluster:
    """Nodes and the plugin on them."""

    def __init__(self, *nodes: NodeInfo) -> None:
        self.client = Requests()
        self.nodes: Sequence[NodeInfo] = nodes
        self.handle = Handle(Timeline(0, "test"), self.client, lambda: self.nodes)
        profile = default_profile(self.handle)
        self.handle.fits = lambda pod, node, nodes: fits(profile, pod, node, nodes)

    def preempt(self, for_pod: Pod, refusals: Mapping[str, Status] | None = None) -> PostFilterResult:
        statuses = refusals if refusals is not None else {node.name: SHORT for node in self.nodes}
        return DefaultPreemption(self.handle).post_filter(CycleState(), for_pod, statuses)

    def victims(self) -> list[str]:
        return [name for name, _ in self.client.deleted]


def test_only_as_many_give_way_as_must() -> None:
    cluster = Cluster(node("n1", pod("a", 1000), pod("b", 1000), pod("c", 1000), pod("d", 1000)))
    result = cluster.preempt(pod("vip", 2000, priority=10))
    assert result.nominated_node == "n1"
    assert len(cluster.victims()) == 2
    text = "preemption: found a potential placement for pod on node n1, preempting 2 victims"
    assert result.status is not None
    assert result.status.message == text
    assert cluster.client.deleted[0][1] == "Preempted by pod vip on node n1"


def test_the_less_important_give_way_first() -> None:
    old, young, low = pod("old", 1500, created=1), pod("young", 1500, created=2), pod("low", 1000, priority=-1)
    cluster = Cluster(node("n1", young, low, old))
    cluster.preempt(pod("vip", 2500, priority=10))
    assert sorted(cluster.victims()) == ["low", "young"]


def test_the_node_whose_victims_matter_least_is_nominated() -> None:
    cluster = Cluster(node("n1", pod("a", 4000, priority=5)), node("n2", pod("b", 4000, priority=1)))
    assert cluster.preempt(pod("vip", 4000, priority=10)).nominated_node == "n2"


def test_nobody_of_equal_or_higher_priority_gives_way() -> None:
    cluster = Cluster(node("n1", pod("a", 4000, priority=10)), node("n2"))
    result = cluster.preempt(pod("vip", 4000, priority=10), {"n1": SHORT, "n2": unresolvable("tainted")})
    assert result == PostFilterResult(
        unschedulable(
            "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
            "1 Preemption is not helpful for scheduling."
        ),
        "",
    )


def test_what_would_still_be_missing_is_said() -> None:
    cluster = Cluster(node("n1", pod("a", 3000, priority=10), pod("b", 1000)))
    result = cluster.preempt(pod("vip", 4000, priority=5))
    assert result.status == unschedulable("preemption: 0/1 nodes are available: 1 Insufficient cpu.")
    assert cluster.victims() == []


def test_a_pod_that_must_not_preempt_does_not() -> None:
    cluster = Cluster(node("n1", pod("a", 4000)))
    result = cluster.preempt(pod("vip", 4000, priority=9, preemption_policy="Never"))
    assert result == PostFilterResult(unschedulable("preemption: not eligible due to preemptionPolicy=Never."), None)


def test_a_pod_waits_for_victims_that_are_already_leaving() -> None:
    cluster = Cluster(node("n1", pod("a", 4000, deletion_timestamp=5)))
    result = cluster.preempt(pod("vip", 4000, priority=9, nominated_node_name="n1"))
    text = "preemption: not eligible due to a terminating pod on the nominated node."
    assert result == PostFilterResult(unschedulable(text), None)


def test_a_victim_that_waits_for_permission_is_refused_it() -> None:
    cluster = Cluster(node("n1", pod("a", 4000)))
    waiting = cluster.handle.waiting["a"] = WaitingPod("a", 0, {"Quota": 99})
    cluster.preempt(pod("vip", 4000, priority=9))
    assert (waiting.refused_by, waiting.status) == ("DefaultPreemption", unschedulable("preempted"))
    assert cluster.victims() == []


def test_room_that_others_hope_for_is_not_given_away() -> None:
    cluster = Cluster(node("n1", pod("a", 1000)))
    cluster.handle.nominator.nominate(pod("first", 3000, priority=9), "n1")
    result = cluster.preempt(pod("second", 3000, priority=9))
    assert result.nominated_node == ""


def test_trying_things_out_changes_nothing() -> None:
    cluster = Cluster(node("n1", pod("a", 1000), pod("b", 3000)))
    cluster.preempt(pod("vip", 2000, priority=9))
    assert sorted(cluster.nodes[0].pods) == ["a", "b"]
    assert cluster.nodes[0].requested == {"cpu": 4000}
