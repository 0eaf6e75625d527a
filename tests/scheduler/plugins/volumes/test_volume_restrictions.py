"""VolumeRestrictions: disks and claims that only one Pod may use."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from podtrail_scheduler.framework.events import EventResource
from podtrail_scheduler.objects import PersistentVolumeClaim, Pod, Volume
from podtrail_scheduler.plugins.volume_restrictions import VolumeRestrictions

from tests.scheduler.plugins.cluster import Cluster
from tests.scheduler.plugins.refusal import refusal

DISK = "node(s) had no available disk"
CLAIM = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def with_disk(kind: str, source: Mapping[str, object], name: str = "new") -> Pod:
    return Pod(name, uid=name, volumes=(Volume("disk", kind=kind, source=source),))


def rbd(*monitors: str, pool: str = "p") -> dict[str, object]:
    return {"monitors": list(monitors), "pool": pool, "image": "i"}


def with_claim(claim: str, name: str = "new", namespace: str = "default") -> Pod:
    return Pod(name, namespace, uid=name, volumes=(Volume("data", claim_name=claim),))


@pytest.mark.parametrize(
    ("kind", "mine", "theirs", "conflict"),
    [
        ("awsElasticBlockStore", {"volumeID": "v"}, {"volumeID": "v", "readOnly": True}, True),
        ("awsElasticBlockStore", {"volumeID": "v"}, {"volumeID": "w"}, False),
        ("gcePersistentDisk", {"pdName": "d"}, {"pdName": "d", "readOnly": True}, True),
        ("gcePersistentDisk", {"pdName": "d", "readOnly": True}, {"pdName": "d", "readOnly": True}, False),
        ("iscsi", {"iqn": "q", "lun": 1}, {"iqn": "q", "lun": 2}, True),
        (
            "rbd",
            {"monitors": ["a", "b"], "pool": "p", "image": "i"},
            {"monitors": ["b"], "pool": "p", "image": "i"},
            True,
        ),
        ("rbd", {"monitors": ["a"], "pool": "p", "image": "i"}, {"monitors": ["b"], "pool": "p", "image": "i"}, False),
        ("rbd", {"monitors": ["a"], "pool": "p", "image": "i"}, {"monitors": ["a"], "pool": "q", "image": "i"}, False),
        ("nfs", {"server": "s"}, {"server": "s"}, False),
    ],
)
def test_an_inline_disk_is_used_by_one_pod_of_a_node(
    cluster: Cluster, kind: str, mine: dict[str, object], theirs: dict[str, object], conflict: bool
) -> None:
    cluster.node("there", {}, with_disk(kind, theirs, "old"))
    cluster.node("elsewhere")
    refused = cluster.refused(VolumeRestrictions(cluster.handle), with_disk(kind, mine))
    assert refused == ({"there": DISK} if conflict else {})


def test_preemption_sees_the_claim_let_go(cluster: Cluster) -> None:
    cluster.have(PersistentVolumeClaim("once", access_modes=("ReadWriteOncePod",)))
    old, new = with_claim("once", "old"), with_claim("once")
    node = cluster.node("a", {}, old)
    plugin = VolumeRestrictions(cluster.handle)
    state, _ = cluster.begin(plugin, new)
    trial = state.clone()
    plugin.remove_pod(trial, new, old, node)
    assert plugin.filter(trial, new, node) is None
    plugin.add_pod(trial, new, old, node)
    assert refusal(plugin.filter(trial, new, node)).message == CLAIM
    assert refusal(plugin.filter(state, new, node)).message == CLAIM


def test_hints_look_for_pods_that_let_go_of_disk_or_claim(cluster: Cluster, hopeful: Callable[..., bool]) -> None:
    plugin, new = VolumeRestrictions(cluster.handle), with_claim("once")
    disk = with_disk("iscsi", {"iqn": "q"})
    assert hopeful(plugin, new, EventResource.ASSIGNED_POD, with_claim("once", "old"), None)
    assert not hopeful(plugin, new, EventResource.ASSIGNED_POD, with_claim("other", "old"), None)
    assert not hopeful(plugin, new, EventResource.ASSIGNED_POD, with_claim("once", "old", "elsewhere"), None)
    assert hopeful(plugin, disk, EventResource.ASSIGNED_POD, replace(disk, uid="old"), None)
    assert hopeful(plugin, new, EventResource.PERSISTENT_VOLUME_CLAIM, None, PersistentVolumeClaim("once"))
    assert not hopeful(plugin, new, EventResource.PERSISTENT_VOLUME_CLAIM, None, PersistentVolumeClaim("other"))
