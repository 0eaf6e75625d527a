"""Changes of objects other than Pods and Nodes, as events that the queue understands."""

from collections.abc import Mapping

from podtrail_scheduler.framework.events import Action, ClusterEvent, Resource
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

RESOURCES: Mapping[type, Resource] = {
    PersistentVolume: Resource.PERSISTENT_VOLUME,
    PersistentVolumeClaim: Resource.PERSISTENT_VOLUME_CLAIM,
    StorageClass: Resource.STORAGE_CLASS,
    CsiNode: Resource.CSI_NODE,
    CsiDriver: Resource.CSI_DRIVER,
    CsiStorageCapacity: Resource.CSI_STORAGE_CAPACITY,
    VolumeAttachment: Resource.VOLUME_ATTACHMENT,
    ResourceClaim: Resource.RESOURCE_CLAIM,
    ResourceSlice: Resource.RESOURCE_SLICE,
    DeviceClass: Resource.DEVICE_CLASS,
}
"""Of the kinds that plugins wait for; the others are only looked up."""


def object_change(old: ApiObject | None, new: ApiObject | None) -> ClusterEvent | None:
    """The event of an object that came (no `old`), changed, or went (no `new`); None when nobody waits for its kind.

    Rules that taint devices are changes of the slices: so kube-scheduler's plugins see them.
    """
    kind = type(old if new is None else new)
    if kind is DeviceTaintRule:
        return ClusterEvent(Resource.RESOURCE_SLICE, Action.UPDATE)
    resource = RESOURCES.get(kind)
    if resource is None:
        return None
    return ClusterEvent(resource, Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE)
