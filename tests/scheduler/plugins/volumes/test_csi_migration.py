"""In-tree volumes as the CSI drivers in their place know them."""

import pytest
from podtrail_scheduler.objects import (
    REGION,
    ZONE,
    CsiNode,
    NodeSelector,
    NodeSelectorTerm,
    PersistentVolume,
    Requirement,
)
from podtrail_scheduler.plugins.shared.csi_migration import (
    CsiVolume,
    csi_volume_of,
    driver_of_provisioner,
    inline_csi_volume,
    node_affinity_of,
)

BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
EBS_KEY = "topology.ebs.csi.aws.com/zone"
GCE = "pd.csi.storage.gke.io"


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("awsElasticBlockStore", {"volumeID": "vol-1"}, CsiVolume("ebs.csi.aws.com", "vol-1")),
        ("awsElasticBlockStore", {"volumeID": "aws://us-east-1a/vol-1"}, CsiVolume("ebs.csi.aws.com", "vol-1")),
        ("awsElasticBlockStore", {"volumeID": "aws://us-east-1a/disk"}, None),
        ("gcePersistentDisk", {"pdName": "d"}, CsiVolume(GCE, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d")),
        ("azureDisk", {"diskURI": "/a"}, CsiVolume("disk.csi.azure.com", "/a")),
        ("azureDisk", {"diskURI": "/a", "kind": "Shared"}, None),
        ("cinder", {"volumeID": "c"}, CsiVolume("cinder.csi.openstack.org", "c")),
        ("portworxVolume", {"volumeID": "p"}, CsiVolume("pxd.portworx.com", "p")),
        ("nfs", {"server": "s"}, None),
    ],
)
def test_an_inline_volume_has_driver_and_handle(
    kind: str, source: dict[str, object], expected: CsiVolume | None
) -> None:
    assert inline_csi_volume(kind, source) == expected


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        ({ZONE: "us-a"}, "zones/us-a"),
        ({BETA_ZONE: "us-a__us-b"}, "regions/us"),
        ({}, "zones/UNSPECIFIED"),
        ({ZONE: "us-a__eu-b"}, None),
    ],
)
def test_the_zones_of_a_disk_are_part_of_its_handle(labels: dict[str, str], place: str | None) -> None:
    volume = PersistentVolume("pv", labels=labels, kind="gcePersistentDisk", source={"pdName": "d"})
    expected = None if place is None else CsiVolume(GCE, f"projects/UNSPECIFIED/{place}/disks/d")
    assert csi_volume_of(volume) == expected


@pytest.mark.parametrize(
    ("provisioner", "driver"),
    [
        ("kubernetes.io/gce-pd", GCE),
        ("kubernetes.io/azure-file", ""),
        ("disk.example.com", "disk.example.com"),
    ],
)
def test_a_provisioner_stands_for_a_driver(provisioner: str, driver: str) -> None:
    assert driver_of_provisioner(provisioner) == driver


def affinity(*keys: str) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm(tuple(Requirement(key, "In", ("z",)) for key in keys)),))


MIGRATED = CsiNode("n", annotations={"storage.alpha.kubernetes.io/migrated-plugins": "x,kubernetes.io/aws-ebs"})


@pytest.mark.parametrize(
    ("given", "labels", "expected"),
    [
        (affinity(ZONE), {}, affinity(EBS_KEY)),
        (affinity(BETA_ZONE, BETA_REGION), {}, affinity(EBS_KEY, REGION)),
        (affinity("other"), {ZONE: "z"}, affinity("other", EBS_KEY)),
        (None, {BETA_ZONE: "z"}, affinity(EBS_KEY)),
        (None, {}, None),
    ],
)
def test_where_a_volume_is_is_said_in_the_drivers_terms(
    given: NodeSelector | None, labels: dict[str, str], expected: NodeSelector | None
) -> None:
    volume = PersistentVolume("pv", labels=labels, kind="awsElasticBlockStore", node_affinity=given)
    assert node_affinity_of(volume, MIGRATED) == expected
    for not_migrated in (None, CsiNode("n"), CsiNode("n", annotations={"a": "b"})):
        assert node_affinity_of(volume, not_migrated) is given
