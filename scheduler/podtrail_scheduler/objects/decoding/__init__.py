"""The scheduler's objects made of the API's JSON, as it comes from lists, watches and manifests.

Whatever scheduling does not read may have any shape; what it reads and cannot make sense of is a ValueError with the
path and what would be right, such as `spec.containers[0].resources.requests.cpu: '1x' is not a quantity such as 2,
500m or 1Gi`.
"""

from collections.abc import Callable
from types import MappingProxyType

from podtrail_scheduler.objects import ApiObject

from .affinity import node_affinity
from .node import decode_node
from .pod import decode_pod
from .policy import (
    decode_namespace,
    decode_pod_disruption_budget,
    decode_replica_set,
    decode_replication_controller,
    decode_service,
    decode_stateful_set,
)
from .reading import Json, Misshapen, text
from .resource import (
    decode_device_class,
    decode_device_taint_rule,
    decode_resource_claim,
    decode_resource_slice,
)
from .storage import (
    decode_csi_driver,
    decode_csi_node,
    decode_csi_storage_capacity,
    decode_persistent_volume,
    decode_persistent_volume_claim,
    decode_storage_class,
    decode_volume_attachment,
)

__all__ = [
    "DECODERS",
    "Json",
    "Misshapen",
    "decode",
    "decode_csi_driver",
    "decode_csi_node",
    "decode_csi_storage_capacity",
    "decode_device_class",
    "decode_device_taint_rule",
    "decode_namespace",
    "decode_node",
    "decode_persistent_volume",
    "decode_persistent_volume_claim",
    "decode_pod",
    "decode_pod_disruption_budget",
    "decode_replica_set",
    "decode_replication_controller",
    "decode_resource_claim",
    "decode_resource_slice",
    "decode_service",
    "decode_stateful_set",
    "decode_storage_class",
    "decode_volume_attachment",
    "node_affinity",
]

DECODERS: MappingProxyType[tuple[str, str], Callable[[Json], ApiObject]] = MappingProxyType(
    {
        ("v1", "Pod"): decode_pod,
        ("v1", "Node"): decode_node,
        ("v1", "Namespace"): decode_namespace,
        ("v1", "Service"): decode_service,
        ("v1", "ReplicationController"): decode_replication_controller,
        ("v1", "PersistentVolume"): decode_persistent_volume,
        ("v1", "PersistentVolumeClaim"): decode_persistent_volume_claim,
        ("apps/v1", "ReplicaSet"): decode_replica_set,
        ("apps/v1", "StatefulSet"): decode_stateful_set,
        ("policy/v1", "PodDisruptionBudget"): decode_pod_disruption_budget,
        ("storage.k8s.io/v1", "StorageClass"): decode_storage_class,
        ("storage.k8s.io/v1", "CSINode"): decode_csi_node,
        ("storage.k8s.io/v1", "CSIDriver"): decode_csi_driver,
        ("storage.k8s.io/v1", "CSIStorageCapacity"): decode_csi_storage_capacity,
        ("storage.k8s.io/v1", "VolumeAttachment"): decode_volume_attachment,
        ("resource.k8s.io/v1", "ResourceClaim"): decode_resource_claim,
        ("resource.k8s.io/v1", "ResourceSlice"): decode_resource_slice,
        ("resource.k8s.io/v1", "DeviceClass"): decode_device_class,
        ("resource.k8s.io/v1", "DeviceTaintRule"): decode_device_taint_rule,
    }
)
"""By apiVersion and kind."""


def decode(mapping: Json) -> ApiObject:
    """The object of a manifest, by apiVersion and kind.

    Raises:
        ValueError: it is none that scheduling knows.
    """
    kind = text(mapping, "apiVersion"), text(mapping, "kind")
    decoder = DECODERS.get(kind)
    if decoder is None:
        known = ", ".join(f"{version} {name}" for version, name in DECODERS)
        raise ValueError(f"apiVersion, kind: {kind[0]!r:.80} {kind[1]!r:.80} is not one of {known}")
    return decoder(mapping)
