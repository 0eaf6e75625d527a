"""Dynamic resource allocation (resource.k8s.io/v1): devices that drivers offer, and claims for them.

Amounts (capacities, counters) are in billionths, the finest that Kubernetes keeps; timestamps are unix nanoseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .immutable import Immutable
from .keys import ByName, ByNamespaceAndName
from .labels import NodeSelector

EXACT_COUNT = "ExactCount"
ALL_DEVICES = "All"
EXTENDED_RESOURCES = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of claims that a scheduler makes itself."""


class DeviceId(NamedTuple):
    """What tells a device from all others."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class DeviceAttribute(NamedTuple):
    """A value of `kind` bool, int, string or version, a list of such, or one that is not known: an empty kind."""

    kind: str
    value: bool | int | str | tuple[bool | int | str, ...]

    @property
    def comparable(self) -> bool:
        """Whether constraints can be about it: lists are Alpha."""
        return bool(self.kind) and not isinstance(self.value, tuple)


class DeviceTaint(NamedTuple):
    """What keeps requests that do not tolerate it off a device."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class DeviceTaintRule(ByName):
    """A taint that somebody other than the driver gives to devices: those of `selector`, empty parts of which are any.

    Without a selector it is for none.
    """

    name: str
    taint: DeviceTaint
    selector: DeviceId | None = None
    resource_version: str = ""

    def selects(self, device: DeviceId) -> bool:
        """Whether `device` gets the taint."""
        return self.selector is not None and all(
            wanted in ("", found) for wanted, found in zip(self.selector, device, strict=True)
        )


class DeviceToleration(NamedTuple):
    """Which taints of devices a request bears; empty key is all keys, empty effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    json: Mapping[str, Any] = {}
    """As the API has it, for the result of an allocation."""

    def tolerates(self, taint: DeviceTaint) -> bool:
        """Whether this toleration covers `taint`."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


class RequestPolicy(NamedTuple):
    """Which shares of a capacity may be asked for: some values, or a range with steps; others are rounded up."""

    default: int | None = None
    """What a request that does not name the capacity gets; None: all of it."""
    valid_values: tuple[int, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    step: int | None = None


class DeviceCapacity(NamedTuple):
    """How much there is, and how shares of it are asked for."""

    value: int
    policy: RequestPolicy = RequestPolicy()


class CounterConsumption(NamedTuple):
    """What a device takes of a set of counters that it shares with others of its pool."""

    counter_set: str
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Device(Immutable):
    """A device of a slice; where it can be used is said here only if the slice leaves that to its devices."""

    name: str
    attributes: Mapping[str, DeviceAttribute] = field(default_factory=dict)
    """By name, with the domain where that is not the driver's."""
    capacity: Mapping[str, DeviceCapacity] = field(default_factory=dict)
    taints: tuple[DeviceTaint, ...] = ()
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    allow_multiple_allocations: bool = False
    """Claims share it, each with a part of its capacity."""
    binds_to_node: bool = False
    """Once allocated it can be used on the chosen node only."""
    binding_conditions: tuple[str, ...] = ()
    """What must be true of it, in the claim's status, before a Pod is bound."""
    binding_failure_conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceSlice(Immutable, ByName):
    """Devices of a pool; a pool is complete when all `pool_slices` slices of its newest generation are there."""

    name: str
    driver: str
    pool: str
    pool_generation: int = 1
    pool_slices: int = 1
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    has_compatibility_groups: bool = False
    """Which of its devices can be allocated together is not known (Alpha): none may be, nor others of the pool."""
    shared_counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class DeviceClass(Immutable, ByName):
    """A kind of device: expressions (CEL) that its devices meet, and configuration that goes with them."""

    name: str
    selectors: tuple[str, ...] = ()
    config: tuple[Mapping[str, Any], ...] = ()
    """As the API has it: an allocation takes it over."""
    resource_version: str = ""
    extended_resource_name: str = ""
    """The extended resource that it stands for, besides the one that has its own name."""
    creation_timestamp: int = 0


@dataclass(frozen=True, slots=True)
class DeviceSpecification(Immutable):
    """Which devices and how many: a request, or one of the alternatives of a request."""

    name: str
    device_class_name: str
    selectors: tuple[str, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: Mapping[str, int] = field(default_factory=dict)
    """How much of the device's capacity must be there, or becomes the claim's share."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """`exactly` what is wanted, or else the first available of some alternatives."""

    name: str
    exactly: DeviceSpecification | None = None
    first_available: tuple[DeviceSpecification, ...] = ()


class DeviceConstraint(NamedTuple):
    """An attribute whose value is the same, or another one, for all devices of these requests (none: of all)."""

    match_attribute: str = ""
    requests: frozenset[str] = frozenset()
    distinct_attribute: str = ""


class AllocatedDevice(NamedTuple):
    """A device that a claim has, and which request (`request` or `request/subrequest`) it is for."""

    request: str
    id: DeviceId
    admin_access: bool = False
    consumed: Mapping[str, int] | None = None
    """The claim's share of its capacity; None: the whole device."""
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    skips_node_operations: bool = False
    """The kubelet must know that it has nothing to prepare (Alpha)."""


@dataclass(frozen=True, slots=True)
class Allocation(Immutable):
    """What a claim got, and where it can be used (None: everywhere)."""

    devices: tuple[AllocatedDevice, ...]
    node_selector: NodeSelector | None = None
    timestamp: int | None = None
    """When it was made, unix nanoseconds."""
    json: Mapping[str, Any] = field(default_factory=dict)
    """As the API has it."""


class DeviceStatus(NamedTuple):
    """What a driver says of a device that a claim has: status, reason and message by the condition's type."""

    id: DeviceId
    conditions: Mapping[str, tuple[str, str, str]]


class ConsumerReference(NamedTuple):
    """Who uses a claim."""

    uid: str
    name: str
    resource: str = "pods"
    api_group: str = ""


@dataclass(frozen=True, slots=True)
class ResourceClaim(Immutable, ByNamespaceAndName):
    """A claim for devices, and its allocation once it has one."""

    name: str
    namespace: str = "default"
    uid: str = ""
    resource_version: str = ""
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: int | None = None
    owner_uid: str = ""
    """The Pod that it was made for from a template, or by a scheduler."""
    for_extended_resources: bool = False
    """It was made by a scheduler for extended resources that devices stand for."""
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[Mapping[str, Any], ...] = ()
    """As the API has it."""
    allocation: Allocation | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[DeviceStatus, ...] = ()
