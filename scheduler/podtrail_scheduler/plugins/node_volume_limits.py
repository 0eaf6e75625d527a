"""NodeVolumeLimits: no more volumes of a CSI driver on a node than the node can attach."""

from collections import Counter
from collections.abc import Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Happening, Hint, Registration
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status, error, unresolvable, unschedulable
from podtrail_scheduler.objects import (
    CsiDriver,
    CsiNode,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)

from .shared.csi_migration import INLINE_KINDS, CsiVolume, csi_volume_of, driver_of_provisioner, inline_csi_volume
from .shared.volume_claims import after_own_claim, claim_not_found, claimed_volumes, class_of, not_made_for

TOO_MANY = unschedulable("node(s) exceed max volume count")


class NodeVolumeLimits:
    """Counts the volumes of the Pods on a node, and those attached to it, by driver."""

    name = "NodeVolumeLimits"
    in_tree = True

    def __init__(self, handle: Handle, args: None = None) -> None:  # noqa: ARG002
        self._listers = handle.listers
        self._attachments_version = -1
        self._attachments: dict[str, list[VolumeAttachment]] = {}

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:  # noqa: ARG002
        """Skips without volumes that a driver could attach."""
        return None if _attachable(pod) else SKIP

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:  # noqa: ARG002
        """Refuses a node with too little left, or without a driver that says it must be there."""
        csi_node = self._listers.get(CsiNode, node.name)
        new = self._volumes(pod, csi_node, new=True)
        if isinstance(new, Status):
            return new
        if not new:
            return None
        for volume in sorted(new):
            if self._missing(volume.driver, csi_node):
                return unschedulable(f"{volume.driver} CSI driver is not installed on the node")
        limits = _limits(csi_node)
        if not limits:
            return None
        there: set[CsiVolume] = set()
        for other in node.pods.values():
            volumes = self._volumes(other, csi_node, new=False)
            if isinstance(volumes, Status):
                return volumes
            there |= volumes
        taken = Counter(each.driver for each in there | self._attached(node.name))
        added = Counter(each.driver for each in new - there)
        exceeded = any(driver in limits and taken[driver] + count > limits[driver] for driver, count in added.items())
        return TOO_MANY if exceeded else None

    def events_to_register(self) -> Sequence[Registration]:
        """Nodes with (more) room, Pods with volumes that go, the Pod's claims, and volumes that are detached."""
        return (
            Registration(ClusterEvent(EventResource.CSI_NODE, ActionType.ADD)),
            Registration(ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE), _after_csi_node),
            Registration(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE), _after_pod),
            Registration(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_own_claim),
            Registration(ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE), _after_attachment),
        )

    def _volumes(self, pod: Pod, csi_node: CsiNode | None, *, new: bool) -> Status | set[CsiVolume]:
        """The Pod's volumes as their drivers know them; a `new` Pod's claims must all be there."""
        volumes: set[CsiVolume] = set()
        if csi_node is not None:
            inline = (inline_csi_volume(each.kind, each.source) for each in pod.volumes if each.kind)
            volumes.update(each for each in inline if each is not None)
        for volume, claim_name in claimed_volumes(pod):
            claim = self._listers.get(PersistentVolumeClaim, f"{pod.namespace}/{claim_name}")
            if claim is None:
                if new:
                    where = f"looking up PVC {pod.namespace}/{claim_name}"
                    return unresolvable(f"{where}: {claim_not_found(claim_name)}")
                continue
            if volume.ephemeral and (reason := not_made_for(pod, claim)):
                return error(reason)
            found = self._volume_of(claim, csi_node)
            if found is not None and found.driver and found.handle:
                volumes.add(found)
        return volumes

    def _volume_of(self, claim: PersistentVolumeClaim, csi_node: CsiNode | None) -> CsiVolume | None:
        volume = self._listers.get(PersistentVolume, claim.volume_name) if claim.volume_name else None
        if volume is not None:
            return csi_volume_of(volume) if volume.kind == "csi" or csi_node is not None else None
        storage_class = self._listers.get(StorageClass, class_of(claim))
        if storage_class is None:
            return None
        driver = driver_of_provisioner(storage_class.provisioner)
        if driver != storage_class.provisioner and csi_node is None:
            return None
        return CsiVolume(driver, f"not yet provisioned for {claim.key}")

    def _missing(self, driver: str, csi_node: CsiNode | None) -> bool:
        """Whether the driver wants to be on the node first and is not."""
        known = self._listers.get(CsiDriver, driver)
        if known is None or not known.prevent_pod_scheduling_if_missing:
            return False
        return csi_node is None or all(each.name != driver for each in csi_node.drivers)

    def _attached(self, node_name: str) -> set[CsiVolume]:
        version = self._listers.version(VolumeAttachment)
        if version != self._attachments_version:
            self._attachments_version, self._attachments = version, {}
            for each in self._listers.all(VolumeAttachment):
                self._attachments.setdefault(each.node_name, []).append(each)
        attached = set()
        for each in self._attachments.get(node_name, ()):
            volume = self._listers.get(PersistentVolume, each.volume_name)
            if each.attacher and volume is not None and volume.kind == "csi":
                attached.add(CsiVolume(each.attacher, str(volume.source.get("volumeHandle", ""))))
        return attached


def _attachable(pod: Pod) -> bool:
    return any(each.claim_name or each.ephemeral or each.kind in INLINE_KINDS for each in pod.volumes)


def _limits(csi_node: CsiNode | None) -> dict[str, int]:
    if csi_node is None:
        return {}
    return {each.name: each.allocatable for each in csi_node.drivers if each.allocatable is not None}


def _after_csi_node(pod: Pod, happening: Happening) -> Hint:  # noqa: ARG001
    old, new = happening.old, happening.new
    assert isinstance(old, CsiNode)
    assert isinstance(new, CsiNode)
    before = _limits(old)
    return Hint.QUEUE if any(limit > before.get(name, 0) for name, limit in _limits(new).items()) else Hint.SKIP


def _after_pod(pod: Pod, happening: Happening) -> Hint:  # noqa: ARG001
    gone = happening.old
    assert isinstance(gone, Pod)
    return Hint.QUEUE if (gone.node_name or gone.nominated_node_name) and _attachable(gone) else Hint.SKIP


def _after_attachment(pod: Pod, happening: Happening) -> Hint:
    attachment = happening.old
    assert isinstance(attachment, VolumeAttachment)
    for volume in pod.volumes:
        if volume.claim_name:
            return Hint.QUEUE
        inline = inline_csi_volume(volume.kind, volume.source) if volume.kind in INLINE_KINDS else None
        if inline is not None and inline.driver == attachment.attacher:
            return Hint.QUEUE
    return Hint.SKIP
