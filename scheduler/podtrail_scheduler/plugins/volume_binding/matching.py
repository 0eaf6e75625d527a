"""Which volume a claim gets on a node."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from podtrail_scheduler.objects import Node, NodeSelector, PersistentVolume, PersistentVolumeClaim
from podtrail_scheduler.plugins.volume_claims import class_of


def reaches(affinity: NodeSelector | None, node: Node) -> bool:
    """Whether a volume of this node affinity can be used on `node`; only labels are looked at."""
    return affinity is None or affinity.matches(node.labels, "")


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound to the claim, or kept for it by name."""
    if volume.claim_ref is None:
        return False
    namespace, name, uid = volume.claim_ref
    return (namespace, name) == (claim.namespace, claim.name) and uid in ("", claim.uid)


class Candidates(NamedTuple):
    """The volumes that a claim might get, whatever the node."""

    kept: PersistentVolume | None
    """The one that is kept for the claim: no other will do."""
    others: tuple[PersistentVolume, ...]
    """From the smallest."""

    def on(self, node: Node, taken: Collection[str]) -> PersistentVolume | None:
        """The volume for the claim on that node; names in `taken` are those that other claims of the Pod get."""
        for volume in self.others if self.kept is None else (self.kept,):
            if volume.name not in taken and reaches(volume.node_affinity, node):
                return volume
        return None


def candidates(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> Candidates:
    """The volumes among which the node decides."""
    possible = [volume for volume in volumes if _may_be(volume, claim)]
    kept = next((volume for volume in possible if is_bound_to(volume, claim)), None)
    others = sorted((volume for volume in possible if _fits(volume, claim)), key=lambda volume: volume.capacity)
    return Candidates(kept, tuple(others))


def _may_be(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """What also holds for a volume that is kept for the claim."""
    return (
        (volume.claim_ref is None or is_bound_to(volume, claim))
        and volume.capacity >= claim.request
        and volume.volume_mode == claim.volume_mode
        and (volume.volume_attributes_class_name or "") == (claim.volume_attributes_class_name or "")
        and volume.deletion_timestamp is None
    )


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.phase == "Available"
        and (claim.selector is None or claim.selector.matches(volume.labels))
        and class_of(volume) == class_of(claim)
        and set(claim.access_modes) <= set(volume.access_modes)
    )
