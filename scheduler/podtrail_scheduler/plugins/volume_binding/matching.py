"""Which volume a claim gets on a node."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from operator import itemgetter

from podtrail_scheduler.objects import Node, NodeSelector, PersistentVolume, PersistentVolumeClaim, Requirement
from podtrail_scheduler.plugins.shared.volume_claims import class_of


def reaches(affinity: NodeSelector | None, node: Node) -> bool:
    """Whether a volume of this node affinity can be used on `node`; only labels are looked at."""
    return affinity is None or affinity.matches(node.labels, "")


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound to the claim, or kept for it by name."""
    if volume.claim_ref is None:
        return False
    namespace, name, uid = volume.claim_ref
    return (namespace, name) == (claim.namespace, claim.name) and uid in ("", claim.uid)


class Candidates:
    """The volumes that a claim might get, whatever the node.

    Most volumes of a class that waits for its consumer are local: they are found by the label that their node must
    have, so that a node looks at its own ones only.
    """

    __slots__ = ("_anywhere", "_kept", "_keys", "_there")

    def __init__(self, kept: PersistentVolume | None, others: Sequence[PersistentVolume]) -> None:
        """`kept` is the one that is kept for the claim: no other will do; `others` begin with the smallest."""
        self._kept = kept
        self._keys: set[str] = set()
        self._there: dict[tuple[str, str], list[tuple[int, PersistentVolume]]] = {}
        """Those that ask for one of some values of a label, by label and value, with their places in the order."""
        self._anywhere: list[tuple[int, PersistentVolume]] = []
        for place, volume in enumerate(others if kept is None else ()):
            label = _required_label(volume.node_affinity)
            if label is None:
                self._anywhere.append((place, volume))
                continue
            self._keys.add(label.key)
            for value in label.values:
                self._there.setdefault((label.key, value), []).append((place, volume))

    def on(self, node: Node, taken: Collection[str]) -> PersistentVolume | None:
        """The volume for the claim on that node; names in `taken` are those that other claims of the Pod get."""
        if self._kept is not None:
            possible = [(0, self._kept)]
        else:
            local = (self._there.get((key, node.labels.get(key, "")), ()) for key in self._keys)
            possible = sorted(chain(self._anywhere, *local), key=itemgetter(0)) if self._keys else self._anywhere
        for _, volume in possible:
            if volume.name not in taken and reaches(volume.node_affinity, node):
                return volume
        return None


def candidates(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> Candidates:
    """The volumes among which the node decides."""
    possible = [volume for volume in volumes if _may_be(volume, claim)]
    kept = next((volume for volume in possible if is_bound_to(volume, claim)), None)
    others = sorted((volume for volume in possible if _fits(volume, claim)), key=lambda volume: volume.capacity)
    return Candidates(kept, others)


def _required_label(affinity: NodeSelector | None) -> Requirement | None:
    """A condition that lists the values of a label which a node must have, None when there is no single such one."""
    if affinity is None or len(affinity.terms) != 1:
        return None
    return next((each for each in affinity.terms[0].match_expressions if each.operator == "In"), None)


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
