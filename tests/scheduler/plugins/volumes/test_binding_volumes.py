"""VolumeBinding after the decision: assuming, writing, waiting, giving back. In virtual time."""

from dataclasses import replace

import pytest
from podtrail_scheduler.configuration.args import VolumeBindingArgs
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.status import SKIP, Code, Status
from podtrail_scheduler.objects import (
    HOSTNAME,
    WAIT_FOR_FIRST_CONSUMER,
    NodeSelector,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Requirement,
    StorageClass,
    Volume,
)
from podtrail_scheduler.plugins.volume_binding import VolumeBinding

from tests.scheduler.plugins.cluster import Cluster

SECOND = 1_000_000_000
SELECTED = "volume.kubernetes.io/selected-node"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
POD = Pod("p", uid="p", volumes=(Volume("data", claim_name="data"),))
HERE = NodeSelector((NodeSelectorTerm((Requirement(HOSTNAME, "In", ("a",)),)),))
STATIC = StorageClass("static", "kubernetes.io/no-provisioner", WAIT_FOR_FIRST_CONSUMER)
FAST = StorageClass("fast", "disk.example.com", WAIT_FOR_FIRST_CONSUMER)
VOLUME = PersistentVolume("pv", storage_class_name="static", node_affinity=HERE)
STATIC_CLAIM = PersistentVolumeClaim("data", uid="c", storage_class_name="static")
FAST_CLAIM = replace(STATIC_CLAIM, storage_class_name="fast")


def filtered(cluster: Cluster, plugin: VolumeBinding, pod: Pod = POD) -> tuple[CycleState, Status | None]:
    state, answer = cluster.begin(plugin, pod)
    assert answer is None
    return state, plugin.filter(state, pod, cluster.nodes[0])


def reserved(cluster: Cluster, plugin: VolumeBinding) -> CycleState:
    cluster.pods[POD.uid] = POD
    state, answer = filtered(cluster, plugin)
    assert answer is None
    assert plugin.reserve(state, POD, "a") is None
    return state


def pre_bind(cluster: Cluster, plugin: VolumeBinding, state: CycleState) -> Status | None:
    answer: Status | None = cluster.run(plugin.pre_bind(state, POD, "a"))
    return answer


def controller_binds(cluster: Cluster, after: int, volume: PersistentVolume = VOLUME) -> None:
    """So long from now the volume controller binds the claim to the volume."""

    def bind() -> None:
        claim = cluster.shown(PersistentVolumeClaim, "default/data")
        current = cluster.listers.get(PersistentVolume, volume.name)
        if current is None:
            cluster.objects.put(replace(volume, claim_ref=("default", "data", "c")))
        annotations = {**claim.annotations, **BOUND}
        cluster.objects.put(replace(claim, volume_name=volume.name, annotations=annotations))

    cluster.timeline.after(after, bind)


@pytest.fixture
def static(cluster: Cluster) -> Cluster:
    """A claim, and one volume for it on node a."""
    cluster.node("a", {HOSTNAME: "a"})
    cluster.have(STATIC, VOLUME, STATIC_CLAIM)
    return cluster


@pytest.fixture
def dynamic(cluster: Cluster) -> Cluster:
    """A claim that a volume is to be made for."""
    cluster.node("a", {HOSTNAME: "a"})
    cluster.have(FAST, FAST_CLAIM)
    return cluster


def test_a_volume_is_taken_from_reserve_on_and_given_back_by_unreserve(static: Cluster) -> None:
    plugin = VolumeBinding(static.handle)
    other = Pod("q", uid="q", volumes=(Volume("data", claim_name="other"),))
    static.have(replace(STATIC_CLAIM, name="other", uid="o"))
    state = reserved(static, plugin)
    assert filtered(static, plugin, other)[1] is not None
    plugin.unreserve(state, POD, "a")
    assert filtered(static, plugin, other)[1] is None


