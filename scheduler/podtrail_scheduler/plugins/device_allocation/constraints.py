"""Constraints between the devices of a claim."""

from collections.abc import Sequence

from podtrail_scheduler.objects.resource import DeviceAttribute, DeviceConstraint

from .chosen import Chosen
from .pools import CandidateDevice


def holds(constraint: DeviceConstraint, before: Sequence[Chosen], chosen: Chosen) -> bool:
    """Whether the device has the attribute, with the same value as those before it, or with another one."""
    if not _concerns(constraint, chosen):
        return True
    name = constraint.match_attribute or constraint.distinct_attribute
    attribute = _attribute(chosen.candidate, name)
    if attribute is None:
        return False
    others = (_attribute(each.candidate, name) for each in before if _concerns(constraint, each))
    if constraint.match_attribute:
        return all(attribute.comparable and other == attribute for other in others)
    return all(attribute.comparable and other != attribute for other in others)


def _concerns(constraint: DeviceConstraint, chosen: Chosen) -> bool:
    requests = constraint.requests
    return not requests or chosen.request.name in requests or chosen.request_name in requests


def _attribute(candidate: CandidateDevice, name: str) -> DeviceAttribute | None:
    attributes = candidate.device.attributes
    domain, _, identifier = name.rpartition("/")
    if name in attributes or domain != candidate.pool.id.driver:
        return attributes.get(name)
    return attributes.get(identifier)
