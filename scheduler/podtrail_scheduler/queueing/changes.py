"""The cluster events of a change of an object (kube-scheduler's `PodSchedulingPropertiesChange` and its like)."""

from collections.abc import Mapping

from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource
from podtrail_scheduler.objects import (
    ApiObject,
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)
from podtrail_scheduler.objects.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice

_RESOURCES: Mapping[type, EventResource] = {
    PersistentVolume: EventResource.PERSISTENT_VOLUME,
    PersistentVolumeClaim: EventResource.PERSISTENT_VOLUME_CLAIM,
    StorageClass: EventResource.STORAGE_CLASS,
    CsiNode: EventResource.CSI_NODE,
    CsiDriver: EventResource.CSI_DRIVER,
    CsiStorageCapacity: EventResource.CSI_STORAGE_CAPACITY,
    VolumeAttachment: EventResource.VOLUME_ATTACHMENT,
    ResourceClaim: EventResource.RESOURCE_CLAIM,
    ResourceSlice: EventResource.RESOURCE_SLICE,
    DeviceClass: EventResource.DEVICE_CLASS,
}
"""Of the kinds that plugins wait for; the others are only looked up."""


def pod_scheduling_properties_change(old: Pod, new: Pod, *, target: bool) -> list[ClusterEvent]:
    """The events of a Pod's update; `target` when it is told to the waiting Pod itself.

    An update of nothing that scheduling reads is the general Update, heard by who registered for all of them.
    """
    resource = (
        EventResource.ASSIGNED_POD
        if new.node_name
        else EventResource.TARGET_POD
        if target
        else EventResource.UNSCHEDULED_POD
    )
    return [ClusterEvent(resource, action) for action in _pod_actions(old, new)] or [
        ClusterEvent(resource, ActionType.UPDATE)
    ]


def node_scheduling_properties_change(old: Node, new: Node) -> list[ClusterEvent]:
    """The events of a Node's update; none when nothing changed that scheduling reads, as with heartbeats."""
    return [ClusterEvent(EventResource.NODE, action) for action in _node_actions(old, new)]


def object_change(old: ApiObject | None, new: ApiObject | None) -> ClusterEvent | None:
    """The event of an object that came (no `old`), changed, or went (no `new`); None when nobody waits for its kind.

    Rules that taint devices are changes of the slices: so kube-scheduler's plugins see them.
    """
    kind = type(old if new is None else new)
    if kind is DeviceTaintRule:
        return ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.UPDATE)
    resource = _RESOURCES.get(kind)
    if resource is None:
        return None
    return ClusterEvent(
        resource, ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE
    )


def _pod_actions(old: Pod, new: Pod) -> list[ActionType]:
    actions = []
    if old.labels != new.labels:
        actions.append(ActionType.UPDATE_POD_LABEL)
    if _any_lower(old.requests, new.requests):
        actions.append(ActionType.UPDATE_POD_SCALE_DOWN)
    if _any_lower(new.requests, old.requests):
        actions.append(ActionType.UPDATE_POD_SCALE_UP)
    if old.scheduling_gates and not new.scheduling_gates:
        actions.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.tolerations) != len(new.tolerations):
        actions.append(ActionType.UPDATE_POD_TOLERATION)
    if (old.claim_statuses, old.extended_claim) != (new.claim_statuses, new.extended_claim):
        actions.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return actions


def _any_lower(before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    return any(name not in after or amount > after[name] for name, amount in before.items())


def _node_actions(old: Node, new: Node) -> list[ActionType]:
    actions = []
    if old.unschedulable and not new.unschedulable:
        actions.append(ActionType.UPDATE_NODE_TAINT)
    if old.allocatable != new.allocatable:
        actions.append(ActionType.UPDATE_NODE_ALLOCATABLE)
    if old.labels != new.labels:
        actions.append(ActionType.UPDATE_NODE_LABEL)
    if old.taints != new.taints:
        actions.append(ActionType.UPDATE_NODE_TAINT)
    if dict(old.conditions) != dict(new.conditions):
        actions.append(ActionType.UPDATE_NODE_CONDITION)
    if old.annotations != new.annotations:
        actions.append(ActionType.UPDATE_NODE_ANNOTATION)
    if old.declared_features != new.declared_features:
        actions.append(ActionType.UPDATE_NODE_DECLARED_FEATURE)
    return actions
