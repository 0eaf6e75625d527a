"""The handle of plugins of others: what they ask of the scheduler from their threads is done on its own."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from weakref import WeakMethod

from podtrail_scheduler.framework.client import Client, PodCondition
from podtrail_scheduler.framework.client import Kind as Written
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.listers import Kind, Listers, Made
from podtrail_scheduler.objects import ApiObject, Pod
from podtrail_scheduler.objects.pod import ExtendedClaim

from .clock import AsyncioClock
from .plugin_threads import PluginThreads

Answer = TypeVar("Answer")


def handle_of_others(handle: Handle, threads: PluginThreads) -> Handle:
    """As `handle`, for all threads but its own."""

    def event(regarding: ApiObject, related: ApiObject | None, *about: str) -> None:
        threads.loop.call_soon_threadsafe(partial(handle.event, regarding, related, *about))

    def activate(pods: Sequence[Pod]) -> None:
        threads.loop.call_soon_threadsafe(handle.activate, pods)

    return replace(
        handle,
        clock=AsyncioClock(threads.coroutines),
        client=_Client(handle.client, threads.loop),
        listers=_Listers(handle.listers, threads.coroutines),
        event=event,
        activate=activate,
    )


class _Client:
    """Implements podtrail_scheduler.framework.client.Client."""

    def __init__(self, client: Client, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop

    def get_pod(self, uid: str) -> Pod | None:
        """The Pod as the watch last showed it."""
        return self._client.get_pod(uid)

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        """Binds the Pod to the node. Raises ApiError."""
        await self._there(self._client.bind(pod, node_name, annotations))

    async def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        """Writes a condition and a nomination. Raises ApiError."""
        await self._there(self._client.patch_pod_status(pod, condition, nominated_node))

    async def remove_pod_condition(self, pod: Pod, condition: str) -> None:
        """Removes a condition. Raises ApiError."""
        await self._there(self._client.remove_pod_condition(pod, condition))

    async def delete_pod(self, pod: Pod) -> None:
        """Has a Pod terminate. Raises ApiError."""
        await self._there(self._client.delete_pod(pod))

    async def patch_pod_extended_claim(self, pod: Pod, claim: ExtendedClaim) -> None:
        """Writes which claim was made for a Pod's extended resources. Raises ApiError."""
        await self._there(self._client.patch_pod_extended_claim(pod, claim))

    async def create_object(self, manifest: Mapping[str, Any]) -> ApiObject:
        """Creates an object. Raises ApiError."""
        return await self._there(self._client.create_object(manifest))

    async def delete_object(self, gone: ApiObject) -> None:
        """Deletes an object. Raises ApiError."""
        await self._there(self._client.delete_object(gone))

    async def patch(self, changed: Written, patch: Mapping[str, Any], subresource: str = "") -> Written:
        """Merges `patch` into an object. Raises ApiError."""
        return await self._there(self._client.patch(changed, patch, subresource))

    async def _there(self, request: Coroutine[Any, Any, Answer]) -> Answer:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(request, self._loop))


class _Listers(Listers):
    """Changes while it is read; who subscribed is told on the loop of the coroutines of plugins."""

    def __init__(self, listers: Listers, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._listers = listers
        self._loop = loop
        own = WeakMethod(self._pass_on)

        def pass_on() -> None:
            # Whoever was given this may be gone: another configuration has made others.
            if (known := own()) is not None:
                known()
            else:
                listers.unsubscribe(pass_on)

        listers.subscribe(pass_on)

    def get(self, kind: type[Kind], key: str) -> Kind | None:
        """The object as the watches last showed it, None when there is none."""
        return self._listers.get(kind, key)

    def all(self, kind: type[Kind]) -> Iterable[Kind]:
        """All objects of that type at this moment."""
        return list(self._listers.all(kind))

    def version(self, kind: type[Kind]) -> int:
        """How often objects of that type have changed."""
        return self._listers.version(kind)

    def shared(self, make: Callable[[Listers], Made]) -> Made:
        """What plugins keep together beside the objects."""
        return self._listers.shared(make)

    def view(self) -> Listers:
        """Itself: what is put here is nobody else's."""
        return self

    def _pass_on(self) -> None:
        subscribers: list[Callable[[], None]] = list(self._subscribers)
        for each in subscribers:
            self._loop.call_soon_threadsafe(each)
