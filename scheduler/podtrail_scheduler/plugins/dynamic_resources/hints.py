"""Which events may turn a refusal by DynamicResources."""

from podtrail_scheduler.framework.events import Happening, Hint
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.resource import ResourceClaim
from podtrail_scheduler.plugins.device_allocation.claims import ClaimTracker, MissingClaimError


class ClaimHints:
    """Queueing hints that look at the claims of the Pod that waits."""

    def __init__(self, claims: ClaimTracker) -> None:
        self._claims = claims

    def after_claim(self, pod: Pod, happening: Happening) -> Hint:
        """Queue when a claim of the Pod came or changed, or any claim gave its devices back."""
        old, new = happening.old, happening.new
        assert old is None or isinstance(old, ResourceClaim)
        if new is None:
            return Hint.QUEUE if old is not None and old.allocation is not None else Hint.SKIP
        assert isinstance(new, ResourceClaim)
        try:
            claims = self._claims.of(pod)
        except MissingClaimError:
            return Hint.SKIP
        if old is not None and old.allocation is not None and new.allocation is None:
            return Hint.QUEUE
        if all(claim.uid != new.uid for claim in claims):
            return Hint.SKIP
        same = old is not None and _status(old) == _status(new)
        return Hint.SKIP if same else Hint.QUEUE

    def after_target_pod(self, pod: Pod, happening: Happening) -> Hint:  # noqa: ARG002
        """Queue when all claims of the Pod exist."""
        assert isinstance(happening.new, Pod)
        try:
            self._claims.of(happening.new)
        except MissingClaimError:
            return Hint.SKIP
        return Hint.QUEUE


def _status(claim: ResourceClaim) -> tuple[object, ...]:
    return claim.allocation, claim.reserved_for, claim.devices
