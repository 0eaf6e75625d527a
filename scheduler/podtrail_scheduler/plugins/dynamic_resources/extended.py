"""The claim that a Pod gets for extended resources which devices stand for, without having asked for a claim."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.framework.status import Status, unresolvable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.pod import ContainerRequests, RequestMapping
from podtrail_scheduler.objects.quantities import may_be_devices
from podtrail_scheduler.objects.resource import (
    EXACT_COUNT,
    EXTENDED_RESOURCES,
    DeviceRequest,
    DeviceSpecification,
    ResourceClaim,
)
from podtrail_scheduler.plugins.shared.extended_resources import ExtendedResources

UNWRITTEN = "<extended-resources>"
"""The name of a claim that the API server does not have yet: none that it could have."""
LEFT_OVER = unresolvable("cannot schedule extended resource claim")
NOWHERE = unresolvable("cannot fit resource")


class OnNode(NamedTuple):
    """The claim as it is for a node, which may count some of the resources itself."""

    claim: ResourceClaim
    mappings: tuple[RequestMapping, ...] = ()


class ExtendedClaims:
    """Makes the claims, or finds what an earlier attempt left."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._resources = listers.shared(ExtendedResources)

    def of(self, pod: Pod) -> "ClaimOfPod | None":
        """None for a Pod that asks for nothing that a class stands for."""
        if not self._resources.wanted(pod):
            return None
        for claim in self._listers.all(ResourceClaim):
            if claim.for_extended_resources and claim.owner_uid == pod.uid:
                return ClaimOfPod(claim, pod, self._resources)
        uid = f"{pod.uid}{UNWRITTEN}"
        claim = ResourceClaim(UNWRITTEN, pod.namespace, uid, owner_uid=pod.uid, for_extended_resources=True)
        return ClaimOfPod(claim, pod, self._resources)


class ClaimOfPod:
    """In one attempt; nodes that count the same resources themselves share what is made for them."""

    def __init__(self, claim: ResourceClaim, pod: Pod, resources: ExtendedResources) -> None:
        self.claim = claim
        self._containers = pod.containers
        self._resources = resources
        self._asked = [name for name, amount in pod.requests.items() if amount and may_be_devices(name)]
        self._made: dict[tuple[str, ...], OnNode] = {}

    def on(self, node: Node) -> Status | OnNode:
        """The claim with requests for what the node itself does not count.

        One that an earlier attempt left has requests: it must go first.
        """
        if self.claim.requests:
            return LEFT_OVER
        delegated = tuple(self._resources.delegated(self._asked, node))
        if len(delegated) < len(self._asked) and any(
            name not in delegated and name not in node.allocatable for name in self._asked
        ):
            return NOWHERE
        if self.claim.allocation is not None:
            return OnNode(self.claim)
        made = self._made.get(delegated)
        if made is None:
            made = self._made[delegated] = self._with_requests(delegated)
        return made

    def _with_requests(self, names: Sequence[str]) -> OnNode:
        requests: list[DeviceSpecification] = []
        mappings: list[RequestMapping] = []
        for name in sorted(names):
            asked = _ResourceDemand(name, self._resources.classes()[name].name, self._containers)
            requests += asked.requests
            mappings += asked.mappings
        requests.sort(key=lambda each: each.name)
        wanted = tuple(DeviceRequest(each.name, each) for each in requests)
        return OnNode(replace(self.claim, requests=wanted), tuple(mappings))


class _ResourceDemand:
    """What the containers of a Pod ask for of one resource.

    An early container uses what later ones will have, and what other early ones have had; only what the greediest of
    them wants beyond that is requested for them.
    """

    def __init__(self, name: str, device_class: str, containers: Sequence[ContainerRequests]) -> None:
        self._name = name
        self._class = device_class
        self.mappings: list[RequestMapping] = []
        lasting = [None if each.early else self._request(place, each) for place, each in enumerate(containers)]
        for each, request in zip(containers, lasting, strict=True):
            if request is not None:
                self._map(each, request.name)
        self.requests = [each for each in lasting if each is not None]
        early: list[tuple[ContainerRequests, list[DeviceSpecification], DeviceSpecification | None]] = []
        for place, each in enumerate(containers):
            if each.early and each.requests.get(name):
                used, missing = self._used(each, [later for later in lasting[place:] if later is not None])
                early.append((each, used, self._request(place, each, missing) if missing else None))
        greediest = max((own for _, _, own in early if own is not None), key=lambda own: own.count, default=None)
        if greediest is not None:
            self.requests.append(greediest)
        for each, used, own in early:
            for request in used:
                self._map(each, request.name)
            if own is not None and greediest is not None:
                self._map(each, greediest.name)

    def _used(
        self, container: ContainerRequests, later: Sequence[DeviceSpecification]
    ) -> tuple[list[DeviceSpecification], int]:
        used, missing = [], container.requests[self._name]
        for request in later:
            if missing <= 0:
                break
            used.append(request)
            missing -= request.count
        return used, max(missing, 0)

    def _request(
        self, place: int, container: ContainerRequests, count: int | None = None
    ) -> DeviceSpecification | None:
        count = container.requests.get(self._name, 0) if count is None else count
        if not count:
            return None
        name = f"container-{place}-request-{sorted(container.requests).index(self._name)}"
        return DeviceSpecification(name, self._class, count=count)

    def _map(self, container: ContainerRequests, request: str) -> None:
        self.mappings.append(RequestMapping(container.name, self._name, request))


def manifest(claim: ResourceClaim, pod: Pod) -> dict[str, Any]:
    """The claim as it is created: the Pod's own, so that it goes with the Pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{pod.name}-extended-resources-",
            "namespace": pod.namespace,
            "annotations": {EXTENDED_RESOURCES: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": [_request_json(each.exactly) for each in claim.requests if each.exactly]}},
    }


def _request_json(wanted: DeviceSpecification) -> dict[str, Any]:
    exactly = {"deviceClassName": wanted.device_class_name, "allocationMode": EXACT_COUNT, "count": wanted.count}
    return {"name": wanted.name, "exactly": exactly}
