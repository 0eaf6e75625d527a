"""What a Pod's claims need on a node: bound volumes within reach, volumes to bind, volumes to provision."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.objects import (
    WAIT_FOR_FIRST_CONSUMER,
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from podtrail_scheduler.plugins.shared.csi_migration import node_affinity_of
from podtrail_scheduler.plugins.shared.volume_claims import claim_not_found, claimed_volumes, class_of, not_made_for

from .assumed import Assumed
from .matching import Candidates, candidates, reaches

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
NO_PROVISIONER = "kubernetes.io/no-provisioner"

OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"
TOO_LITTLE_SPACE = "node(s) did not have enough free storage"
VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


class Unanswerable(Exception):
    """An object that the answer depends on is missing or in an impossible state: the attempt ends in an error."""


class StaticBinding(NamedTuple):
    """A claim and the volume it gets."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume


class Provision(NamedTuple):
    """A claim that a volume is to be made for, and where the driver says it has room (None: it does not say)."""

    claim: PersistentVolumeClaim
    capacity: CsiStorageCapacity | None


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """What is to be done for a Pod's claims on one node."""

    bindings: tuple[StaticBinding, ...] = ()
    provisions: tuple[Provision, ...] = ()


class DelayedClaim(NamedTuple):
    """A claim that waits for its Pod, and the volumes it might get."""

    claim: PersistentVolumeClaim
    candidates: Candidates


class PodClaims(NamedTuple):
    """A Pod's claims by what is still to be done for them."""

    bound: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[DelayedClaim, ...]
    """Unbound, to be bound when the Pod's node is known."""
    immediate: tuple[PersistentVolumeClaim, ...]
    """Unbound though they should have been bound without regard to any Pod."""


def fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether claim and volume both know of each other."""
    return bool(claim.volume_name) and BIND_COMPLETED in claim.annotations


def volume_limit(capacity: CsiStorageCapacity) -> int | None:
    """The largest volume that can be made there, bytes; None unknown."""
    return capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity


class VolumeBinder:
    """Answers from the listers and from what binding cycles under way have assumed."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self.claims = Assumed(listers, PersistentVolumeClaim)
        self.volumes = Assumed(listers, PersistentVolume)
        self._capacities_version = -1
        self._capacities: dict[str, list[CsiStorageCapacity]] = {}

    def claims_of(self, pod: Pod) -> PodClaims:
        """The Pod's claims.

        Raises:
            Unanswerable: one is missing.
        """
        bound, delayed, immediate = [], [], []
        for volume, name in claimed_volumes(pod):
            claim = self.claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                raise Unanswerable(f'error getting PVC "{pod.namespace}/{name}": {claim_not_found(name)}')
            if volume.ephemeral and (reason := not_made_for(pod, claim)):
                raise Unanswerable(reason)
            if fully_bound(claim):
                bound.append(claim)
            elif not claim.volume_name and self._waits_for_consumer(claim):
                volumes = self.volumes.of_class(class_of(claim))
                delayed.append(DelayedClaim(claim, candidates(claim, volumes)))
            else:
                immediate.append(claim)
        return PodClaims(tuple(bound), tuple(delayed), tuple(immediate))

    def all_bound(self, pod: Pod) -> bool:
        """Whether nothing is left to be done for the Pod's claims, on whatever node."""
        claims = (self.claims.get(f"{pod.namespace}/{name}") for _, name in claimed_volumes(pod))
        return all(claim is not None and fully_bound(claim) for claim in claims)

    def on_node(self, claims: PodClaims, node: Node) -> PodVolumes | tuple[str, ...]:
        """What is to be done on `node`, or the reasons why it will not do.

        Raises:
            Unanswerable: what is needed to say so is missing.
        """
        reasons = []
        trouble = self._bound_trouble(claims.bound, node)
        if trouble == OUT_OF_REACH:
            reasons.append(trouble)
        wanted = self._delayed(claims.delayed, node) if claims.delayed else PodVolumes()
        if isinstance(wanted, str):
            reasons.append(wanted)
        if trouble == VOLUME_GONE:
            reasons.append(trouble)
        if reasons:
            return tuple(reasons)
        assert isinstance(wanted, PodVolumes)
        return wanted

    def _waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self._listers.get(StorageClass, class_of(claim))
        return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def _bound_trouble(self, claims: Sequence[PersistentVolumeClaim], node: Node) -> str:
        csi_node = self._listers.get(CsiNode, node.name)
        for claim in claims:
            volume = self.volumes.get(claim.volume_name)
            if volume is None:
                return VOLUME_GONE
            if not reaches(node_affinity_of(volume, csi_node), node):
                return OUT_OF_REACH
        return ""

    def _delayed(self, claims: Sequence[DelayedClaim], node: Node) -> PodVolumes | str:
        to_provision = []
        to_match = []
        for delayed in claims:
            selected = delayed.claim.annotations.get(SELECTED_NODE)
            if selected is None:
                to_match.append(delayed)
            elif selected == node.name:
                to_provision.append(delayed.claim)
            else:
                return NONE_TO_BIND
        bindings: list[StaticBinding] = []
        taken: set[str] = set()
        for claim, possible in sorted(to_match, key=lambda each: each.claim.request):
            volume = possible.on(node, taken)
            if volume is None:
                to_provision.append(claim)
            else:
                taken.add(volume.name)
                bindings.append(StaticBinding(claim, volume))
        provisions = []
        for claim in to_provision:
            provision = self._provision(claim, node)
            if isinstance(provision, str):
                return provision
            provisions.append(provision)
        return PodVolumes(tuple(bindings), tuple(provisions))

    def _provision(self, claim: PersistentVolumeClaim, node: Node) -> Provision | str:
        name = class_of(claim)
        if not name:
            raise Unanswerable(f'no class for claim "{claim.key}"')
        storage_class = self._listers.get(StorageClass, name)
        if storage_class is None:
            raise Unanswerable(f'failed to find storage class "{name}"')
        if storage_class.provisioner in ("", NO_PROVISIONER) or not _allows(storage_class, node):
            return NONE_TO_BIND
        driver = self._listers.get(CsiDriver, storage_class.provisioner)
        if not claim.request or driver is None or not driver.storage_capacity:
            return Provision(claim, None)
        for capacity in self._capacities_of(name):
            limit, topology = volume_limit(capacity), capacity.node_topology
            if limit is not None and limit >= claim.request and topology is not None and topology.matches(node.labels):
                return Provision(claim, capacity)
        return TOO_LITTLE_SPACE

    def _capacities_of(self, storage_class: str) -> Sequence[CsiStorageCapacity]:
        version = self._listers.version(CsiStorageCapacity)
        if version != self._capacities_version:
            self._capacities_version, self._capacities = version, {}
            for each in self._listers.all(CsiStorageCapacity):
                self._capacities.setdefault(each.storage_class_name, []).append(each)
        return self._capacities.get(storage_class, ())


def _allows(storage_class: StorageClass, node: Node) -> bool:
    terms = storage_class.allowed_topologies
    return not terms or any(
        term and all(node.labels.get(key) in values for key, values in term.items()) for term in terms
    )
