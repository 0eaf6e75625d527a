"""Watches of Pods, Nodes and Events at the API server, each a reflector of the Kubernetes client."""

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from podtrail import __version__
from podtrail.component import Context, GatedPod, StartError
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
        self._tell = context.tell
        self._rng = Random(context.rng.random())  # noqa: S311 - jitter
        self._client: RestClient | None = None
        self.reflectors: dict[str, Reflector] = {}
        self._gated: dict[str, GatedPod] = {}

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
            changed, gone = change.objects, False
        else:
            kind = type(change).__name__.upper()
            session.watched({"type": kind, "object": change.object}, time.time_ns())
            changed, gone = [change.object], kind == "DELETED"
        if name == "pods":
            for each in changed:
                self._note_gates(each, gone=gone)

    def _note_gates(self, each: Mapping[str, Any], *, gone: bool) -> None:
        """Tell of Pods that scheduling gates hold back: kube-scheduler has not tried them and logs nothing of them."""
        metadata = each.get("metadata", {})
        uid = metadata.get("uid", "")
        gates = () if gone else _gates(each)
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


def _gates(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the gates that hold a Pod back, as far as they have names; what has another shape is none."""
    spec = pod.get("spec")
    told = spec.get("schedulingGates") if isinstance(spec, Mapping) else None
    names = [gate.get("name") for gate in told if isinstance(gate, Mapping)] if isinstance(told, list) else []
    return tuple(name for name in names if isinstance(name, str))
