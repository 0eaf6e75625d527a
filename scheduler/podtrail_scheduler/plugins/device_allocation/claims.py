"""The claims of Pods, with what binding cycles under way have decided or written about them."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace

from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.resource import Allocation, DeviceId, ResourceClaim

from .capacity import NOTHING, Amounts, total
from .chosen import TakenDevices


class MissingClaimError(Exception):
    """A claim of the Pod is not there yet, or is not to be used any more; the text is kube-scheduler's."""

    def __init__(self, message: str, awaited: str) -> None:
        """`awaited` is what the Pod waits for, in words for its user (KEP-5501)."""
        super().__init__(message)
        self.awaited = awaited


class ClaimTracker:
    """Claims as the watch shows them, or as they were written if the watch does not show that yet."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._written: dict[str, ResourceClaim] = {}
        self._pending: dict[str, Allocation] = {}
        self._changes = 0
        self._version = (-1, 0)
        self._allocated: dict[str, Allocation] = {}

    def get(self, key: str) -> ResourceClaim | None:
        """The claim as it is now, as far as that is known."""
        shown = self._listers.get(ResourceClaim, key)
        return None if shown is None else self._newest(shown)

    def of(self, pod: Pod) -> list[ResourceClaim]:
        """The claims of the Pod.

        Raises:
            MissingClaimError: one is not there, going, not made yet, or another Pod's.
        """
        claims = []
        for wanted in pod.resource_claims:
            own = not wanted.resource_claim_name
            name = wanted.resource_claim_name
            if own:
                if wanted.name not in pod.claim_statuses:
                    raise MissingClaimError(
                        f'pod "{pod.key}": ResourceClaim not created yet',
                        f"Waiting for resource claim '{wanted.name}' to be created from its template",
                    )
                name = pod.claim_statuses[wanted.name]
            if not name:
                continue
            claim = self.get(f"{pod.namespace}/{name}")
            if claim is None:
                raise MissingClaimError(
                    f'could not find ResourceClaim "{pod.namespace}/{name}"',
                    f"Waiting for resource claim '{name}' to be present",
                )
            if claim.deletion_timestamp is not None:
                raise MissingClaimError(
                    f'resourceclaim "{claim.name}" is being deleted',
                    f"Waiting for resource claim '{claim.name}', which is being deleted, to be present again",
                )
            if own and claim.owner_uid != pod.uid:
                raise MissingClaimError(
                    f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)",
                    f"Waiting for resource claim '{claim.name}' to be this pod's own: it was created for another",
                )
            claims.append(claim)
        return claims

    @property
    def version(self) -> Hashable:
        """Another one after each change of what is allocated."""
        return self._listers.version(ResourceClaim), self._changes

    def decide(self, allocations: Mapping[str, Allocation]) -> None:
        """These allocations are decided but not yet written, by the claim's uid."""
        self._changes += 1
        self._pending.update(allocations)

    def settle(self, uids: Iterable[str]) -> None:
        """The allocations of these claims are written, or given up."""
        self._changes += 1
        for uid in uids:
            self._pending.pop(uid, None)

    def is_pending(self, claim: ResourceClaim) -> bool:
        """Whether an allocation is decided that is not yet written."""
        return claim.uid in self._pending

    def wrote(self, claim: ResourceClaim) -> None:
        """Remembers `claim` as it was written to the API server, until the watch shows it."""
        self._changes += 1
        self._written[claim.key] = claim

    def taken(self) -> TakenDevices:
        """The devices that claims have, or are about to have; an administrator's claim takes nothing from others."""
        devices: set[DeviceId] = set()
        consumed: dict[DeviceId, Amounts] = {}
        for allocation in {**self._pending, **self._allocations()}.values():
            for each in allocation.devices:
                if each.admin_access:
                    continue
                if each.consumed is None:
                    devices.add(each.id)
                else:
                    consumed[each.id] = total(consumed.get(each.id, NOTHING), each.consumed)
        return TakenDevices(devices, consumed)

    def _allocations(self) -> Mapping[str, Allocation]:
        """Those that are written, by the claim's uid; kept until a claim changes."""
        version = self._listers.version(ResourceClaim), len(self._written)
        if version != self._version or self._written:
            claims = [self._newest(shown) for shown in self._listers.all(ResourceClaim)]
            self._allocated = {claim.uid: claim.allocation for claim in claims if claim.allocation is not None}
            for key in [key for key in self._written if self._listers.get(ResourceClaim, key) is None]:
                del self._written[key]
            self._version = version
        return self._allocated

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
