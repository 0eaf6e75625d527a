"""What the search found, as the allocation that is written into the claim's status."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from podtrail_scheduler.objects import NodeSelector, NodeSelectorTerm, Requirement
from podtrail_scheduler.objects.resource import AllocatedDevice, Allocation, DeviceClass, ResourceClaim
from podtrail_scheduler.plugins.device_allocation.chosen import Chosen, UnallocatableError


def allocation_of(
    claim: ResourceClaim, chosen: Sequence[Chosen], classes: Mapping[str, DeviceClass], node_name: str
) -> Allocation:
    """The devices with their configuration, and the nodes where they can be used.

    Raises:
        UnallocatableError: they contradict one another or their claim.
    """
    selector = _node_selector(claim, chosen, node_name)
    devices: dict[str, Any] = {"results": [_result(claim, index, each) for index, each in enumerate(chosen)]}
    config = _config(claim, chosen, classes)
    if config:
        devices["config"] = config
    json: dict[str, Any] = {"devices": devices}
    if selector is not None:
        json["nodeSelector"] = _selector_json(selector)
    return Allocation(tuple(map(_allocated, chosen)), selector, json=json)


def _allocated(chosen: Chosen) -> AllocatedDevice:
    device = chosen.candidate.device
    return AllocatedDevice(
        chosen.request_name,
        chosen.candidate.id,
        chosen.specification.admin_access,
        chosen.consumed,
        device.binding_conditions,
        device.binding_failure_conditions,
    )


def _result(claim: ResourceClaim, index: int, chosen: Chosen) -> dict[str, Any]:
    device = chosen.candidate.device
    result: dict[str, Any] = {"request": chosen.request_name, **chosen.candidate.id._asdict()}
    if chosen.specification.admin_access:
        result["adminAccess"] = True
    if chosen.specification.tolerations:
        result["tolerations"] = [dict(each.json) for each in chosen.specification.tolerations]
    if device.binding_conditions:
        result["bindingConditions"] = list(device.binding_conditions)
    if device.binding_failure_conditions:
        result["bindingFailureConditions"] = list(device.binding_failure_conditions)
    if chosen.consumed is not None:
        # An identifier that is the share's own, and the same when the attempt is made again.
        result["shareID"] = str(uuid5(NAMESPACE_OID, ascii(f"{claim.uid}/{index}/{chosen.candidate.id}")))
        if chosen.consumed:
            result["consumedCapacity"] = {name: _quantity(amount) for name, amount in chosen.consumed.items()}
    return result


def _quantity(billionths: int) -> str:
    """As Kubernetes writes it, in the largest unit in which it is whole."""
    for unit, suffix in ((10**9, ""), (10**6, "m"), (10**3, "u")):
        if billionths % unit == 0:
            return f"{billionths // unit}{suffix}"
    return f"{billionths}n"


def _config(claim: ResourceClaim, chosen: Sequence[Chosen], classes: Mapping[str, DeviceClass]) -> list[dict[str, Any]]:
    """That of the classes of the chosen devices, then the claim's own as far as it is about what was chosen."""
    names = list(dict.fromkeys(each.request_name for each in chosen))
    by_class: dict[str, list[str]] = {}
    for each in chosen:
        requests = by_class.setdefault(each.specification.device_class_name, [])
        if each.request_name not in requests:
            requests.append(each.request_name)
    config: list[dict[str, Any]] = [
        {**parameters, "source": "FromClass", "requests": requests}
        for name, requests in by_class.items()
        for parameters in classes[name].config
    ]
    known = {request.name for request in claim.requests} | set(names)
    for own in claim.config:
        wanted = list(own.get("requests") or ())
        if not wanted or not known.isdisjoint(wanted):
            config.append({**own, "source": "FromClaim", "requests": wanted})
    for entry in config:
        if all(name in entry["requests"] or name.partition("/")[0] in entry["requests"] for name in names):
            entry["requests"] = []
    return [{key: value for key, value in entry.items() if key != "requests" or value} for entry in config]


def _node_selector(claim: ResourceClaim, chosen: Sequence[Chosen], node_name: str) -> NodeSelector | None:
    fields: list[Requirement] = []
    expressions: list[Requirement] = []
    for each in chosen:
        place = each.candidate.device if each.candidate.slice.per_device_node_selection else each.candidate.slice
        if place.node_name or each.candidate.device.binds_to_node:
            here = Requirement("metadata.name", "In", (node_name,))
            return NodeSelector((NodeSelectorTerm(match_fields=(here,)),))
        if place.node_selector is not None:
            terms = place.node_selector.terms
            if len(terms) > 1:
                raise UnallocatableError(
                    f"create NodeSelector for claim {claim.name}: unsupported ResourceSlice.NodeSelector with "
                    f"{len(terms)} terms"
                )
            for term in terms:
                fields.extend(every for every in term.match_fields if every not in fields)
                expressions.extend(every for every in term.match_expressions if every not in expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))


def _selector_json(selector: NodeSelector) -> dict[str, Any]:
    terms = []
    for term in selector.terms:
        parts = {"matchExpressions": term.match_expressions, "matchFields": term.match_fields}
        terms.append({name: [_requirement_json(each) for each in part] for name, part in parts.items() if part})
    return {"nodeSelectorTerms": terms}


def _requirement_json(requirement: Requirement) -> dict[str, Any]:
    json: dict[str, Any] = {"key": requirement.key, "operator": requirement.operator}
    if requirement.values:
        json["values"] = list(requirement.values)
    return json
