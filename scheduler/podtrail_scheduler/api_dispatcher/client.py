"""A client whose writes go through the dispatcher: what SchedulerAsyncAPICalls changes for all who use it."""

from collections.abc import Mapping
from typing import Any

from podtrail_scheduler.framework.client import DISRUPTION_TARGET, Client, Kind, PodCondition
from podtrail_scheduler.objects import ApiObject, Pod
from podtrail_scheduler.objects.pod import ExtendedClaim

from .dispatcher import APIDispatcher


class DispatchingClient:
    """Bindings are waited for, status patches are not; the rest is as in the client beneath."""

    def __init__(self, client: Client, dispatcher: APIDispatcher) -> None:
        self._client = client
        self._dispatcher = dispatcher

    def get_pod(self, uid: str) -> Pod | None:
        """The Pod as the watch last showed it."""
        return self._client.get_pod(uid)

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        """Binds; calls that wait for the Pod give way.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        await self._dispatcher.bind(pod, node_name, annotations)

    async def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        """Queues the patch and returns at once, but what must precede a deletion is waited for.

        Raises:
            ApiError: one that is waited for fails.
        """
        if condition is not None and condition.type == DISRUPTION_TARGET:
            await self._client.patch_pod_status(pod, condition, nominated_node)
        else:
            self._dispatcher.patch_pod_status(pod, condition, nominated_node)

    async def remove_pod_condition(self, pod: Pod, condition: str) -> None:
        """Removes a condition.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        await self._client.remove_pod_condition(pod, condition)

    async def delete_pod(self, pod: Pod) -> None:
        """Has a Pod terminate.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        await self._client.delete_pod(pod)

    async def patch_pod_extended_claim(self, pod: Pod, claim: ExtendedClaim) -> None:
        """Writes which claim was made for extended resources.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        await self._client.patch_pod_extended_claim(pod, claim)

    async def create_object(self, manifest: Mapping[str, Any]) -> ApiObject:
        """Creates an object that is no Pod.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        return await self._client.create_object(manifest)

    async def delete_object(self, gone: ApiObject) -> None:
        """Deletes an object that is no Pod.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        await self._client.delete_object(gone)

    async def patch(self, changed: Kind, patch: Mapping[str, Any], subresource: str = "") -> Kind:
        """Merges `patch` into an object that is no Pod.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        return await self._client.patch(changed, patch, subresource)
