"""What the search found, as the allocation that is written into the claim's status."""

from collections.abc import Mapping, Sequence
from typing import Any

from podtrail_scheduler.objects import NodeSelector, NodeSelectorTerm, Requirement
from podtrail_scheduler.objects.resource import AllocatedDevice, Allocation, DeviceClass, ResourceClaim

from .allocating import Chosen, UnallocatableError


def allocation_of(claim: ResourceClaim, chosen: Sequence[Chosen], classes: Mapping[str, DeviceClass]) -> Allocation:
    """The devices with their configuration, and the nodes where they can be used. Raises UnallocatableError."""
    selector = _node_selector(claim, chosen)
    devices: dict[str, Any] = {"results": [_result(each) for each in chosen]}
    config = _config(claim, chosen, classes)
    if config:
        devices["config"] = config
    json: dict[str, Any] = {"devices": devices}
    if selector is not None:
        json["nodeSelector"] = _selector_json(selector)
    allocated = (
        AllocatedDevice(each.request_name, each.candidate.id, each.specification.admin_access) for each in chosen
    )
    return Allocation(tuple(allocated), selector, json)


def _result(chosen: Chosen) -> dict[str, Any]:
    result: dict[str, Any] = {"request": chosen.request_name, **chosen.candidate.id._asdict()}
    if chosen.specification.admin_access:
        result["adminAccess"] = True
    if chosen.specification.tolerations:
        result["tolerations"] = [dict(each.json) for each in chosen.specification.tolerations]
    return result


def _config(claim: ResourceClaim, chosen: Sequence[Chosen], classes: Mapping[str, DeviceClass]) -> list[dict[str, Any]]:
    """That of the classes of the chosen devices, then the claim's own as far as it is about what was chosen."""
    names = list(dict.fromkeys(each.request_name for each in chosen))
    by_class: dict[str, list[str]] = {}
    for each in chosen:
        requests = by_class.setdefault(each.specification.device_class_name, [])
        if each.request_name not in requests:
            requests.append(each.request_name)
    config: list[dict[str, Any]] = [
        {"source": "FromClass", "requests": requests, **parameters}
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


def _node_selector(claim: ResourceClaim, chosen: Sequence[Chosen]) -> NodeSelector | None:
    fields: list[Requirement] = []
    expressions: list[Requirement] = []
    for each in chosen:
        place = each.candidate.device if each.candidate.slice.per_device_node_selection else each.candidate.slice
        if place.node_name:
            here = Requirement("metadata.name", "In", (place.node_name,))
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
