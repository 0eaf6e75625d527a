"""VolumeZone: a Pod goes where the zone and region labels of its volumes say they are."""

from collections.abc import Sequence
from typing import NamedTuple

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Happening, Hint, Registration
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status, unresolvable
from podtrail_scheduler.objects import (
    REGION,
    WAIT_FOR_FIRST_CONSUMER,
    ZONE,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)

from .shared.csi_migration import BETA_REGION, BETA_ZONE, ZONES_DELIMITER
from .shared.volume_claims import after_named_claim, claim_not_found, class_not_found, class_of, volume_not_found

ELSEWHERE = unresolvable("node(s) had no available volume zone")

_TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_NEWER = {BETA_ZONE: ZONE, BETA_REGION: REGION}


class _ZoneLabel(NamedTuple):
    label: str
    values: frozenset[str]


class _ZoneLabels(NamedTuple):
    places: tuple[_ZoneLabel, ...]


class VolumeZone:
    """Reads the labels of bound volumes once an attempt."""

    name = "VolumeZone"
    in_tree = True

    def __init__(self, handle: Handle, args: None = None) -> None:  # noqa: ARG002
        self._listers = handle.listers

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:  # noqa: ARG002
        """Skips when no volume says where it is; refuses Pods whose claims or volumes are missing."""
        places: list[_ZoneLabel] = []
        for volume in pod.volumes:
            if not volume.claim_name:
                continue
            found = self._places(pod, volume.claim_name)
            if isinstance(found, Status):
                return found
            places.extend(found)
        if not places:
            return SKIP
        state.write(_ZoneLabels(tuple(places)))
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:  # noqa: ARG002
        """Refuses a node that says it is elsewhere; one without any such label is not asked."""
        labels = node.node.labels
        if not any(label in labels for label in _TOPOLOGY_LABELS):
            return None
        for label, values in state.read(_ZoneLabels).places:
            if labels.get(label, labels.get(_NEWER.get(label, label))) not in values:
                return ELSEWHERE
        return None

    def events_to_register(self) -> Sequence[Registration]:
        """Classes that wait for a consumer, nodes, claims, and volumes that say something else now."""
        changed = ActionType.ADD | ActionType.UPDATE
        return (
            Registration(ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD), _after_class),
            Registration(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
            Registration(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, changed), after_named_claim),
            Registration(ClusterEvent(EventResource.PERSISTENT_VOLUME, changed), _after_volume),
        )

    def _places(self, pod: Pod, claim_name: str) -> Status | list[_ZoneLabel]:
        claim = self._listers.get(PersistentVolumeClaim, f"{pod.namespace}/{claim_name}")
        if claim is None:
            return unresolvable(claim_not_found(claim_name))
        if not claim.volume_name:
            return self._unbound(claim)
        volume = self._listers.get(PersistentVolume, claim.volume_name)
        if volume is None:
            return unresolvable(volume_not_found(claim.volume_name))
        return _places_of(volume)

    def _unbound(self, claim: PersistentVolumeClaim) -> Status | list[_ZoneLabel]:
        name = class_of(claim)
        if not name:
            return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = self._listers.get(StorageClass, name)
        if storage_class is None:
            return unresolvable(class_not_found(name))
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return []
        return unresolvable("PersistentVolume had no name")


def _places_of(volume: PersistentVolume) -> list[_ZoneLabel]:
    places = []
    for label in _TOPOLOGY_LABELS:
        if label in volume.labels:
            values = frozenset(each.strip() for each in volume.labels[label].split(ZONES_DELIMITER))
            if "" not in values:
                places.append(_ZoneLabel(label, values))
    return places


def _after_class(pod: Pod, happening: Happening) -> Hint:  # noqa: ARG001
    storage_class = happening.new
    assert isinstance(storage_class, StorageClass)
    return Hint.QUEUE if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else Hint.SKIP


def _after_volume(pod: Pod, happening: Happening) -> Hint:  # noqa: ARG001
    old, new = happening.old, happening.new
    assert isinstance(new, PersistentVolume)
    if isinstance(old, PersistentVolume) and _places_of(old) == _places_of(new):
        return Hint.SKIP
    return Hint.QUEUE
