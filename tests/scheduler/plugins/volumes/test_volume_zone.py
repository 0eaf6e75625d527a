"""VolumeZone: where volumes say they are, Pods go."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from podtrail_scheduler.framework.events import EventResource
from podtrail_scheduler.framework.status import SKIP, Code
from podtrail_scheduler.objects import (
    WAIT_FOR_FIRST_CONSUMER,
    ZONE,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Volume,
)
from podtrail_scheduler.plugins.volume_zone import VolumeZone

from tests.scheduler.plugins.cluster import Cluster
from tests.scheduler.plugins.refusal import refusal

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
POD = Pod("p", uid="p", volumes=(Volume("data", claim_name="data"),))
CLAIM = PersistentVolumeClaim("data", volume_name="pv")
ELSEWHERE = "node(s) had no available volume zone"


@pytest.mark.parametrize("label", [ZONE, BETA_ZONE])
def test_a_pod_goes_to_a_zone_of_its_volume(cluster: Cluster, label: str) -> None:
    cluster.have(CLAIM, PersistentVolume("pv", labels={label: "a__b"}))
    for zone in "abc":
        cluster.node(zone, {ZONE: zone})
    assert cluster.refused(VolumeZone(cluster.handle), POD) == {"c": ELSEWHERE}


def test_nodes_that_say_nothing_about_zones_are_not_asked(cluster: Cluster) -> None:
    cluster.have(CLAIM, PersistentVolume("pv", labels={ZONE: "a"}))
    cluster.node("bare")
    cluster.node("region", {"topology.kubernetes.io/region": "r"})
    assert cluster.refused(VolumeZone(cluster.handle), POD) == {"region": ELSEWHERE}


def test_an_invalid_zone_label_is_ignored(cluster: Cluster) -> None:
    cluster.have(CLAIM, PersistentVolume("pv", labels={ZONE: "a__"}))
    assert cluster.begin(VolumeZone(cluster.handle), POD)[1] == SKIP


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        ([CLAIM], 'persistentvolume "pv" not found'),
        ([replace(CLAIM, volume_name="")], "PersistentVolumeClaim had no pv name and storageClass name"),
        (
            [replace(CLAIM, volume_name="", storage_class_name="fast")],
            'storageclass.storage.k8s.io "fast" not found',
        ),
        (
            [replace(CLAIM, volume_name="", storage_class_name="fast"), StorageClass("fast")],
            "PersistentVolume had no name",
        ),
    ],
)
def test_what_is_missing_refuses_the_pod_for_good(cluster: Cluster, objects: list[Any], message: str) -> None:
    cluster.have(*objects)
    status = refusal(cluster.begin(VolumeZone(cluster.handle), POD)[1])
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == message


def test_claims_that_wait_for_the_pod_do_not_matter_yet(cluster: Cluster) -> None:
    cluster.have(
        replace(CLAIM, volume_name="", storage_class_name="local"),
        StorageClass("local", volume_binding_mode=WAIT_FOR_FIRST_CONSUMER),
    )
    assert cluster.begin(VolumeZone(cluster.handle), POD)[1] == SKIP


def test_hints_look_at_the_pods_claims_and_at_labels_of_volumes(cluster: Cluster, hopeful: Callable[..., bool]) -> None:
    plugin = VolumeZone(cluster.handle)
    other = PersistentVolumeClaim("other")
    volume = PersistentVolume("pv", labels={ZONE: "a"})
    waiting = StorageClass("x", volume_binding_mode=WAIT_FOR_FIRST_CONSUMER)
    assert hopeful(plugin, POD, EventResource.PERSISTENT_VOLUME_CLAIM, None, CLAIM)
    assert not hopeful(plugin, POD, EventResource.PERSISTENT_VOLUME_CLAIM, None, other)
    assert hopeful(plugin, POD, EventResource.PERSISTENT_VOLUME, None, volume)
    assert hopeful(plugin, POD, EventResource.PERSISTENT_VOLUME, volume, replace(volume, labels={}))
    assert not hopeful(plugin, POD, EventResource.PERSISTENT_VOLUME, volume, replace(volume, phase="Bound"))
    assert hopeful(plugin, POD, EventResource.STORAGE_CLASS, None, waiting)
    assert not hopeful(plugin, POD, EventResource.STORAGE_CLASS, None, StorageClass("x"))
