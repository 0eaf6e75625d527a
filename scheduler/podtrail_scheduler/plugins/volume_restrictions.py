"""VolumeRestrictions: disks that only one Pod may use, and claims that are ReadWriteOncePod."""

from collections.abc import Iterable, Mapping, Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Happening, Hint, Registration
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status, unresolvable, unschedulable
from podtrail_scheduler.objects import PersistentVolumeClaim, Pod, Volume

from .shared.volume_claims import after_named_claim, claim_not_found

DISK_IN_USE = unschedulable("node(s) had no available disk")
CLAIM_IN_USE = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
READ_WRITE_ONCE_POD = "ReadWriteOncePod"

_EXCLUSIVE_KINDS = frozenset(("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"))


class _ExclusiveClaims:
    """The Pod's ReadWriteOncePod claims, and how many uses of them by others there are."""

    __slots__ = ("names", "used")

    def __init__(self, names: frozenset[str], used: int) -> None:
        self.names = names
        self.used = used

    def clone(self) -> "_ExclusiveClaims":
        return _ExclusiveClaims(self.names, self.used)

    def count(self, other: Pod, sign: int) -> None:
        self.used += sign * sum(volume.claim_name in self.names for volume in other.volumes if volume.claim_name)


class VolumeRestrictions:
    """Compares inline disks on the node, and looks for uses of exclusive claims anywhere."""

    name = "VolumeRestrictions"
    in_tree = True

    def __init__(self, handle: Handle, args: None = None) -> None:  # noqa: ARG002
        self._listers = handle.listers

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips when the Pod has no such disk and nobody uses its exclusive claims."""
        exclusive = set()
        for volume in pod.volumes:
            if not volume.claim_name:
                continue
            claim = self._listers.get(PersistentVolumeClaim, f"{pod.namespace}/{volume.claim_name}")
            if claim is None:
                return unresolvable(claim_not_found(volume.claim_name))
            if READ_WRITE_ONCE_POD in claim.access_modes:
                exclusive.add(claim.name)
        keys = [f"{pod.namespace}/{name}" for name in exclusive]
        used = sum(any(key in node.claims for node in nodes) for key in keys)
        if not used and not any(volume.kind in _EXCLUSIVE_KINDS for volume in pod.volumes):
            return SKIP
        state.write(_ExclusiveClaims(frozenset(exclusive), used))
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status | None:  # noqa: ARG002
        """Counts the uses of a Pod that is tried on a node."""
        state.read(_ExclusiveClaims).count(added, 1)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status | None:  # noqa: ARG002
        """Counts out the uses of a Pod that is taken off a node."""
        state.read(_ExclusiveClaims).count(removed, -1)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Refuses a node where a Pod has the disk, and every node while a claim is in use."""
        if _conflicts(pod, node.pods.values()):
            return DISK_IN_USE
        return CLAIM_IN_USE if state.read(_ExclusiveClaims).used > 0 else None

    def events_to_register(self) -> Sequence[Registration]:
        """Pods that let go of what the Pod wants, nodes that come, and the Pod's claims."""
        return (
            Registration(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE), _after_pod),
            Registration(ClusterEvent(EventResource.NODE, ActionType.ADD)),
            Registration(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_named_claim),
        )


def _after_pod(pod: Pod, happening: Happening) -> Hint:
    gone = happening.old
    assert isinstance(gone, Pod)
    if gone.namespace != pod.namespace:
        return Hint.SKIP
    claims = {volume.claim_name for volume in pod.volumes if volume.claim_name}
    hopeful = _conflicts(pod, (gone,)) or any(volume.claim_name in claims for volume in gone.volumes)
    return Hint.QUEUE if hopeful else Hint.SKIP


def _conflicts(pod: Pod, others: Iterable[Pod]) -> bool:
    disks = [volume for volume in pod.volumes if volume.kind in _EXCLUSIVE_KINDS]
    return bool(disks) and any(
        _conflict(disk, volume) for other in others for volume in other.volumes for disk in disks
    )


def _conflict(one: Volume, other: Volume) -> bool:
    if one.kind != other.kind:
        return False
    mine, theirs = one.source, other.source
    if one.kind == "awsElasticBlockStore":
        return mine.get("volumeID") == theirs.get("volumeID")
    if mine.get("readOnly") and theirs.get("readOnly"):
        return False
    if one.kind == "gcePersistentDisk":
        return mine.get("pdName") == theirs.get("pdName")
    if one.kind == "iscsi":
        return mine.get("iqn") == theirs.get("iqn")
    same = all(mine.get(part) == theirs.get(part) for part in ("pool", "image"))
    return same and not _monitors(mine).isdisjoint(_monitors(theirs))


def _monitors(source: Mapping[str, object]) -> frozenset[str]:
    monitors = source.get("monitors")
    return frozenset(monitors) if isinstance(monitors, (list, tuple)) else frozenset()
