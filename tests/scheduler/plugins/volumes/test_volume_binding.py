"""VolumeBinding: which nodes a Pod's volumes allow, and how they are scored."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from podtrail_scheduler.configuration.args import UtilizationShapePoint, VolumeBindingArgs
from podtrail_scheduler.framework.events import EventResource
from podtrail_scheduler.framework.status import SKIP, Code
from podtrail_scheduler.objects import (
    HOSTNAME,
    WAIT_FOR_FIRST_CONSUMER,
    ZONE,
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    LabelSelector,
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
from tests.scheduler.plugins.refusal import refusal

GI = 1024**3
DRIVER = "disk.example.com"
OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}

POD = Pod("p", uid="p", volumes=(Volume("data", claim_name="data"),))
LOCAL = StorageClass("local", "kubernetes.io/no-provisioner", WAIT_FOR_FIRST_CONSUMER)
FAST = StorageClass("fast", DRIVER, WAIT_FOR_FIRST_CONSUMER)


def only_on(*values: str, key: str = HOSTNAME) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm((Requirement(key, "In", values),)),))


def claim(name: str = "data", **fields: Any) -> PersistentVolumeClaim:
    defaults = {"uid": name, "storage_class_name": "local", "request": GI, "access_modes": ("ReadWriteOnce",)}
    return PersistentVolumeClaim(name, **{**defaults, **fields})


def local(name: str, host: str, **fields: Any) -> PersistentVolume:
    defaults = {"storage_class_name": "local", "capacity": GI, "access_modes": ("ReadWriteOnce", "ReadWriteMany")}
    return PersistentVolume(name, node_affinity=only_on(host), **{**defaults, **fields})


def hosts(cluster: Cluster, *names: str) -> None:
    for name in names:
        cluster.node(name, {HOSTNAME: name, ZONE: f"zone-{name}"})


def refused(cluster: Cluster, pod: Pod = POD) -> dict[str, str]:
    answers: dict[str, str] = cluster.refused(VolumeBinding(cluster.handle), pod)
    return answers


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        ([claim(deletion_timestamp=1)], 'persistentvolumeclaim "data" is being deleted'),
        (
            [claim(phase="Lost", volume_name="pv")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
        ),
        ([claim(storage_class_name="unknown")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(volume_name="pv")], "pod has unbound immediate PersistentVolumeClaims"),
    ],
    ids=["missing", "going", "lost", "immediate", "half bound"],
)
def test_a_claim_in_a_bad_state_refuses_the_pod_for_good(cluster: Cluster, claims: list[Any], message: str) -> None:
    cluster.have(LOCAL, *claims)
    status = refusal(cluster.begin(VolumeBinding(cluster.handle), POD)[1])
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == message


def test_the_claim_of_an_ephemeral_volume_is_waited_for_and_must_be_the_pods_own(cluster: Cluster) -> None:
    pod = Pod("p", uid="p", volumes=(Volume("tmp", ephemeral=True),))
    plugin = VolumeBinding(cluster.handle)
    status = refusal(cluster.begin(plugin, pod)[1])
    waiting = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-tmp"'
    assert status.message == waiting
    cluster.have(LOCAL, claim("p-tmp", owner_uid="another"))
    status = refusal(cluster.begin(plugin, pod)[1])
    assert status.message == "PVC default/p-tmp was not created for pod default/p (pod is not owner)"
    cluster.have(claim("p-tmp", owner_uid="p"), local("pv", "a"))
    hosts(cluster, "a", "b")
    assert refused(cluster, pod) == {"b": NONE_TO_BIND}


def test_a_migrated_volume_is_looked_for_by_the_topology_of_its_driver(cluster: Cluster) -> None:
    volume = PersistentVolume(
        "pv", kind="gcePersistentDisk", source={"pdName": "d"}, node_affinity=only_on("z", key=ZONE)
    )
    migrated = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"}
    cluster.have(claim(volume_name="pv", annotations=BOUND), volume, CsiNode("new", annotations=migrated))
    cluster.node("new", {"topology.gke.io/zone": "z"})
    cluster.node("old", {"topology.gke.io/zone": "z"})
    cluster.node("older", {ZONE: "z"})
    assert refused(cluster) == {"old": OUT_OF_REACH}


@pytest.mark.parametrize(
    ("wanted", "offered", "fits"),
    [
        ({}, {}, True),
        ({"request": 2 * GI}, {}, False),
        ({"access_modes": ("ReadOnlyMany",)}, {}, False),
        ({"volume_mode": "Block"}, {}, False),
        ({"volume_mode": "Block"}, {"volume_mode": "Block"}, True),
        ({"selector": LabelSelector({"tier": "gold"})}, {}, False),
        ({"selector": LabelSelector({"tier": "gold"})}, {"labels": {"tier": "gold"}}, True),
        ({}, {"storage_class_name": "other"}, False),
        ({}, {"phase": "Released"}, False),
        ({}, {"deletion_timestamp": 1}, False),
        ({}, {"claim_ref": ("default", "another", "")}, False),
        ({}, {"claim_ref": ("default", "data", "data"), "phase": "Released"}, True),
        ({}, {"claim_ref": ("default", "data", "earlier")}, False),
        ({"volume_attributes_class_name": "gold"}, {}, False),
        ({"annotations": {"volume.beta.kubernetes.io/storage-class": "local"}, "storage_class_name": "x"}, {}, True),
    ],
)
def test_a_volume_must_be_what_the_claim_asks_for(
    cluster: Cluster, wanted: dict[str, Any], offered: dict[str, Any], fits: bool
) -> None:
    cluster.have(LOCAL, claim(**wanted), local("pv", "a", **offered))
    hosts(cluster, "a")
    assert refused(cluster) == ({} if fits else {"a": NONE_TO_BIND})


def test_a_claim_that_is_meant_for_a_node_goes_there(cluster: Cluster) -> None:
    selected = {"volume.kubernetes.io/selected-node": "a"}
    cluster.have(FAST, claim(storage_class_name="fast", annotations=selected))
    hosts(cluster, "a", "b")
    assert refused(cluster) == {"b": NONE_TO_BIND}


def capacity(name: str, host: str, size: int | None, **fields: Any) -> CsiStorageCapacity:
    return CsiStorageCapacity(name, "kube-system", "fast", LabelSelector({HOSTNAME: host}), size, **fields)


def scored(cluster: Cluster, args: VolumeBindingArgs | None = None, pod: Pod = POD) -> dict[str, int]:
    plugin = VolumeBinding(cluster.handle, args)
    state, answer = cluster.begin(plugin, pod)
    assert answer is None
    for node in cluster.nodes:
        assert plugin.filter(state, pod, node) is None
    assert plugin.pre_score(state, pod, cluster.nodes) is None
    return {node.name: plugin.score(state, pod, node) for node in cluster.nodes}


def test_without_a_shape_scoring_is_skipped(cluster: Cluster) -> None:
    cluster.have(LOCAL, claim(), local("a", "a"))
    hosts(cluster, "a")
    plugin = VolumeBinding(cluster.handle, VolumeBindingArgs(shape=()))
    state, _ = cluster.begin(plugin, POD)
    assert plugin.pre_score(state, POD, cluster.nodes) == SKIP


def test_hints_look_for_claims_classes_and_room(cluster: Cluster, hopeful: Callable[..., bool]) -> None:
    plugin = VolumeBinding(cluster.handle)
    small, large = capacity("c", "a", GI), capacity("c", "a", 2 * GI)
    assert hopeful(plugin, POD, EventResource.PERSISTENT_VOLUME_CLAIM, None, claim())
    assert not hopeful(plugin, POD, EventResource.PERSISTENT_VOLUME_CLAIM, None, claim("other"))
    assert not hopeful(plugin, POD, EventResource.PERSISTENT_VOLUME_CLAIM, None, claim(namespace="other"))
    assert hopeful(plugin, POD, EventResource.STORAGE_CLASS, FAST, replace(FAST, allowed_topologies=({},)))
    assert not hopeful(plugin, POD, EventResource.STORAGE_CLASS, FAST, replace(FAST, annotations={"a": "b"}))
    assert hopeful(plugin, POD, EventResource.CSI_STORAGE_CAPACITY, small, large)
    assert not hopeful(plugin, POD, EventResource.CSI_STORAGE_CAPACITY, large, small)
    assert hopeful(plugin, POD, EventResource.CSI_NODE, None, CsiNode("a"))
    assert not hopeful(plugin, POD, EventResource.CSI_NODE, CsiNode("a"), CsiNode("a", resource_version="2"))
    told, silent = CsiDriver(DRIVER, storage_capacity=True), CsiDriver(DRIVER)
    inline = replace(POD, volumes=(Volume("x", kind="csi", source={"driver": DRIVER}),))
    assert hopeful(plugin, inline, EventResource.CSI_DRIVER, told, silent)
    assert not hopeful(plugin, POD, EventResource.CSI_DRIVER, told, silent)


def test_a_driver_that_tells_its_capacity_must_have_enough(cluster: Cluster) -> None:
    cluster.have(FAST, CsiDriver(DRIVER, storage_capacity=True), claim(storage_class_name="fast", request=2 * GI))
    cluster.have(capacity("ca", "a", 2 * GI), capacity("cb", "b", GI), capacity("cc", "c", None))
    cluster.have(capacity("cd", "d", 4 * GI, maximum_volume_size=GI))
    hosts(cluster, "a", "b", "c", "d", "e")
    assert refused(cluster) == dict.fromkeys("bcde", NO_SPACE)
    cluster.have(CsiDriver(DRIVER, storage_capacity=False))
    assert refused(cluster) == {}


def test_a_volume_with_more_left_over_scores_higher(cluster: Cluster) -> None:
    cluster.have(LOCAL, claim(), local("a", "a", capacity=GI), local("b", "b", capacity=4 * GI))
    hosts(cluster, "a", "b")
    assert scored(cluster) == {"a": 0, "b": 75}
    packed = VolumeBindingArgs(shape=(UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10)))
    assert scored(cluster, packed) == {"a": 100, "b": 25}


def test_classes_are_averaged_and_halves_rounded_up(cluster: Cluster) -> None:
    pod = replace(POD, volumes=(Volume("x", claim_name="x"), Volume("y", claim_name="y")))
    cluster.have(LOCAL, replace(LOCAL, name="slow"), claim("x"), claim("y", storage_class_name="slow"))
    cluster.have(local("px", "a", capacity=GI), local("py", "a", capacity=4 * GI, storage_class_name="slow"))
    hosts(cluster, "a")
    assert scored(cluster, pod=pod) == {"a": 38}  # 0 and 75
