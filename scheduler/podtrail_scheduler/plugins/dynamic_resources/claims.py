"""The claims of Pods, with what binding cycles under way have decided or written about them."""

from dataclasses import replace

from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.resource import Allocation, DeviceId, ResourceClaim


class MissingClaimError(Exception):
    """A claim of the Pod is not there yet, or is not to be used any more."""


class Claims:
    """Claims as the watch shows them, or as they were written if the watch does not show that yet."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._written: dict[str, ResourceClaim] = {}
        self.pending: dict[str, Allocation] = {}
        """Allocations that are decided but not yet written, by the claim's uid."""
        self._version = -1
        self._allocated: dict[str, tuple[ResourceClaim, frozenset[DeviceId]]] = {}

    def get(self, key: str) -> ResourceClaim | None:
        """The claim as it is now, as far as that is known."""
        shown = self._listers.get(ResourceClaim, key)
        return None if shown is None else self._newest(shown)

    def of(self, pod: Pod) -> list[ResourceClaim]:
        """The claims of the Pod. Raises MissingClaimError."""
        claims = []
        for wanted in pod.resource_claims:
            own = not wanted.resource_claim_name
            name = wanted.resource_claim_name
            if own:
                if wanted.name not in pod.claim_statuses:
                    raise MissingClaimError(f'pod "{pod.key}": ResourceClaim not created yet')
                name = pod.claim_statuses[wanted.name]
            if not name:
                continue
            claim = self.get(f"{pod.namespace}/{name}")
            if claim is None:
                raise MissingClaimError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
            if claim.deletion_timestamp is not None:
                raise MissingClaimError(f'resourceclaim "{claim.name}" is being deleted')
            if own and claim.owner_uid != pod.uid:
                raise MissingClaimError(
                    f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)"
                )
            claims.append(claim)
        return claims

    def wrote(self, claim: ResourceClaim) -> None:
        """The API server has the claim like this now."""
        self._written[claim.key] = claim

    def allocated(self) -> frozenset[DeviceId]:
        """The devices that claims have, or are about to have."""
        self._renew()
        taken: set[DeviceId] = set()
        for _, devices in self._allocated.values():
            taken |= devices
        for claim in self._written.values():
            taken |= _devices(claim.allocation)
        for allocation in self.pending.values():
            taken |= _devices(allocation)
        return frozenset(taken)

    def _renew(self) -> None:
        version = self._listers.version(ResourceClaim)
        if version == self._version and not self._written:
            return
        self._version = version
        before, self._allocated = self._allocated, {}
        for shown in self._listers.all(ResourceClaim):
            claim = self._newest(shown)
            if claim.allocation is None:
                continue
            known = before.get(claim.key)
            self._allocated[claim.key] = (
                known if known is not None and known[0] is claim else (claim, _devices(claim.allocation))
            )
        for key in [key for key in self._written if self._listers.get(ResourceClaim, key) is None]:
            del self._written[key]

    def _newest(self, shown: ResourceClaim) -> ResourceClaim:
        written = self._written.get(shown.key)
        if written is None:
            return shown
        if int(shown.resource_version or 0) >= int(written.resource_version or 0):
            del self._written[shown.key]
            return shown
        return written


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the Pod may use the claim."""
    return any(each.uid == pod.uid for each in claim.reserved_for)


def without(claim: ResourceClaim, pod: Pod) -> ResourceClaim:
    """The claim when the Pod no longer uses it."""
    return replace(claim, reserved_for=tuple(each for each in claim.reserved_for if each.uid != pod.uid))


def _devices(allocation: Allocation | None) -> frozenset[DeviceId]:
    """Devices in use: administrators' access takes none."""
    if allocation is None:
        return frozenset()
    return frozenset(each.id for each in allocation.devices if not each.admin_access)
