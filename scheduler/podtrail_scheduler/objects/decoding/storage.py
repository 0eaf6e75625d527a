"""Volumes, claims, classes, and what drivers say of nodes."""

from collections.abc import Mapping

from podtrail_scheduler.objects.labels import NodeSelector
from podtrail_scheduler.objects.quantities import amount
from podtrail_scheduler.objects.storage import (
    IMMEDIATE,
    CsiDriver,
    CsiNode,
    CsiNodeDriver,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

from .labels import label_selector, node_selector
from .owners import controller_uid
from .reading import Json, flag, inner, items, labels, moment, part, quantity, text, texts, whole

# Fields of a PersistentVolume's specification that are not its source.
_NOT_A_SOURCE = frozenset(
    (
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    )
)


def decode_persistent_volume_claim(claim: Json) -> PersistentVolumeClaim:
    """A PersistentVolumeClaim of the API's JSON.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(claim, "metadata")
    spec = part(claim, "spec")
    return PersistentVolumeClaim(
        name=text(metadata, "name", "metadata"),
        namespace=text(metadata, "namespace", "metadata", "default"),
        uid=text(metadata, "uid", "metadata"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        labels=labels(metadata, "labels", "metadata"),
        annotations=labels(metadata, "annotations", "metadata"),
        deletion_timestamp=moment(metadata, "deletionTimestamp", "metadata"),
        volume_name=text(spec, "volumeName", "spec"),
        storage_class_name=text(spec, "storageClassName", "spec") if "storageClassName" in spec else None,
        access_modes=texts(spec, "accessModes", "spec"),
        volume_mode=text(spec, "volumeMode", "spec", "Filesystem"),
        selector=inner(spec, "selector", label_selector, "spec"),
        request=_bytes(
            part(part(spec, "resources", "spec"), "requests", "spec.resources"), "storage", "spec.resources.requests"
        )
        or 0,
        phase=text(part(claim, "status"), "phase", "status", "Pending"),
        owner_uid=controller_uid(metadata),
        volume_attributes_class_name=text(spec, "volumeAttributesClassName", "spec") or None,
    )


def decode_persistent_volume(volume: Json) -> PersistentVolume:
    """A PersistentVolume of the API's JSON.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(volume, "metadata")
    spec = part(volume, "spec")
    kind = next((key for key, source in spec.items() if key not in _NOT_A_SOURCE and source is not None), "")
    return PersistentVolume(
        name=text(metadata, "name", "metadata"),
        uid=text(metadata, "uid", "metadata"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        labels=labels(metadata, "labels", "metadata"),
        annotations=labels(metadata, "annotations", "metadata"),
        deletion_timestamp=moment(metadata, "deletionTimestamp", "metadata"),
        capacity=_bytes(part(spec, "capacity", "spec"), "storage", "spec.capacity") or 0,
        access_modes=texts(spec, "accessModes", "spec"),
        volume_mode=text(spec, "volumeMode", "spec", "Filesystem"),
        storage_class_name=text(spec, "storageClassName", "spec"),
        claim_ref=inner(spec, "claimRef", _claim_ref, "spec"),
        node_affinity=inner(spec, "nodeAffinity", _required, "spec"),
        phase=text(part(volume, "status"), "phase", "status", "Available"),
        kind=kind,
        source=part(spec, kind, "spec"),
        volume_attributes_class_name=text(spec, "volumeAttributesClassName", "spec") or None,
    )


def decode_storage_class(storage_class: Json) -> StorageClass:
    """A StorageClass of storage.k8s.io/v1.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(storage_class, "metadata")
    return StorageClass(
        name=text(metadata, "name", "metadata"),
        provisioner=text(storage_class, "provisioner"),
        volume_binding_mode=text(storage_class, "volumeBindingMode", default=IMMEDIATE),
        allowed_topologies=items(storage_class, "allowedTopologies", _topology),
        annotations=labels(metadata, "annotations", "metadata"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
    )


def decode_csi_node(node: Json) -> CsiNode:
    """A CSINode of storage.k8s.io/v1.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(node, "metadata")
    return CsiNode(
        text(metadata, "name", "metadata"),
        items(part(node, "spec"), "drivers", _node_driver, "spec"),
        labels(metadata, "annotations", "metadata"),
        text(metadata, "resourceVersion", "metadata"),
    )


def decode_csi_driver(driver: Json) -> CsiDriver:
    """A CSIDriver of storage.k8s.io/v1.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(driver, "metadata")
    spec = part(driver, "spec")
    return CsiDriver(
        text(metadata, "name", "metadata"),
        storage_capacity=flag(spec, "storageCapacity", "spec"),
        attach_required=flag(spec, "attachRequired", "spec", default=True),
        prevent_pod_scheduling_if_missing=flag(spec, "preventPodSchedulingIfMissing", "spec"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
    )


def decode_csi_storage_capacity(capacity: Json) -> CsiStorageCapacity:
    """A CSIStorageCapacity of storage.k8s.io/v1.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(capacity, "metadata")
    return CsiStorageCapacity(
        text(metadata, "name", "metadata"),
        text(metadata, "namespace", "metadata", "default"),
        text(capacity, "storageClassName"),
        inner(capacity, "nodeTopology", label_selector),
        _bytes(capacity, "capacity"),
        _bytes(capacity, "maximumVolumeSize"),
        text(metadata, "resourceVersion", "metadata"),
    )


def decode_volume_attachment(attachment: Json) -> VolumeAttachment:
    """A VolumeAttachment of storage.k8s.io/v1.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(attachment, "metadata")
    spec = part(attachment, "spec")
    return VolumeAttachment(
        text(metadata, "name", "metadata"),
        text(spec, "attacher", "spec"),
        text(spec, "nodeName", "spec"),
        text(part(spec, "source", "spec"), "persistentVolumeName", "spec.source"),
        text(metadata, "resourceVersion", "metadata"),
    )


def _bytes(parent: Json, name: str, at: str = "") -> int | None:
    found = quantity(parent, name, at)
    return None if found is None else amount(name, found)


def _claim_ref(reference: Json) -> tuple[str, str, str]:
    return text(reference, "namespace"), text(reference, "name"), text(reference, "uid")


def _required(affinity: Json) -> NodeSelector | None:
    return inner(affinity, "required", node_selector)


def _topology(term: Json) -> Mapping[str, frozenset[str]]:
    return dict(items(term, "matchLabelExpressions", _values))


def _values(expression: Json) -> tuple[str, frozenset[str]]:
    return text(expression, "key"), frozenset(texts(expression, "values"))


def _node_driver(driver: Json) -> CsiNodeDriver:
    return CsiNodeDriver(
        text(driver, "name"),
        text(driver, "nodeID"),
        texts(driver, "topologyKeys"),
        whole(part(driver, "allocatable"), "count", "allocatable"),
    )
