"""Devices and the claims for them."""

from collections.abc import Mapping

from podtrail_scheduler.objects.quantities import nano_units
from podtrail_scheduler.objects.resource import (
    EXACT_COUNT,
    EXTENDED_RESOURCES,
    AllocatedDevice,
    Allocation,
    ConsumerReference,
    CounterConsumption,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceConstraint,
    DeviceId,
    DeviceRequest,
    DeviceSpecification,
    DeviceStatus,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    RequestPolicy,
    ResourceClaim,
    ResourceSlice,
)

from .labels import node_selector
from .owners import controller_uid
from .reading import Json, Misshapen, flag, inner, items, labels, moment, part, quantities, quantity, text, texts, whole

_ATTRIBUTE_KINDS = ("ints", "bools", "strings", "versions", "int", "bool", "string", "version")
"""Of several the first counts, as in kube-scheduler; the lists are Alpha."""


def decode_resource_slice(resource_slice: Json) -> ResourceSlice:
    """A ResourceSlice of the API's JSON.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(resource_slice, "metadata")
    spec = part(resource_slice, "spec")
    pool = part(spec, "pool", "spec")
    sets = items(spec, "sharedCounters", _counter_set, "spec")
    return ResourceSlice(
        name=text(metadata, "name", "metadata"),
        driver=text(spec, "driver", "spec"),
        pool=text(pool, "name", "spec.pool"),
        pool_generation=whole(pool, "generation", "spec.pool") or 0,
        pool_slices=whole(pool, "resourceSliceCount", "spec.pool") or 0,
        node_name=text(spec, "nodeName", "spec"),
        node_selector=inner(spec, "nodeSelector", node_selector, "spec"),
        all_nodes=flag(spec, "allNodes", "spec"),
        per_device_node_selection=flag(spec, "perDeviceNodeSelection", "spec"),
        devices=items(spec, "devices", _device, "spec"),
        has_compatibility_groups=any(
            texts(consumption, "compatibilityGroups")
            for device in spec.get("devices") or ()
            for consumption in device.get("consumesCounters") or ()
        ),
        shared_counters=dict(sets),
        resource_version=text(metadata, "resourceVersion", "metadata"),
    )


def decode_device_class(device_class: Json) -> DeviceClass:
    """A DeviceClass of the API's JSON.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(device_class, "metadata")
    spec = part(device_class, "spec")
    return DeviceClass(
        name=text(metadata, "name", "metadata"),
        selectors=items(spec, "selectors", _selector, "spec"),
        config=items(spec, "config", dict, "spec"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        extended_resource_name=text(spec, "extendedResourceName", "spec"),
        creation_timestamp=moment(metadata, "creationTimestamp", "metadata") or 0,
    )


def decode_device_taint_rule(rule: Json) -> DeviceTaintRule:
    """A DeviceTaintRule of the API's JSON.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(rule, "metadata")
    spec = part(rule, "spec")
    return DeviceTaintRule(
        name=text(metadata, "name", "metadata"),
        taint=_taint(part(spec, "taint", "spec")),
        selector=inner(spec, "deviceSelector", _id, "spec"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
    )


def decode_resource_claim(claim: Json) -> ResourceClaim:
    """A ResourceClaim of the API's JSON.

    Raises:
        ValueError: with the path of what it cannot read.
    """
    metadata = part(claim, "metadata")
    devices = part(part(claim, "spec"), "devices", "spec")
    status = part(claim, "status")
    return ResourceClaim(
        name=text(metadata, "name", "metadata"),
        namespace=text(metadata, "namespace", "metadata", "default"),
        uid=text(metadata, "uid", "metadata"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        finalizers=texts(metadata, "finalizers", "metadata"),
        deletion_timestamp=moment(metadata, "deletionTimestamp", "metadata"),
        owner_uid=controller_uid(metadata),
        for_extended_resources=labels(metadata, "annotations", "metadata").get(EXTENDED_RESOURCES) == "true",
        requests=items(devices, "requests", _request, "spec.devices"),
        constraints=items(devices, "constraints", _constraint, "spec.devices"),
        config=items(devices, "config", _configuration, "spec.devices"),
        allocation=inner(status, "allocation", _allocation, "status"),
        reserved_for=items(status, "reservedFor", _consumer, "status"),
        devices=items(status, "devices", _status, "status"),
    )


def _device(device: Json) -> Device:
    attributes = part(device, "attributes")
    capacity = part(device, "capacity")
    return Device(
        name=text(device, "name"),
        attributes={name: _attribute(part(attributes, name, "attributes"), name) for name in attributes},
        capacity={name: _capacity(part(capacity, name, "capacity"), f"capacity.{name}") for name in capacity},
        taints=items(device, "taints", _taint),
        consumes_counters=items(device, "consumesCounters", _consumption),
        node_name=text(device, "nodeName"),
        node_selector=inner(device, "nodeSelector", node_selector),
        all_nodes=flag(device, "allNodes"),
        allow_multiple_allocations=flag(device, "allowMultipleAllocations"),
        binds_to_node=flag(device, "bindsToNode"),
        binding_conditions=texts(device, "bindingConditions"),
        binding_failure_conditions=texts(device, "bindingFailureConditions"),
    )


def _capacity(capacity: Json, at: str) -> DeviceCapacity:
    policy = part(capacity, "requestPolicy", at)
    valid = part(policy, "validRange", f"{at}.requestPolicy")
    values = texts(policy, "validValues", f"{at}.requestPolicy")
    return DeviceCapacity(
        _amount(capacity, at),
        RequestPolicy(
            quantity(policy, "default", f"{at}.requestPolicy"),
            tuple(nano_units(each) for each in values),
            quantity(valid, "min", f"{at}.requestPolicy.validRange"),
            quantity(valid, "max", f"{at}.requestPolicy.validRange"),
            quantity(valid, "step", f"{at}.requestPolicy.validRange"),
        ),
    )


def _attribute(attribute: Json, name: str) -> DeviceAttribute:
    for kind in _ATTRIBUTE_KINDS:
        value = attribute.get(kind)
        if value is not None:
            return DeviceAttribute(kind, _scalars(value, name) if kind.endswith("s") else _scalar(value, name))
    return DeviceAttribute("", "")


def _scalars(values: object, name: str) -> tuple[bool | int | str, ...]:
    if not isinstance(values, list):
        raise Misshapen(f"{values!r:.80} is not a list", "attributes", name)
    return tuple(_scalar(each, name) for each in values)


def _scalar(value: object, name: str) -> bool | int | str:
    if not isinstance(value, bool | int | str):
        raise Misshapen(f"{value!r:.80} is not text, a number or true or false", "attributes", name)
    return value


def _amount(holder: Json, at: str) -> int:
    return quantity(holder, "value", at) or 0


def _counters(holder: Json) -> Mapping[str, int]:
    counters = part(holder, "counters")
    return {name: _amount(part(counters, name, "counters"), f"counters.{name}") for name in counters}


def _counter_set(counter_set: Json) -> tuple[str, Mapping[str, int]]:
    return text(counter_set, "name"), _counters(counter_set)


def _consumption(consumption: Json) -> CounterConsumption:
    return CounterConsumption(text(consumption, "counterSet"), _counters(consumption))


def _taint(taint: Json) -> DeviceTaint:
    return DeviceTaint(text(taint, "key"), text(taint, "value"), text(taint, "effect"))


def _toleration(toleration: Json) -> DeviceToleration:
    return DeviceToleration(
        text(toleration, "key"),
        text(toleration, "operator", default="Equal"),
        text(toleration, "value"),
        text(toleration, "effect"),
        toleration,
    )


def _selector(selector: Json) -> str:
    return text(part(selector, "cel"), "expression", "cel")


def _request(request: Json) -> DeviceRequest:
    return DeviceRequest(
        text(request, "name"),
        inner(request, "exactly", lambda exactly: _specification({**exactly, "name": request.get("name")})),
        items(request, "firstAvailable", _specification),
    )


def _specification(request: Json) -> DeviceSpecification:
    count = whole(request, "count")
    return DeviceSpecification(
        name=text(request, "name"),
        device_class_name=text(request, "deviceClassName"),
        selectors=items(request, "selectors", _selector),
        allocation_mode=text(request, "allocationMode", default=EXACT_COUNT),
        count=1 if count is None else count,
        admin_access=flag(request, "adminAccess"),
        tolerations=items(request, "tolerations", _toleration),
        capacity=quantities(part(request, "capacity"), "requests", "capacity"),
    )


def _configuration(config: Json) -> Json:
    texts(config, "requests")
    return config


def _constraint(constraint: Json) -> DeviceConstraint:
    return DeviceConstraint(
        text(constraint, "matchAttribute"),
        frozenset(texts(constraint, "requests")),
        text(constraint, "distinctAttribute"),
    )


def _allocation(allocation: Json) -> Allocation:
    devices = items(part(allocation, "devices"), "results", _allocated, "devices")
    selector = inner(allocation, "nodeSelector", node_selector)
    return Allocation(devices, selector, moment(allocation, "allocationTimestamp"), allocation)


def _allocated(device: Json) -> AllocatedDevice:
    return AllocatedDevice(
        text(device, "request"),
        _id(device),
        flag(device, "adminAccess"),
        quantities(device, "consumedCapacity") if device.get("shareID") else None,
        texts(device, "bindingConditions"),
        texts(device, "bindingFailureConditions"),
        bool(texts(device, "skipNodeOperations")),
    )


def _id(device: Json) -> DeviceId:
    return DeviceId(text(device, "driver"), text(device, "pool"), text(device, "device"))


def _status(device: Json) -> DeviceStatus:
    return DeviceStatus(_id(device), dict(items(device, "conditions", _condition)))


def _condition(condition: Json) -> tuple[str, tuple[str, str, str]]:
    return text(condition, "type"), (
        text(condition, "status"),
        text(condition, "reason"),
        text(condition, "message"),
    )


def _consumer(consumer: Json) -> ConsumerReference:
    return ConsumerReference(
        text(consumer, "uid"), text(consumer, "name"), text(consumer, "resource"), text(consumer, "apiGroup")
    )
