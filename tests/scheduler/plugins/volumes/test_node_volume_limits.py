"""NodeVolumeLimits: as many volumes of a driver as the node can attach."""

from collections.abc import Callable
from dataclasses import replace

from podtrail_scheduler.framework.events import EventResource
from podtrail_scheduler.framework.status import SKIP, Code
from podtrail_scheduler.objects import (
    CsiDriver,
    CsiNode,
    CsiNodeDriver,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Volume,
    VolumeAttachment,
)
from podtrail_scheduler.plugins.node_volume_limits import NodeVolumeLimits

from tests.scheduler.plugins.cluster import Cluster
from tests.scheduler.plugins.refusal import refusal

DRIVER = "disk.example.com"
TOO_MANY = "node(s) exceed max volume count"


def limited(limit: int | None, driver: str = DRIVER) -> CsiNode:
    return CsiNode("n", (CsiNodeDriver(driver, allocatable=limit),))


def volume(name: str, driver: str = DRIVER) -> PersistentVolume:
    return PersistentVolume(name, kind="csi", source={"driver": driver, "volumeHandle": name})


def bound(name: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(name, volume_name=name)


def user(name: str, *claims: str) -> Pod:
    return Pod(name, uid=name, node_name="n", volumes=tuple(Volume(each, claim_name=each) for each in claims))


def have(cluster: Cluster, *names: str) -> None:
    cluster.have(*(bound(name) for name in names), *(volume(name) for name in names))


def test_an_ephemeral_volume_counts_and_must_be_the_pods_own(cluster: Cluster) -> None:
    cluster.have(limited(0), StorageClass("fast", DRIVER))
    cluster.have(PersistentVolumeClaim("new-tmp", storage_class_name="fast", owner_uid="new"))
    cluster.node("n")
    new = Pod("new", uid="new", volumes=(Volume("tmp", ephemeral=True),))
    plugin = NodeVolumeLimits(cluster.handle)
    assert cluster.refused(plugin, new) == {"n": TOO_MANY}
    foreign = replace(new, uid="another")
    state, _ = cluster.begin(plugin, foreign)
    status = refusal(plugin.filter(state, foreign, cluster.nodes[0]))
    assert status.code is Code.ERROR
    assert status.message == "PVC default/new-tmp was not created for pod default/new (pod is not owner)"


def test_a_driver_may_ask_that_pods_keep_off_nodes_without_it(cluster: Cluster) -> None:
    have(cluster, "v")
    cluster.have(CsiDriver(DRIVER, prevent_pod_scheduling_if_missing=True))
    cluster.node("n")
    missing = f"{DRIVER} CSI driver is not installed on the node"
    assert cluster.refused(NodeVolumeLimits(cluster.handle), user("new", "v")) == {"n": missing}
    cluster.have(limited(None))
    assert cluster.refused(NodeVolumeLimits(cluster.handle), user("new", "v")) == {}


def test_a_missing_claim_refuses_the_new_pod_but_is_forgiven_an_old_one(cluster: Cluster) -> None:
    have(cluster, "v")
    cluster.have(limited(1))
    cluster.node("n", {}, user("old", "gone"))
    plugin = NodeVolumeLimits(cluster.handle)
    assert cluster.refused(plugin, user("new", "v")) == {}
    message = 'looking up PVC default/gone: persistentvolumeclaim "gone" not found'
    assert cluster.refused(plugin, user("new", "gone")) == {"n": message}


def test_pods_without_attachable_volumes_skip(cluster: Cluster) -> None:
    assert cluster.begin(NodeVolumeLimits(cluster.handle), Pod("p", volumes=(Volume("x", kind="nfs"),)))[1] == SKIP


def test_hints_look_for_more_room(cluster: Cluster, hopeful: Callable[..., bool]) -> None:
    plugin, new = NodeVolumeLimits(cluster.handle), user("new", "v")
    attachment = VolumeAttachment("a", DRIVER, "n", "v")
    assert hopeful(plugin, new, EventResource.CSI_NODE, limited(1), limited(2))
    assert not hopeful(plugin, new, EventResource.CSI_NODE, limited(2), limited(1))
    assert hopeful(plugin, new, EventResource.ASSIGNED_POD, user("old", "w"), None)
    assert not hopeful(plugin, new, EventResource.ASSIGNED_POD, user("old"), None)
    assert hopeful(plugin, new, EventResource.PERSISTENT_VOLUME_CLAIM, None, bound("v"))
    assert not hopeful(plugin, new, EventResource.PERSISTENT_VOLUME_CLAIM, None, bound("w"))
    assert hopeful(plugin, new, EventResource.VOLUME_ATTACHMENT, attachment, None)
    assert not hopeful(plugin, user("new"), EventResource.VOLUME_ATTACHMENT, attachment, None)
