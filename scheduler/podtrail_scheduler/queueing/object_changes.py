"""Changes of objects other than Pods and Nodes, as events that the queue understands."""

from collections.abc import Mapping

from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource
from podtrail_scheduler.objects import (
    ApiObject,
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from podtrail_scheduler.objects.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice

RESOURCES: Mapping[type, EventResource] = {
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


def object_change(old: ApiObject | None, new: ApiObject | None) -> ClusterEvent | None:
    """The event of an object that came (no `old`), changed, or went (no `new`); None when nobody waits for its kind.

    Rules that taint devices are changes of the slices: so kube-scheduler's plugins see them.
    """
    kind = type(old if new is None else new)
    if kind is DeviceTaintRule:
        return ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.UPDATE)
    resource = RESOURCES.get(kind)
    if resource is None:
        return None
    return ClusterEvent(
        resource, ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE
    )
