"""The plugin VolumeBinding."""

from collections.abc import Sequence

from podtrail_scheduler.configuration.args import VolumeBindingArgs
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Registration
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status, error, unresolvable
from podtrail_scheduler.objects import PersistentVolumeClaim, Pod
from podtrail_scheduler.objects.durations import SECOND
from podtrail_scheduler.plugins.shared.volume_claims import (
    after_own_claim,
    claim_not_found,
    claimed_volumes,
    not_made_for,
)

from .binder import PodClaims, PodVolumes, Unanswerable, VolumeBinder
from .binding import VolumeWriter, assume, revert
from .hints import after_csi_driver, after_csi_node, after_csi_storage_capacity, after_storage_class
from .scoring import storage_score

UNBOUND_IMMEDIATE = unresolvable("pod has unbound immediate PersistentVolumeClaims")


class _Volumes:
    """An attempt's claims and what they need on each node that was asked about."""

    __slots__ = ("all_bound", "by_node", "claims")

    def __init__(self, claims: PodClaims | None) -> None:
        """`claims` None: the Pod has none, and Filter is skipped."""
        self.claims = claims
        self.by_node: dict[str, PodVolumes] = {}
        self.all_bound = claims is None


class VolumeBinding:
    """Filters and scores by claims, and binds them before the Pod."""

    name = "VolumeBinding"
    in_tree = True

    def __init__(self, handle: Handle, args: VolumeBindingArgs | None = None) -> None:
        args = args or VolumeBindingArgs()
        self._listers = handle.listers
        self._shape = args.shape
        self._binder = VolumeBinder(handle.listers)
        self._writer = VolumeWriter(handle, self._binder, args.bind_timeout_seconds * SECOND)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:  # noqa: ARG002
        """Skips without claims; refuses Pods whose claims are missing, going, lost or to be bound by themselves."""
        trouble = self._trouble(pod)
        if trouble:
            return unresolvable(trouble)
        if not any(True for _ in claimed_volumes(pod)):
            state.write(_Volumes(None))
            return SKIP
        try:
            claims = self._binder.claims_of(pod)
        except Unanswerable as unanswerable:
            return error(str(unanswerable))
        if claims.immediate:
            return UNBOUND_IMMEDIATE
        state.write(_Volumes(claims))
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:  # noqa: ARG002
        """Refuses a node that the volumes do not reach, or where none can be had."""
        volumes = state.read(_Volumes)
        assert volumes.claims is not None
        try:
            answer = self._binder.on_node(volumes.claims, node.node)
        except Unanswerable as unanswerable:
            return error(str(unanswerable))
        if isinstance(answer, PodVolumes):
            volumes.by_node[node.name] = answer
            return None
        return unresolvable(*answer)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:  # noqa: ARG002
        """Skips without a shape to score by, and for Pods without claims."""
        return None if self._shape and state.read(_Volumes).claims is not None else SKIP

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:  # noqa: ARG002
        """The share of the storage that is used, through the shape."""
        volumes = state.read(_Volumes).by_node.get(node.name)
        return 0 if volumes is None else storage_score(volumes, self._shape)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Assumes that the volumes are bound as found for the node."""
        volumes = state.read(_Volumes)
        wanted = volumes.by_node.get(node_name)
        volumes.all_bound = wanted is None or self._binder.all_bound(pod)
        if wanted is None or volumes.all_bound:
            return None
        try:
            volumes.by_node[node_name] = assume(self._binder, wanted, node_name)
        except Unanswerable as unanswerable:
            return error(str(unanswerable))
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:  # noqa: ARG002
        """Forgets what was assumed and not yet written."""
        volumes = state.read(_Volumes).by_node.get(node_name)
        if volumes is not None:
            revert(self._binder, volumes)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:  # noqa: ARG002
        """Skips when there is nothing to bind."""
        return SKIP if state.read(_Volumes).all_bound else None

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Writes the volumes and claims, and waits until they are bound."""
        volumes = state.read(_Volumes)
        if volumes.all_bound:
            return None
        written, trouble = await self._writer.write(volumes.by_node[node_name])
        volumes.by_node[node_name] = written
        trouble = trouble or await self._writer.wait(pod, node_name, written)
        return error(trouble) if trouble else None

    def events_to_register(self) -> Sequence[Registration]:
        """Whatever says where volumes are or can be made."""
        changed = ActionType.ADD | ActionType.UPDATE
        return (
            Registration(ClusterEvent(EventResource.STORAGE_CLASS, changed), after_storage_class),
            Registration(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, changed), after_own_claim),
            Registration(ClusterEvent(EventResource.PERSISTENT_VOLUME, changed)),
            Registration(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
            Registration(ClusterEvent(EventResource.CSI_NODE, changed), after_csi_node),
            Registration(ClusterEvent(EventResource.CSI_DRIVER, ActionType.UPDATE), after_csi_driver),
            Registration(ClusterEvent(EventResource.CSI_STORAGE_CAPACITY, changed), after_csi_storage_capacity),
        )

    def _trouble(self, pod: Pod) -> str:
        for volume, name in claimed_volumes(pod):
            claim = self._listers.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")
            if claim is None:
                if volume.ephemeral:
                    return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
                return claim_not_found(name)
            if claim.phase == "Lost":
                return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume_name}"'
            if claim.deletion_timestamp is not None:
                return f'persistentvolumeclaim "{name}" is being deleted'
            if volume.ephemeral and (reason := not_made_for(pod, claim)):
                return reason
        return ""
