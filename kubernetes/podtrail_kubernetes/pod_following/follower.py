"""Follows the Pods that come of written objects: those written themselves, and those that controllers make."""

import asyncio
import random
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from podtrail_kubernetes.errors import RequestFailed
from podtrail_kubernetes.object_meta import Object, metadata_of
from podtrail_kubernetes.reflector import Change, Deleted, Listed, ListWatch, Reflector
from podtrail_kubernetes.rest_client import RestClient
from podtrail_kubernetes.tracing_proxy import WrittenObject

from .owners import Owners
from .progress import PodProgress, new_progress
from .workloads import expected_pods, gave_up, is_settled

_MOST_PODS = 1000
_MOST_WRITTEN = 10_000
_MOST_WATCHES = 100
"""Of one run. Of what is beyond only the number is known."""


class _Origin(NamedTuple):
    """A written object, as far as it matters to Pods."""

    words: str
    at: datetime | None
    created: bool


class PodFollower:
    """Follows the Pods of one cluster. Begins with the first object, and ends with `close`."""

    def __init__(self, client: RestClient, clock: Callable[[], float]) -> None:
        """Begins nothing yet.

        Args:
            client: Whose user may watch Pods and read what owns them.
            clock: Seconds since the run began.
        """
        self.pods: dict[str, PodProgress] = {}
        """By uid, in the order in which they were seen."""
        self.too_many = 0
        """Pods and objects that are not followed, for want of room."""
        self.owners = Owners(client)
        self._client = client
        self._clock = clock
        self._written: dict[str, _Origin] = {}
        self._now: dict[str, Object] = {}
        """The latest state of each written workload."""
        self._reflectors: dict[ListWatch, Reflector] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()

    def wrote(self, written: WrittenObject) -> None:
        """Takes an object that was created or changed."""
        if written.uid not in self._written and len(self._written) >= _MOST_WRITTEN:
            self.too_many += 1
            return
        is_pod = written.collection.endswith("/pods") and written.kind == "Pod"
        if is_pod or expected_pods(written.object):
            self._follow(ListWatch(f"/api/v1/namespaces/{written.namespace}/pods"), self._take_pod)
        words = f"{written.kind} {written.namespace}/{written.name}"
        self._written.setdefault(written.uid, _Origin(words, written.at, written.created))
        if is_pod:
            self._see(written.object, "")
        elif expected_pods(written.object) and written.uid not in self._now:
            self._now[written.uid] = written.object
            named = ListWatch(written.collection, field_selector=f"metadata.name={written.name}")
            self._follow(named, self._take_workload)
        self._changed.set()

    @property
    def unsettled(self) -> list[str]:
        """The workloads that their controllers are not done with, in words."""
        return [self._words(uid) for uid, now in self._now.items() if not is_settled(now)]

    @property
    def missing(self) -> list[str]:
        """The workloads that are about to have more Pods than are known, in words."""
        found = []
        for uid, now in self._now.items():
            if not self._written[uid].created and is_settled(now):
                continue  # the Pods that it wants were there before
            known = sum(pod.owner == self._words(uid) for pod in self.pods.values())
            if known < (wanted := expected_pods(now)):
                found.append(f"{self._words(uid)}: {known} of {wanted} Pods")
        return found

    @property
    def gave_up(self) -> list[str]:
        """The workloads that their controllers have given up, and why."""
        return [f"{self._words(uid)}: {why}" for uid, now in self._now.items() if (why := gave_up(now))]

    @property
    def failures(self) -> list[str]:
        """What can't be watched or read at the moment, and why."""
        watched = [f"{each.resource.path}: {each.last_failure}" for each in self._failing()]
        return watched + [f"{owner}: {why}" for owner, why in self.owners.failures.items()]

    def all_known(self) -> bool:
        """Whether there are as many Pods as the written workloads are about to have."""
        return not self.missing

    def all_good(self) -> bool:
        """Whether all workloads have their Pods, and each Pod is ready, has succeeded or was replaced."""
        there = [pod for pod in self.pods.values() if pod.owner == "" or not pod.ended_badly]
        return not self.unsettled and all(pod.good for pod in there)

    def hopeless(self) -> bool:
        """Whether waiting can't help: a controller gave up, or a Pod that nobody replaces has failed or is gone."""
        return bool(self.gave_up) or any(pod.ended_badly for pod in self.pods.values() if not pod.owner)

    async def until(self, done: Callable[[], bool]) -> None:
        """Waits until something is so, looking again after each change."""
        while not done():
            self._changed.clear()
            await self._changed.wait()

    async def last_event(self, pod: PodProgress) -> str:
        """What the latest warning about a Pod says; empty where there is none, or it may not be read."""
        query = {"fieldSelector": f"involvedObject.uid={pod.uid},type=Warning"}
        try:
            answer = await self._client.request("GET", f"/api/v1/namespaces/{pod.namespace}/events", query=query)
        except RequestFailed as failure:
            self.owners.failures[f"Events of {pod.namespace}"] = str(failure)
            return ""
        items = answer.get("items") or []
        latest = max(items, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime")), default=None)
        return f"{latest.get('reason')}: {latest.get('message')}" if latest is not None else ""

    async def close(self) -> None:
        """Ends all watches.

        Raises:
            Exception: What ended one of them: a defect.
        """
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        for each in ended:
            if isinstance(each, Exception):
                raise each

    def _failing(self) -> Iterable[Reflector]:
        return (each for each in self._reflectors.values() if each.last_failure is not None)

    def _follow(self, resource: ListWatch, take: "Callable[[Change], None]") -> None:
        if resource in self._reflectors:
            return
        if len(self._reflectors) >= _MOST_WATCHES:
            self.too_many += 1
            return

        async def taken(change: Change) -> None:
            if take == self._take_pod:
                await self._find_owners(change)
            take(change)
            self._changed.set()

        reflector = Reflector(self._client, resource, random.Random())  # noqa: S311 - jitter
        self._reflectors[resource] = reflector
        self._tasks.append(asyncio.create_task(reflector.run(taken)))

    async def _find_owners(self, change: Change) -> None:
        """Takes the Pods of a change that are new and belong to a written object."""
        for pod in change.objects if isinstance(change, Listed) else [change.object]:
            uid = str(metadata_of(pod).get("uid"))
            if uid in self.pods or isinstance(change, Deleted):
                continue
            if uid in self._written:
                self._see(pod, "")
            elif self._is_new(pod):
                for above in await self.owners.of(pod):
                    if above in self._written:
                        self._see(pod, self._words(above))

    def _take_pod(self, change: Change) -> None:
        for pod in change.objects if isinstance(change, Listed) else [change.object]:
            progress = self.pods.get(str(metadata_of(pod).get("uid")))
            if progress is None:
                continue
            if isinstance(change, Deleted):
                progress.see_gone(self._clock())
            else:
                progress.see(pod, self._clock())

    def _take_workload(self, change: Change) -> None:
        for each in change.objects if isinstance(change, Listed) else [change.object]:
            uid = str(metadata_of(each).get("uid"))
            if uid not in self._now:
                continue
            if isinstance(change, Deleted):
                del self._now[uid]
            else:
                self._now[uid] = each

    def _see(self, pod: Object, owner: str) -> None:
        uid = str(metadata_of(pod).get("uid"))
        if uid not in self.pods and len(self.pods) >= _MOST_PODS:
            self.too_many += 1
            return
        self.pods.setdefault(uid, new_progress(pod, owner)).see(pod, self._clock())

    def _is_new(self, pod: Object) -> bool:
        """Whether it came after the first write: older Pods of a changed workload are not of this run."""
        first = next(iter(self._written.values())).at
        try:
            created = datetime.fromisoformat(str(metadata_of(pod).get("creationTimestamp")))
        except ValueError:
            return True
        return first is None or created >= first

    def _words(self, uid: str) -> str:
        return self._written[uid].words
