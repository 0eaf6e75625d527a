"""Binding a Pod's volumes: assumed at Reserve, written and waited for in PreBind."""

from dataclasses import replace
from typing import Any

from podtrail_scheduler.framework.client import ApiError
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.objects import CsiNode, Node, PersistentVolume, PersistentVolumeClaim, Pod
from podtrail_scheduler.plugins.shared.csi_migration import node_affinity_of
from podtrail_scheduler.plugins.shared.volume_claims import claim_not_found, volume_not_found

from .binder import SELECTED_NODE, PodVolumes, Provision, StaticBinding, Unanswerable, VolumeBinder, fully_bound
from .matching import is_bound_to, reaches

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
LONGEST_REST = 1_000_000_000
"""Nanoseconds after which the wait looks again even though no volume changed: the Pod may be gone."""


def assume(binder: VolumeBinder, volumes: PodVolumes, node_name: str) -> PodVolumes:
    """Notes the volumes as bound and the claims as meant for the node; what it then is.

    Raises:
        Unanswerable: a claim or volume has gone meanwhile.
    """
    assumed = PodVolumes()
    for claim, volume in volumes.bindings:
        bound = _bound(volume, claim)
        trouble = binder.volumes.assume(bound) if bound != volume else ""
        if trouble:
            revert(binder, assumed)
            raise Unanswerable(trouble)
        assumed = replace(assumed, bindings=(*assumed.bindings, StaticBinding(claim, bound)))
    for claim, capacity in volumes.provisions:
        selected = replace(claim, annotations={**claim.annotations, SELECTED_NODE: node_name})
        trouble = binder.claims.assume(selected)
        if trouble:
            revert(binder, assumed)
            raise Unanswerable(trouble)
        assumed = replace(assumed, provisions=(*assumed.provisions, Provision(selected, capacity)))
    return assumed


def revert(binder: VolumeBinder, volumes: PodVolumes) -> None:
    """Forgets the bindings that `assume` noted."""
    for binding in volumes.bindings:
        binder.volumes.restore(binding.volume)
    for provision in volumes.provisions:
        binder.claims.restore(provision.claim)


class VolumeWriter:
    """Writes what was assumed to the API server, and waits until the volume controllers have done their part."""

    def __init__(self, handle: Handle, binder: VolumeBinder, timeout: int) -> None:
        """`timeout` in nanoseconds."""
        self._handle = handle
        self._binder = binder
        self._timeout = timeout

    async def write(self, volumes: PodVolumes) -> tuple[PodVolumes, str]:
        """The volumes and claims as far as they were written, and why not all of them were (empty: they were)."""
        client = self._handle.client
        bindings, provisions = list(volumes.bindings), list(volumes.provisions)
        trouble = ""
        try:
            for index, (claim, volume) in enumerate(volumes.bindings):
                bindings[index] = StaticBinding(claim, await client.patch(volume, _volume_patch(volume, claim)))
            for index, (claim, capacity) in enumerate(volumes.provisions):
                patch = {"metadata": {"annotations": {SELECTED_NODE: claim.annotations[SELECTED_NODE]}}}
                provisions[index] = Provision(await client.patch(claim, patch), capacity)
        except ApiError as refused:
            trouble = str(refused)
        return PodVolumes(tuple(bindings), tuple(provisions)), trouble

    async def wait(self, pod: Pod, node_name: str, written: PodVolumes) -> str:
        """Returns when all is bound, or with the reason why that will not be."""
        clock, listers = self._handle.clock, self._handle.listers
        deadline = clock.now() + self._timeout
        while True:
            changed = clock.signal()
            listers.subscribe(changed.set)
            try:
                if self._done(pod, node_name, written):
                    return ""
                left = deadline - clock.now()
                if left <= 0:
                    return "binding volumes: context deadline exceeded"
                await changed.wait(min(left, LONGEST_REST))
            except Unanswerable as trouble:
                return f"binding volumes: {trouble}"
            finally:
                listers.unsubscribe(changed.set)

    def _done(self, pod: Pod, node_name: str, volumes: PodVolumes) -> bool:
        node = next((each.node for each in self._handle.nodes() if each.name == node_name), None)
        if node is None:
            raise Unanswerable(f'failed to get node "{node_name}": node "{node_name}" not found')
        if self._handle.client.get_pod(pod.uid) is None:
            raise Unanswerable(f'pod does not exist any more: pod "{pod.name}" not found')
        return all(self._is_bound(each, node) for each in volumes.bindings) and all(
            self._is_provisioned(each.claim, node) for each in volumes.provisions
        )

    def _is_bound(self, binding: StaticBinding, node: Node) -> bool:
        volume = self._binder.volumes.shown(binding.volume.name)
        if volume is None:
            raise Unanswerable(f"failed to check binding: {volume_not_found(binding.volume.name)}")
        claim = self._binder.claims.shown(binding.claim.key)
        if claim is None:
            raise Unanswerable(f"failed to check binding: {claim_not_found(binding.claim.name)}")
        if _is_newer(binding.volume, volume):
            return False
        self._check_reach(volume, node)
        if volume.claim_ref is None or not volume.claim_ref[2]:
            raise Unanswerable(f'ClaimRef got reset for pv "{volume.name}"')
        return fully_bound(claim)

    def _is_provisioned(self, written: PersistentVolumeClaim, node: Node) -> bool:
        claim = self._binder.claims.shown(written.key)
        if claim is None:
            raise Unanswerable(f"failed to check provisioning pvc: {claim_not_found(written.name)}")
        if _is_newer(written, claim):
            return False
        if not claim.annotations:
            raise Unanswerable(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.annotations.get(SELECTED_NODE) != node.name:
            raise Unanswerable(f'provisioning failed for PVC "{claim.name}"')
        if claim.volume_name:
            volume = self._binder.volumes.shown(claim.volume_name)
            if volume is None:
                return False
            self._check_reach(volume, node)
        return fully_bound(claim)

    def _check_reach(self, volume: PersistentVolume, node: Node) -> None:
        csi_node = self._handle.listers.get(CsiNode, node.name)
        if not reaches(node_affinity_of(volume, csi_node), node):
            raise Unanswerable(
                f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": no matching NodeSelectorTerms'
            )


def _bound(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    annotations = volume.annotations
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in annotations:
        annotations = {**annotations, BOUND_BY_CONTROLLER: "yes"}
    return replace(volume, claim_ref=(claim.namespace, claim.name, claim.uid), annotations=annotations)


def _volume_patch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> dict[str, Any]:
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.resource_version,
    }
    patch: dict[str, Any] = {"spec": {"claimRef": reference}}
    if BOUND_BY_CONTROLLER in volume.annotations:
        patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: volume.annotations[BOUND_BY_CONTROLLER]}}
    return patch


def _is_newer(written: PersistentVolume | PersistentVolumeClaim, shown: object) -> bool:
    """Whether the watch has not yet shown what was written."""
    assert isinstance(shown, (PersistentVolume, PersistentVolumeClaim))
    return int(written.resource_version or 0) > int(shown.resource_version or 0)
