"""Objects of storage as JSON: classes, claims, volumes, what drivers tell."""

from collections.abc import Mapping
from typing import Any

from .builders import NAMESPACE, ZONE
from .case import Object

_BOUND = "pv.kubernetes.io/bind-completed"
DRIVERS = ("a.csi.example", "b.csi.example")
EBS = "ebs.csi.aws.com"
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_IN_TREE = {"awsElasticBlockStore"}


def storage_class(name: str, provisioner: str, *, waits: bool = True, zones: tuple[str, ...] = ()) -> Object:
    """A StorageClass; `zones` are those in which it can provision."""
    built: Object = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }
    if zones:
        built["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    return built


def claim(name: str, volume: str = "", *, size: str = "1Gi", **spec: Any) -> Object:
    """A PersistentVolumeClaim, bound when `volume` is given."""
    metadata: Object = {"name": name, "namespace": NAMESPACE}
    whole = {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem", **spec}
    whole["resources"] = {"requests": {"storage": size}}
    if volume:
        whole["volumeName"] = volume
        metadata["annotations"] = {_BOUND: "yes"}
    status = {"phase": "Bound" if volume else "Pending"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": whole,
        "status": status,
    }


def volume(
    name: str,
    claimed_by: str = "",
    *,
    size: str = "1Gi",
    labels: dict[str, str] | None = None,
    nodes: list[Object] | None = None,
    driver: str = DRIVERS[0],
    handle: str = "",
    **spec: Any,
) -> Object:
    """A PersistentVolume, usable from where the requirements `nodes` say; of `driver` unless `spec` has a source."""
    whole: Object = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": "Filesystem",
        **spec,
    }
    if not _IN_TREE & spec.keys():
        whole["csi"] = {"driver": driver, "volumeHandle": handle or name}
    if claimed_by:
        whole["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": NAMESPACE,
            "name": claimed_by,
        }
    if nodes:
        whole["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": nodes}]}}
    metadata: Object = {"name": name, "labels": labels} if labels else {"name": name}
    status = {"phase": "Bound" if claimed_by else "Available"}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": whole, "status": status}


def with_claims(*claims: str) -> Object:
    """The `volumes` of a Pod's spec."""
    return {
        "volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(claims)]
    }


def csi_node(name: str, limits: Mapping[str, int | None]) -> Object:
    """A CSINode with how many volumes of each driver the node takes, None for no limit."""
    drivers = []
    for driver, limit in limits.items():
        entry: Object = {"name": driver, "nodeID": name, "topologyKeys": None}
        if limit is not None:
            entry["allocatable"] = {"count": limit}
        drivers.append(entry)
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, "annotations": {_MIGRATED: "kubernetes.io/aws-ebs"}},
        "spec": {"drivers": drivers},
    }


def attachment(name: str, volume: str, node: str, driver: str = DRIVERS[0]) -> Object:
    """A VolumeAttachment."""
    spec = {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name}, "spec": spec}


def csi_driver(name: str) -> Object:
    """A CSIDriver that counts its capacity."""
    spec = {"storageCapacity": True, "attachRequired": True}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


def capacity(name: str, storage_class: str, zone: str, size: str) -> Object:
    """A CSIStorageCapacity of a zone."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "storageClassName": storage_class,
        "nodeTopology": {"matchLabels": {ZONE: zone}},
        "capacity": size,
    }
