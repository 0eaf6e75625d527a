"""What the scheduler knows of the cluster: reflectors of every kind that scheduling reads, decoded and handed on."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from podtrail_kubernetes.errors import RequestFailed, StatusError
from podtrail_kubernetes.object_meta import NamespacedName, key_of
from podtrail_kubernetes.reflector import Added, Change, Deleted, Listed, ListWatch, Modified, Reflector
from podtrail_kubernetes.rest_client import RestClient

from podtrail_scheduler.cluster.observer import Observer
from podtrail_scheduler.extenders import WatchedManifests
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.decoding import decode

_AT_A_TIME = 100
_LOOK_AGAIN = 30.0
_RETRY = 1.0
"""Seconds to wait for an API server that does not answer yet."""

_log = logging.getLogger(__name__)


class WatchedKind(NamedTuple):
    """A kind to watch: the group and version that serve it, its collection and name, which of its objects matter."""

    group: str
    """`v1` for the core, otherwise group and version."""
    collection: str
    name: str
    field_selector: str = ""

    @property
    def root(self) -> str:
        """The path of the group and version."""
        return f"/apis/{self.group}" if "/" in self.group else f"/api/{self.group}"

    @property
    def is_optional(self) -> bool:
        """Whether there are API servers without it: of all others it is waited for until they list it."""
        return self.group.startswith("resource.k8s.io/")


KINDS: Sequence[WatchedKind] = (
    WatchedKind("v1", "nodes", "Node"),
    WatchedKind("v1", "pods", "Pod", field_selector="status.phase!=Succeeded,status.phase!=Failed"),
    WatchedKind("v1", "namespaces", "Namespace"),
    WatchedKind("v1", "persistentvolumes", "PersistentVolume"),
    WatchedKind("v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    WatchedKind("v1", "services", "Service"),
    WatchedKind("v1", "replicationcontrollers", "ReplicationController"),
    WatchedKind("apps/v1", "replicasets", "ReplicaSet"),
    WatchedKind("apps/v1", "statefulsets", "StatefulSet"),
    WatchedKind("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    WatchedKind("storage.k8s.io/v1", "storageclasses", "StorageClass"),
    WatchedKind("storage.k8s.io/v1", "csinodes", "CSINode"),
    WatchedKind("storage.k8s.io/v1", "csidrivers", "CSIDriver"),
    WatchedKind("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity"),
    WatchedKind("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment"),
    WatchedKind("resource.k8s.io/v1", "resourceclaims", "ResourceClaim"),
    WatchedKind("resource.k8s.io/v1", "resourceslices", "ResourceSlice"),
    WatchedKind("resource.k8s.io/v1", "deviceclasses", "DeviceClass"),
    WatchedKind("resource.k8s.io/v1", "devicetaintrules", "DeviceTaintRule"),
)
"""What kube-scheduler's informers watch."""


class Informer:
    """The objects of one kind as the watch last showed them, by namespace and name."""

    def __init__(
        self,
        added: Callable[[Any], None],
        updated: Callable[[Any, Any], None],
        deleted: Callable[[Any], None],
        kind: str,
    ) -> None:
        self._kind = kind
        self._objects: dict[NamespacedName, Any] = {}
        self._added = added
        self._updated = updated
        self._deleted = deleted
        self.synced = asyncio.Event()
        self.unreadable = 0

    async def take(self, change: Change) -> None:
        """Passes on a change that the reflector has seen; a list is everything that there is."""
        match change:
            case Listed(objects):
                for number, each in enumerate(objects):
                    self._put(each)
                    if not number % _AT_A_TIME:
                        await asyncio.sleep(0)  # a large cluster takes seconds to read, others must live meanwhile
                self.synced.set()
            case Added(each) | Modified(each):
                self._put(each)
            case Deleted(each):
                gone = self._objects.pop(key_of(each), None)
                if gone is not None:
                    self._deleted(gone)

    def _put(self, each: Mapping[str, Any]) -> None:
        try:
            if each.get("kind") != self._kind:
                raise ValueError(f"a {self._kind} is wanted")
            new = decode(each)
        except ValueError as error:
            self.unreadable += 1
            _log.error("%s %s cannot be read and stays as it was: %s", self._kind, "/".join(key_of(each)), error)
            return
        old = self._objects.get(key_of(each))
        self._objects[key_of(each)] = new
        if old is None:
            self._added(new)
        else:
            self._updated(old, new)


