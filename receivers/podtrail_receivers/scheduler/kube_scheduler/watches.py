"""Watches of Pods, Nodes and Events at the API server, each a reflector of the Kubernetes client."""

import asyncio
import time
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from podtrail import __version__
from podtrail.component import Context, StartError
from podtrail.reconstruction import Session
from podtrail_receivers.kubernetes_api import KubernetesConfig
from podtrail_receivers.scheduler.kube_scheduler.config import WatchConfig

if TYPE_CHECKING:
    from podtrail_kubernetes.reflector import Change, Reflector
    from podtrail_kubernetes.rest_client import RestClient

_PATHS: Final = {
    "pods": "/api/v1/pods",
    "nodes": "/api/v1/nodes",
    "events": "/apis/events.k8s.io/v1/events",
}


class WatchSource:
    """Runs the watches that are configured."""

    def __init__(self, config: WatchConfig, kubernetes: KubernetesConfig, context: Context) -> None:
        self.listed = {name: asyncio.Event() for name in _PATHS if getattr(config, name)}
        """Set, of each resource, when everything there was at the start is told."""
        self._kubernetes = kubernetes
        self._rng = Random(context.rng.random())  # noqa: S311 - jitter
        self._client: RestClient | None = None
        self.reflectors: dict[str, Reflector] = {}

    async def open(self) -> None:
        """Read how the API server is reached.

        Raises:
            StartError: that can't be known.
        """
        from podtrail_kubernetes.errors import RestConfigError
        from podtrail_kubernetes.reflector import ListWatch, Reflector
        from podtrail_kubernetes.rest_client import RestClient, user_agent

        try:
            self._client = await RestClient.open(self._kubernetes.path(), agent=user_agent("podtrail", __version__))
        except RestConfigError as error:
            raise StartError(f"kube_scheduler::kubernetes: {error}") from error
        for name in self.listed:
            self.reflectors[name] = Reflector(self._client, ListWatch(_PATHS[name]), self._rng)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    async def run(self, name: str, session: Session, room: asyncio.Event) -> None:
        """Give `session` what one watch tells, when there is room, until cancelled."""
        await self.reflectors[name].run(partial(self._take, name, session, room))

    async def _take(self, name: str, session: Session, room: asyncio.Event, change: "Change") -> None:
        from podtrail_kubernetes.reflector import Listed

        await room.wait()
        if isinstance(change, Listed):
            session.listed({"items": change.objects}, time.time_ns())
            self.listed[name].set()
        else:
            kind = type(change).__name__.upper()
            session.watched({"type": kind, "object": change.object}, time.time_ns())
