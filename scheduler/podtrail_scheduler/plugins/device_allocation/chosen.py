"""What the search for devices is about: requests, their alternatives, and the devices chosen for them."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from podtrail_scheduler.objects.resource import DeviceClass, DeviceId, DeviceRequest, DeviceSpecification

from .capacity import Amounts
from .pools import CandidateDevice


class UnallocatableError(Exception):
    """A claim asks for something that can't be answered: the node's answer is an error."""


@dataclass(frozen=True, slots=True)
class TakenDevices:
    """The devices that claims have: whole ones, and how much of those that are shared."""

    devices: Set[DeviceId]
    consumed: Mapping[DeviceId, Amounts]

    def __contains__(self, device: object) -> bool:
        return device in self.devices or device in self.consumed


class WantedDevices(NamedTuple):
    """How many devices a request or alternative wants, and which ones if it wants all."""

    specification: DeviceSpecification
    device_class: DeviceClass
    number: int
    devices: Sequence[CandidateDevice] = ()


class Chosen(NamedTuple):
    """A device for a request; `consumed` is the share of one that is shared."""

    request: DeviceRequest
    specification: DeviceSpecification
    candidate: CandidateDevice
    consumed: Amounts | None = None
    takes_counters: bool = False

    @property
    def request_name(self) -> str:
        """`request`, or `request/subrequest` for an alternative."""
        return request_name(self.request, self.specification)


def request_name(request: DeviceRequest, specification: DeviceSpecification) -> str:
    """`request`, or `request/subrequest` for an alternative."""
    return request.name if request.exactly is not None else f"{request.name}/{specification.name}"


def alternatives(request: DeviceRequest) -> Sequence[DeviceSpecification]:
    """The alternatives of the request, the most wanted first."""
    return request.first_available if request.exactly is None else (request.exactly,)
