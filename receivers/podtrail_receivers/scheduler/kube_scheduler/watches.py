"""Watches of Pods, Nodes and Events at the API server, each a reflector of the Kubernetes client."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from podtrail import __version__
from podtrail.component import Context, GatedPod, StartError
from podtrail.reconstruction import Census, Heard, WatchReader
from podtrail_receivers.scheduler.kube_scheduler.config import KubernetesConfig, WatchConfig

if TYPE_CHECKING:
    from podtrail_scheduler.cluster.kubernetes.connection import Connection
    from podtrail_scheduler.cluster.kubernetes.reflector import Change, Reflector

Take = Callable[[Sequence[Heard]], Awaitable[None]]

_PATHS: Final = {
    "pods": "/api/v1/pods",
    "nodes": "/api/v1/nodes",
    "events": "/apis/events.k8s.io/v1/events",
}


class WatchSource:
    """Runs the watches that are configured."""

    def __init__(self, config: WatchConfig, kubernetes: KubernetesConfig, context: Context) -> None:
        self._resources = [name for name in _PATHS if getattr(config, name)]
        self.censuses = {name: Census() for name in self._resources}
        self._kubernetes = kubernetes
        self._tell = context.tell
        self._rng = Random(context.rng.random())  # noqa: S311 - jitter
        self._connection: Connection | None = None
        self.reflectors: dict[str, Reflector] = {}
        self._gated: dict[str, GatedPod] = {}

    async def open(self) -> None:
        """Read how the API server is reached. StartError when that can't be known."""
        from podtrail_scheduler.cluster.kubernetes.connection import Connection, user_agent
        from podtrail_scheduler.cluster.kubernetes.errors import ConnectionSettingsError
        from podtrail_scheduler.cluster.kubernetes.reflector import Reflector, Resource

        try:
            self._connection = await Connection.open(self._kubernetes.path(), agent=user_agent("podtrail", __version__))
        except ConnectionSettingsError as error:
            raise StartError(f"kube_scheduler::kubernetes: {error}") from error
        for name in self._resources:
            self.reflectors[name] = Reflector(self._connection, Resource(_PATHS[name]), self._rng)

    async def close(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            await self._connection.close()

    async def run(self, take: Take) -> None:
        """Give `take` what the watches tell, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name, reflector in self.reflectors.items():
                reader = WatchReader(self.censuses[name])
                group.create_task(reflector.run(partial(self._take, reader, take)))

    async def _take(self, reader: WatchReader, take: Take, change: "Change") -> None:
        from podtrail_scheduler.cluster.kubernetes.reflector import Listed

        told: Mapping[str, Any]
        if isinstance(change, Listed):
            told = {"list": {"items": change.objects}}
            for each in change.objects:
                self._note_gates(each, gone=False)
        else:
            kind = type(change).__name__.upper()
            told = {"event": {"type": kind, "object": change.object}}
            self._note_gates(change.object, gone=kind == "DELETED")
        heard = reader.take(told, time.time_ns())
        if heard:
            await take(heard)

    def _note_gates(self, each: Mapping[str, Any], *, gone: bool) -> None:
        """Tell of Pods that scheduling gates hold back: kube-scheduler has not tried them and logs nothing of them."""
        if each.get("kind", "Pod") != "Pod":
            return
        metadata = each.get("metadata", {})
        uid = metadata.get("uid", "")
        gates = (
            () if gone else tuple(gate.get("name", "") for gate in each.get("spec", {}).get("schedulingGates") or ())
        )
        known = self._gated.get(uid)
        if known is None and not gates:
            return
        since = known.since if known is not None else time.time_ns()
        fact = GatedPod(uid, metadata.get("namespace", ""), metadata.get("name", ""), gates, since)
        if fact == known:
            return
        if gates:
            self._gated[uid] = fact
        else:
            self._gated.pop(uid, None)
        self._tell(fact)
