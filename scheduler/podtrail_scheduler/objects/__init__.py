"""The Kubernetes objects that scheduling reads, with the API's field names in snake case.

Objects are immutable: a change is a new object, as it is in a watch. Resource amounts are integers, see `quantities`.
`objects.decoding` makes them of the API's JSON.
"""

from .keys import ApiObject
from .labels import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from .node import (
    HOSTNAME,
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    REGION,
    UNSCHEDULABLE_TAINT,
    ZONE,
    Node,
    Taint,
    Toleration,
)
from .pod import (
    Affinity,
    HostPort,
    NodeAffinity,
    OwnerReference,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodResourceClaim,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from .policy import Namespace, PodDisruptionBudget, PodSelecting
from .storage import (
    IMMEDIATE,
    WAIT_FOR_FIRST_CONSUMER,
    CsiDriver,
    CsiNode,
    CsiNodeDriver,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

__all__ = [
    "HOSTNAME",
    "IMMEDIATE",
    "NO_EXECUTE",
    "NO_SCHEDULE",
    "PREFER_NO_SCHEDULE",
    "REGION",
    "UNSCHEDULABLE_TAINT",
    "WAIT_FOR_FIRST_CONSUMER",
    "ZONE",
    "Affinity",
    "ApiObject",
    "CsiDriver",
    "CsiNode",
    "CsiNodeDriver",
    "CsiStorageCapacity",
    "HostPort",
    "LabelSelector",
    "Namespace",
    "Node",
    "NodeAffinity",
    "NodeSelector",
    "NodeSelectorTerm",
    "OwnerReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodDisruptionBudget",
    "PodResourceClaim",
    "PodSelecting",
    "PreferredSchedulingTerm",
    "Requirement",
    "StorageClass",
    "Taint",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "VolumeAttachment",
    "WeightedPodAffinityTerm",
]
