"""The claims behind a Pod's volumes, as all plugins about volumes look at them."""

from collections.abc import Iterator
from typing import NamedTuple

from podtrail_scheduler.framework.events import Happening, Hint
from podtrail_scheduler.objects import PersistentVolume, PersistentVolumeClaim, Pod, Volume

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""Older than the field, and still stronger."""


class ClaimedVolume(NamedTuple):
    """A volume of a Pod that a claim stands behind."""

    volume: Volume
    claim_name: str


def claimed_volumes(pod: Pod) -> Iterator[ClaimedVolume]:
    """The volumes with a claim, ephemeral ones included: their claims are called `<pod>-<volume>`."""
    for volume in pod.volumes:
        if volume.claim_name:
            yield ClaimedVolume(volume, volume.claim_name)
        elif volume.ephemeral:
            yield ClaimedVolume(volume, f"{pod.name}-{volume.name}")


def class_of(item: PersistentVolumeClaim | PersistentVolume) -> str:
    """The name of the storage class, empty without one."""
    return item.annotations.get(CLASS_ANNOTATION, item.storage_class_name or "")


def claim_not_found(name: str) -> str:
    """What the API says of a claim that is not there."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    """What the API says of a volume that is not there."""
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    """What the API says of a storage class that is not there."""
    return f'storageclass.storage.k8s.io "{name}" not found'


def not_made_for(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Why the claim cannot be that of an ephemeral volume of `pod`; empty when it is."""
    if claim.namespace == pod.namespace and claim.owner_uid == pod.uid:
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def after_own_claim(pod: Pod, happening: Happening) -> Hint:
    """The claim of one of the Pod's volumes came or changed."""
    claim = happening.new
    assert isinstance(claim, PersistentVolumeClaim)
    if claim.namespace != pod.namespace:
        return Hint.SKIP
    return Hint.QUEUE if any(each.claim_name == claim.name for each in claimed_volumes(pod)) else Hint.SKIP


def after_named_claim(pod: Pod, happening: Happening) -> Hint:
    """A claim that the Pod names came or changed; claims of ephemeral volumes are not asked about."""
    claim = happening.new
    assert isinstance(claim, PersistentVolumeClaim)
    if claim.namespace != pod.namespace:
        return Hint.SKIP
    return Hint.QUEUE if any(each.claim_name == claim.name for each in pod.volumes) else Hint.SKIP