def test_a_bound_volume_is_written_and_the_controller_waited_for(static: Cluster) -> None:
    plugin = VolumeBinding(static.handle)
    state = reserved(static, plugin)
    assert plugin.pre_bind_pre_flight(state, POD, "a") is None
    controller_binds(static, 3 * SECOND)
    assert pre_bind(static, plugin, state) is None
    assert 3 * SECOND <= static.timeline.now() < 4 * SECOND
    volume = static.shown(PersistentVolume, "pv")
    assert volume.claim_ref == ("default", "data", "c")
    assert volume.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}


def test_a_claim_to_be_provisioned_is_given_its_node_and_waited_for(dynamic: Cluster) -> None:
    plugin = VolumeBinding(dynamic.handle)
    state = reserved(dynamic, plugin)
    controller_binds(dynamic, SECOND)
    assert pre_bind(dynamic, plugin, state) is None
    assert dynamic.shown(PersistentVolumeClaim, "default/data").annotations[SELECTED] == "a"


def test_nothing_is_bound_twice(static: Cluster) -> None:
    static.have(replace(STATIC_CLAIM, volume_name="pv", annotations=BOUND))
    plugin = VolumeBinding(static.handle)
    state = reserved(static, plugin)
    assert plugin.pre_bind_pre_flight(state, POD, "a") == SKIP
    assert pre_bind(static, plugin, state) is None


def test_waiting_ends_with_the_configured_timeout(static: Cluster) -> None:
    plugin = VolumeBinding(static.handle, VolumeBindingArgs(bind_timeout_seconds=30))
    status = pre_bind(static, plugin, reserved(static, plugin))
    assert status is not None
    assert (status.code, status.message) == (Code.ERROR, "binding volumes: context deadline exceeded")


def test_a_provisioner_that_gives_the_claim_back_ends_the_wait(dynamic: Cluster) -> None:
    plugin = VolumeBinding(dynamic.handle)
    state = reserved(dynamic, plugin)

    def reject() -> None:
        claim = dynamic.shown(PersistentVolumeClaim, "default/data")
        dynamic.objects.put(replace(claim, annotations={"why": "no room"}))

    dynamic.timeline.after(SECOND, reject)
    status = pre_bind(dynamic, plugin, state)
    assert status is not None
    assert status.message == 'binding volumes: provisioning failed for PVC "data"'


def test_a_volume_made_out_of_reach_ends_the_wait(dynamic: Cluster) -> None:
    plugin = VolumeBinding(dynamic.handle)
    state = reserved(dynamic, plugin)
    elsewhere = NodeSelector((NodeSelectorTerm((Requirement(HOSTNAME, "In", ("b",)),)),))
    controller_binds(dynamic, SECOND, replace(VOLUME, node_affinity=elsewhere))
    status = pre_bind(dynamic, plugin, state)
    assert status is not None
    assert status.message == (
        'binding volumes: pv "pv" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'
    )


def test_a_pod_that_is_gone_is_not_waited_for(static: Cluster) -> None:
    plugin = VolumeBinding(static.handle)
    state = reserved(static, plugin)
    static.timeline.after(SECOND, lambda: static.pods.clear())
    status = pre_bind(static, plugin, state)
    assert status is not None
    assert status.message == 'binding volumes: pod does not exist any more: pod "p" not found'


def test_a_conflict_fails_the_attempt_and_unreserve_gives_the_volume_back(static: Cluster) -> None:
    plugin = VolumeBinding(static.handle)
    state = reserved(static, plugin)
    static.objects.put(replace(VOLUME, labels={"changed": "meanwhile"}))
    status = pre_bind(static, plugin, state)
    assert status is not None
    assert status.message == (
        'Operation cannot be fulfilled on persistentvolumes "pv": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    plugin.unreserve(state, POD, "a")
    assert filtered(static, plugin)[1] is None


def test_a_volume_that_changed_since_filter_is_an_error_at_reserve(static: Cluster) -> None:
    plugin = VolumeBinding(static.handle)
    state, answer = filtered(static, plugin)
    assert answer is None
    static.have(replace(VOLUME, labels={"changed": "meanwhile"}))
    status = plugin.reserve(state, POD, "a")
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message.startswith('"pv" is out of sync')
