"""Which events may turn a refusal by VolumeBinding."""

from podtrail_scheduler.framework.events import Happening, Hint
from podtrail_scheduler.objects import CsiDriver, CsiNode, CsiStorageCapacity, Pod, StorageClass
from podtrail_scheduler.plugins.shared.csi_migration import MIGRATED_PLUGINS

from .binder import volume_limit


def after_csi_node(pod: Pod, happening: Happening) -> Hint:  # noqa: ARG001
    """Queue when a CSINode came or the list of migrated plugins in its annotation changed."""
    old, new = happening.old, happening.new
    assert isinstance(new, CsiNode)
    if isinstance(old, CsiNode) and old.annotations.get(MIGRATED_PLUGINS) == new.annotations.get(MIGRATED_PLUGINS):
        return Hint.SKIP
    return Hint.QUEUE


def after_storage_class(pod: Pod, happening: Happening) -> Hint:  # noqa: ARG001
    """Queue when a StorageClass came or changed its allowed topologies."""
    old, new = happening.old, happening.new
    assert isinstance(new, StorageClass)
    same = isinstance(old, StorageClass) and old.allowed_topologies == new.allowed_topologies
    return Hint.SKIP if same else Hint.QUEUE


def after_csi_storage_capacity(pod: Pod, happening: Happening) -> Hint:  # noqa: ARG001
    """Queue when a CSIStorageCapacity came or tells of more room than before."""
    old, new = happening.old, happening.new
    assert isinstance(new, CsiStorageCapacity)
    if not isinstance(old, CsiStorageCapacity):
        return Hint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    return Hint.QUEUE if now is not None and (before is None or now > before) else Hint.SKIP


def after_csi_driver(pod: Pod, happening: Happening) -> Hint:
    """Queue when the driver of an inline volume of the Pod no longer counts capacity."""
    old, new = happening.old, happening.new
    assert isinstance(old, CsiDriver)
    assert isinstance(new, CsiDriver)
    used = any(each.kind == "csi" and each.source.get("driver") == new.name for each in pod.volumes)
    return Hint.QUEUE if used and old.storage_capacity and not new.storage_capacity else Hint.SKIP
