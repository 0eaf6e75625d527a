"""In-tree volumes whose work CSI drivers have taken over: their drivers, handles and topology (csi-translation-lib)."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlsplit

from podtrail_scheduler.objects import (
    REGION,
    ZONE,
    CsiNode,
    NodeSelector,
    NodeSelectorTerm,
    PersistentVolume,
    Requirement,
)

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
ZONES_DELIMITER = "__"

_EBS_VOLUME = re.compile(r"vol-[^/]*")
_UNSPECIFIED = "UNSPECIFIED"


class Migrated(NamedTuple):
    """An in-tree plugin and the CSI driver in its place; `topology_key` is empty when it translates none."""

    plugin: str
    driver: str
    topology_key: str
    handle_field: str


class CsiVolume(NamedTuple):
    """A volume as its driver knows it."""

    driver: str
    handle: str


_BY_KIND = {
    "awsElasticBlockStore": Migrated(
        "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone", "volumeID"
    ),
    "gcePersistentDisk": Migrated("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone", "pdName"),
    "azureDisk": Migrated("kubernetes.io/azure-disk", "disk.csi.azure.com", "", "diskURI"),
    "cinder": Migrated(
        "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone", "volumeID"
    ),
    "portworxVolume": Migrated("kubernetes.io/portworx-volume", "pxd.portworx.com", "", "volumeID"),
}
_BY_PLUGIN = {each.plugin: each for each in _BY_KIND.values()}

INLINE_KINDS = frozenset((*_BY_KIND, "azureFile", "vsphereVolume"))
"""Inline volumes that some CSI driver could serve; for those not in the table above, the scheduler lets it rest."""

_UNCOUNTED_PROVISIONERS = frozenset(("kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"))


def driver_of_provisioner(provisioner: str) -> str:
    """The CSI driver that provisions for it; empty for an in-tree one that no driver has replaced."""
    migrated = _BY_PLUGIN.get(provisioner)
    if migrated is not None:
        return migrated.driver
    return "" if provisioner in _UNCOUNTED_PROVISIONERS else provisioner


def csi_volume_of(volume: PersistentVolume) -> CsiVolume | None:
    """The volume as its CSI driver knows it, None when no driver does."""
    if volume.kind == "csi":
        return CsiVolume(str(volume.source.get("driver", "")), str(volume.source.get("volumeHandle", "")))
    if volume.kind == "gcePersistentDisk":
        return _gce(volume.source, volume.labels.get(BETA_ZONE) or volume.labels.get(ZONE, ""))
    return inline_csi_volume(volume.kind, volume.source)


def inline_csi_volume(kind: str, source: Mapping[str, object]) -> CsiVolume | None:
    """An inline volume of a Pod as its CSI driver knows it, None when no driver does or the source is not valid."""
    migrated = _BY_KIND.get(kind)
    if migrated is None:
        return None
    if kind == "gcePersistentDisk":
        return _gce(source, "")
    handle = str(source.get(migrated.handle_field, ""))
    if kind == "awsElasticBlockStore":
        handle = _ebs_handle(handle)
    if kind == "azureDisk" and str(source.get("kind", "Managed")).lower() != "managed":
        return None
    return CsiVolume(migrated.driver, handle) if handle else None


def node_affinity_of(volume: PersistentVolume, csi_node: CsiNode | None) -> NodeSelector | None:
    """Which nodes reach the volume, in the terms of the CSI driver where the node has the plugin migrated."""
    migrated = _BY_KIND.get(volume.kind)
    if migrated is None or not migrated.topology_key or csi_node is None:
        return volume.node_affinity
    if migrated.plugin not in csi_node.annotations.get(MIGRATED_PLUGINS, "").split(","):
        return volume.node_affinity
    return _translated(volume, migrated.topology_key)


def _translated(volume: PersistentVolume, topology_key: str) -> NodeSelector | None:
    selector = volume.node_affinity
    terms = selector.terms if selector is not None else ()
    used = {each.key for term in terms for each in term.match_expressions}
    known = [key for key in (ZONE, BETA_ZONE) if key in used] or [
        key for key in (ZONE, BETA_ZONE) if key in volume.labels
    ]
    zone = known[0] if known else ZONE
    if zone in used:
        names = {zone: topology_key, **({BETA_REGION: REGION} if zone == BETA_ZONE else {})}
        return NodeSelector(tuple(_renamed(term, names) for term in terms))
    zones = {each.strip() for each in volume.labels.get(zone, "").split(ZONES_DELIMITER)} - {""}
    if not zones:
        return selector
    added = Requirement(topology_key, "In", tuple(sorted(zones)))
    return NodeSelector(
        tuple(
            NodeSelectorTerm((*term.match_expressions, added), term.match_fields)
            for term in terms or (NodeSelectorTerm(),)
        )
    )


def _renamed(term: NodeSelectorTerm, names: Mapping[str, str]) -> NodeSelectorTerm:
    expressions = tuple(replace(each, key=names.get(each.key, each.key)) for each in term.match_expressions)
    return NodeSelectorTerm(expressions, term.match_fields)


def _gce(source: Mapping[str, object], zones_label: str) -> CsiVolume | None:
    name = str(source.get("pdName", ""))
    zones = [each.strip() for each in zones_label.split(ZONES_DELIMITER)]
    place = f"zones/{zones[0] or _UNSPECIFIED}"
    if len(zones) > 1:
        regions = {each.rpartition("-")[0] for each in zones}
        if len(regions) > 1:
            return None
        place = f"regions/{regions.pop()}"
    return CsiVolume(_BY_KIND["gcePersistentDisk"].driver, f"projects/{_UNSPECIFIED}/{place}/disks/{name}")


def _ebs_handle(volume_id: str) -> str:
    if not volume_id.startswith("aws://"):
        return volume_id
    handle = urlsplit(volume_id).path.strip("/")
    return handle if _EBS_VOLUME.fullmatch(handle) else ""
