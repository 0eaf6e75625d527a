"""Volumes, claims and what nodes and drivers can take of them; timestamps are unix nanoseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .immutable import Immutable
from .keys import ByName, ByNamespaceAndName
from .labels import LabelSelector, NodeSelector

IMMEDIATE = "Immediate"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim(Immutable, ByNamespaceAndName):
    """A claim; `request` in bytes."""

    name: str
    namespace: str = "default"
    uid: str = ""
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    deletion_timestamp: int | None = None
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    selector: LabelSelector | None = None
    request: int = 0
    phase: str = "Pending"
    owner_uid: str = ""
    """The Pod that an ephemeral volume's claim was made for."""
    volume_attributes_class_name: str | None = None


@dataclass(frozen=True, slots=True)
class PersistentVolume(Immutable, ByName):
    """A volume; `capacity` in bytes, `kind` and `source` the API's volume source (`csi`, `hostPath`, `local` …)."""

    name: str
    uid: str = ""
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    deletion_timestamp: int | None = None
    capacity: int = 0
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    storage_class_name: str = ""
    claim_ref: tuple[str, str, str] | None = None
    """Namespace, name and uid of the claim it is bound to or kept for."""
    node_affinity: NodeSelector | None = None
    phase: str = "Available"
    kind: str = ""
    source: Mapping[str, object] = field(default_factory=dict)
    volume_attributes_class_name: str | None = None


@dataclass(frozen=True, slots=True)
class StorageClass(Immutable, ByName):
    """How claims are provisioned; `allowed_topologies` None: everywhere."""

    name: str
    provisioner: str = ""
    volume_binding_mode: str = IMMEDIATE
    allowed_topologies: tuple[Mapping[str, frozenset[str]], ...] = ()
    """Of each term the label keys with their values."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class CsiNodeDriver:
    """A driver on a node; `allocatable` is how many volumes it can attach there (None: no limit)."""

    name: str
    node_id: str = ""
    topology_keys: tuple[str, ...] = ()
    allocatable: int | None = None


@dataclass(frozen=True, slots=True)
class CsiNode(Immutable, ByName):
    """The CSI drivers of the node of the same name."""

    name: str
    drivers: tuple[CsiNodeDriver, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class CsiDriver(ByName):
    """A driver; with `storage_capacity` the scheduler looks at CSIStorageCapacity objects."""

    name: str
    storage_capacity: bool = False
    attach_required: bool = True
    prevent_pod_scheduling_if_missing: bool = False
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class CsiStorageCapacity(ByNamespaceAndName):
    """How much a storage class can provision where `node_topology` selects; bytes, None unknown."""

    name: str
    namespace: str
    storage_class_name: str
    node_topology: LabelSelector | None = None
    capacity: int | None = None
    maximum_volume_size: int | None = None
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class VolumeAttachment(ByName):
    """A volume that a driver attaches or has attached to a node."""

    name: str
    attacher: str
    node_name: str
    volume_name: str = ""
    resource_version: str = ""