class Informers:
    """Runs the reflectors. Pods can be looked up from the beginning; `run` needs the observer by then."""

    def __init__(
        self,
        rest: RestClient,
        rng: random.Random,
        manifests: WatchedManifests | None = None,
        look_again: float = _LOOK_AGAIN,
    ) -> None:
        """Begin nothing yet.

        Args:
            rest: whose user may list and watch everything.
            rng: draws jitter.
            manifests: is given Pods and nodes whole, for extenders.
            look_again: seconds, up to twice as many, until it is looked again for what the API server does not have.
        """
        self._look_again = look_again
        self._rest = rest
        self._rng = rng
        self._manifests = manifests
        self._pods: dict[str, Pod] = {}
        self._synced = asyncio.Event()
        self._informers: dict[str, Informer] = {}
        self._reflectors: dict[str, Reflector] = {}

    def pod(self, uid: str) -> Pod | None:
        """The Pod as the watch last showed it, None when it is gone."""
        return self._pods.get(uid)

    @property
    def synced(self) -> bool:
        """Whether everything has been listed once."""
        return self._synced.is_set()

    async def wait_for_sync(self) -> None:
        """Returns when everything has been listed once."""
        await self._synced.wait()

    async def run(self, observer: Observer, kinds: Sequence[WatchedKind] = KINDS) -> None:
        """Watches until cancelled, from when the API server answers.

        What an older one does not have is told, done without, and looked for again.
        """
        async with asyncio.TaskGroup() as group:
            begun: list[Informer] = []
            for kind in kinds:
                if not kind.is_optional or await self._is_served(kind):
                    begun.append(self._begin(group, kind, observer))
                    continue
                _log.warning("the API server has no %s in %s; scheduling goes on without", kind.collection, kind.group)
                group.create_task(self._begin_once_served(group, kind, observer), name=f"look for {kind.collection}")
            for informer in begun:
                await informer.synced.wait()
            self._synced.set()

    def _begin(self, group: asyncio.TaskGroup, kind: WatchedKind, observer: Observer) -> Informer:
        informer = self._informers[kind.collection] = self._informer(kind, observer)
        resource = ListWatch(f"{kind.root}/{kind.collection}", kind.field_selector)
        reflector = self._reflectors[kind.collection] = Reflector(self._rest, resource, self._rng)
        group.create_task(reflector.run(self._follow(kind.collection)), name=f"watch {kind.collection}")
        return informer

    async def _begin_once_served(self, group: asyncio.TaskGroup, kind: WatchedKind, observer: Observer) -> None:
        while True:
            await asyncio.sleep(self._look_again * (1 + self._rng.random()))
            if await self._is_served(kind):
                _log.info("the API server has %s in %s now", kind.collection, kind.group)
                self._begin(group, kind, observer)
                return

    def _follow(self, collection: str) -> Callable[[Change], Awaitable[None]]:
        """Who follows a reflector: what is sent to extenders must be there before a Pod is scheduled."""
        informer, manifests = self._informers[collection], self._manifests
        if manifests is None or collection not in ("pods", "nodes", "Node"):
            return informer.take
        put = manifests.put_pod if collection == "pods" else manifests.put_node
        remove = manifests.remove_pod if collection == "pods" else manifests.remove_node

        async def both(change: Change) -> None:
            match change:
                case Listed(objects):
                    for each in objects:
                        put(each)
                case Added(each) | Modified(each):
                    put(each)
                case Deleted(each):
                    remove(each)
            await informer.take(change)

        return both

    async def _is_served(self, kind: WatchedKind) -> bool:
        known = (await self._resources(kind.root)).get("resources")
        named = [each.get("name") for each in known if isinstance(each, Mapping)] if isinstance(known, list) else []
        return kind.collection in named

    async def _resources(self, root: str) -> Mapping[str, Any]:
        """What the API server has below that path, empty for nothing; asked until it answers."""
        while True:
            try:
                return await self._rest.request("GET", root)
            except RequestFailed as failure:
                if isinstance(failure, StatusError) and failure.code == 404:
                    return {}
                _log.warning("the API server does not say what it has in %s: %s", root, failure)
            await asyncio.sleep(_RETRY * (1 + self._rng.random()))

    def _informer(self, kind: WatchedKind, observer: Observer) -> Informer:
        match kind.collection:
            case "pods":
                return self._pod_informer(observer, kind.name)
            case "nodes":
                return Informer(observer.node_added, observer.node_updated, observer.node_deleted, kind.name)
            case _:
                tell = observer.object_changed
                return Informer(lambda new: tell(None, new), tell, lambda old: tell(old, None), kind.name)

    def _pod_informer(self, observer: Observer, kind: str) -> Informer:
        def added(pod: Pod) -> None:
            self._pods[pod.uid] = pod
            observer.pod_added(pod)

        def updated(old: Pod, new: Pod) -> None:
            self._pods[new.uid] = new
            observer.pod_updated(old, new)

        def deleted(pod: Pod) -> None:
            self._pods.pop(pod.uid, None)
            observer.pod_deleted(pod)

        return Informer(added, updated, deleted, kind)
