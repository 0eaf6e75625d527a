"""Claims written to the API server: allocation and reservation before a Pod is bound, and both taken back."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from podtrail_scheduler.framework.client import ApiError
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.pod import ExtendedClaim
from podtrail_scheduler.objects.resource import Allocation, ConsumerReference, ResourceClaim
from podtrail_scheduler.plugins.device_allocation.claims import ClaimTracker, without

from .conditions import BindingFailedError, is_overdue, is_ready
from .extended import manifest

FINALIZER = "resource.kubernetes.io/delete-protection"
ATTEMPTS = 5
LONGEST_REST = 5_000_000_000
"""Nanoseconds after which a wait for devices looks again even though nothing changed."""
PATIENCE = 1_000_000_000
"""Nanoseconds to wait for the watch to show what a conflict was about."""

UNTIL_SHOWN = 120_000_000_000
"""Nanoseconds to wait for the watch to show a claim that was created."""

_log = logging.getLogger(__name__)


class UnreservableError(Exception):
    """The claim could not be written; the text says why."""


class ClaimWriter:
    """Sends the requests, and tells `claims` what the API server has then."""

    def __init__(self, handle: Handle, claims: ClaimTracker) -> None:
        self._handle = handle
        self._claims = claims

    async def reserve(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> ResourceClaim:
        """Gives the claim its `allocation` (None: it has one) and reserves it for the Pod.

        When somebody else has changed the claim meanwhile, it is tried again on what the claim is then.

        Raises:
            UnreservableError: the API server refuses.
        """
        what = "add reservation" if allocation is None else "add allocation and reservation"
        for attempt in range(ATTEMPTS):
            _check(claim, allocation)
            try:
                if allocation is not None and FINALIZER not in claim.finalizers:
                    what_now = "add finalizer"
                    claim = await self._add_finalizer(claim)
                what_now = what
                return await self._write(claim, allocation, pod)
            except ApiError as refused:
                if refused.reason != "Conflict" or attempt == ATTEMPTS - 1:
                    raise UnreservableError(f"{what_now} to claim {claim.key}: {refused}") from refused
                claim = await self._changed(claim)
        raise AssertionError("the last attempt returns or raises")

    async def create(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        """Creates a claim for extended resources, and waits until the watch shows it.

        Raises:
            UnreservableError: the API server refuses.
        """
        try:
            created = await self._handle.client.create_object(manifest(claim, pod))
        except ApiError as refused:
            self._handle.measures.claim_creation("failure")
            raise UnreservableError(f"create claim for extended resources {pod.namespace}/: {refused}") from refused
        self._handle.measures.claim_creation("success")
        assert isinstance(created, ResourceClaim)
        clock, listers = self._handle.clock, self._handle.listers
        deadline = clock.now() + UNTIL_SHOWN
        while self._claims.get(created.key) is None and (left := deadline - clock.now()) > 0:
            changed = clock.signal()
            listers.subscribe(changed.set)
            try:
                await changed.wait(left)
            finally:
                listers.unsubscribe(changed.set)
        return created

    async def tell(self, pod: Pod, claim: ExtendedClaim) -> None:
        """Writes into the Pod's status which claim it has got.

        Raises:
            UnreservableError: there is nothing to write, or the API server refuses.
        """
        if not claim.mappings:
            raise UnreservableError(
                f"nil or empty request mappings, no update of pod {pod.key} ExtendedResourceClaimStatus"
            )
        try:
            await self._handle.client.patch_pod_extended_claim(pod, claim)
        except ApiError as refused:
            raise UnreservableError(f"update pod {pod.key} ExtendedResourceClaimStatus: {refused}") from refused

    async def delete(self, claim: ResourceClaim) -> None:
        """Deletes a claim that was made for extended resources; a failure is logged."""
        current = self._claims.get(claim.key) or claim
        try:
            if FINALIZER in current.finalizers:
                left = tuple(each for each in current.finalizers if each != FINALIZER)
                patch = {"metadata": {"finalizers": list(left)}}
                current = await self._handle.client.patch(replace(current, finalizers=left), patch)
            await self._handle.client.delete_object(current)
        except ApiError as refused:
            if refused.reason != "NotFound":
                _log.error("claim %s was not deleted: %s", claim.key, refused)

    async def ready(self, claims: Sequence[ResourceClaim], patience: int) -> None:
        """Returns when all conditions of the claims' devices are true.

        At most `patience` nanoseconds from now, or from when the devices were allocated.

        Raises:
            UnreservableError: time is up, or a device can't be made ready.
        """
        clock, listers = self._handle.clock, self._handle.listers
        deadline = clock.now() + patience
        while True:
            changed = clock.signal()
            listers.subscribe(changed.set)
            try:
                if self._are_ready(claims, patience):
                    return
                left = deadline - clock.now()
                if left <= 0:
                    raise UnreservableError("device binding timeout: context deadline exceeded")
                await changed.wait(min(left, LONGEST_REST))
            except BindingFailedError as failed:
                raise UnreservableError(str(failed)) from failed
            finally:
                listers.unsubscribe(changed.set)

    def _are_ready(self, claims: Sequence[ResourceClaim], patience: int) -> bool:
        for each in claims:
            claim = self._claims.get(each.key)
            if claim is None:
                raise UnreservableError(f'could not find ResourceClaim "{each.key}"')
            if not is_ready(claim):
                if is_overdue(claim, self._handle.clock.now(), patience):
                    raise UnreservableError(f"device binding timeout: claim={claim.name}")
                return False
        return True

    async def give_up(self, claim: ResourceClaim, pod: Pod) -> None:
        """The Pod uses the claim no longer; a failure is logged, the claim's controller cleans up in the end."""
        current = self._claims.get(claim.key)
        if current is not None and current.uid == claim.uid:
            left = without(current, pod)
            await self._patch_status(left, {"reservedFor": _references(left)})

    async def deallocate(self, claim: ResourceClaim) -> None:
        """The claim gives its devices back, so that it can get others; a failure is logged."""
        status = {"allocation": None, "reservedFor": None, "devices": None}
        await self._patch_status(replace(claim, allocation=None, reserved_for=()), status)

    async def _add_finalizer(self, claim: ResourceClaim) -> ResourceClaim:
        finalizers = (*claim.finalizers, FINALIZER)
        patch = {"metadata": {"finalizers": list(finalizers)}}
        written = await self._handle.client.patch(replace(claim, finalizers=finalizers), patch)
        self._claims.wrote(written)
        return written

    async def _write(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> ResourceClaim:
        reserved = replace(claim, reserved_for=(*claim.reserved_for, ConsumerReference(pod.uid, pod.name)))
        status: dict[str, Any] = {"reservedFor": _references(reserved)}
        if allocation is not None:
            now = self._handle.clock.now()
            json = {**allocation.json, "allocationTimestamp": _timestamp(now)}
            reserved = replace(reserved, allocation=replace(allocation, timestamp=now, json=json))
            status["allocation"] = json
        written = await self._handle.client.patch(reserved, {"status": status}, "status")
        self._claims.wrote(written)
        return written

    async def _patch_status(self, claim: ResourceClaim, status: dict[str, Any]) -> None:
        try:
            self._claims.wrote(await self._handle.client.patch(claim, {"status": status}, "status"))
        except ApiError as refused:
            _log.error("status of claim %s was not written: %s", claim.key, refused)

    async def _changed(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim in a newer version, if the watch shows one soon."""
        clock, listers = self._handle.clock, self._handle.listers
        deadline = clock.now() + PATIENCE
        while True:
            changed = clock.signal()
            listers.subscribe(changed.set)
            try:
                current = self._claims.get(claim.key)
                if current is None or current.uid != claim.uid:
                    raise UnreservableError(f"claim {claim.key} got deleted in the meantime")
                left = deadline - clock.now()
                if current.resource_version != claim.resource_version or left <= 0:
                    return current
                await changed.wait(left)
            finally:
                listers.unsubscribe(changed.set)


def _check(claim: ResourceClaim, allocation: Allocation | None) -> None:
    if claim.deletion_timestamp is not None:
        raise UnreservableError(f"claim {claim.key} got deleted in the meantime")
    if allocation is not None and claim.allocation is not None:
        raise UnreservableError(f"claim {claim.key} got allocated elsewhere in the meantime")
    if allocation is None and claim.allocation is None:
        raise UnreservableError(f"claim {claim.key} got deallocated elsewhere in the meantime")


def _references(claim: ResourceClaim) -> list[dict[str, str]]:
    return [
        {
            **({"apiGroup": each.api_group} if each.api_group else {}),
            "resource": each.resource,
            "name": each.name,
            "uid": each.uid,
        }
        for each in claim.reserved_for
    ]


def _timestamp(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
