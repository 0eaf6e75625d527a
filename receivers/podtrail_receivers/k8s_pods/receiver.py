"""Reflectors of Pods, and what they bring as spans; watches wait while the pipelines refuse."""

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from podtrail import __version__
from podtrail.component import Consumer, Context, LiveSource, StartError
from podtrail.otlp import Batch, Group
from podtrail.reconstruction.pod_observer import PodObserver
from podtrail_receivers.handing_over import HandingOver
from podtrail_receivers.k8s_pods import Config

if TYPE_CHECKING:
    from podtrail_kubernetes.reflector import Change, Reflector
    from podtrail_kubernetes.rest_client import RestClient

_WARNINGS: Final = "involvedObject.kind=Pod,type=Warning"
_MOST_GROUPS: Final = 512
"""Transitions in a batch at most: a list tells of all Pods at once."""


class PodsReceiver:
    """Feeds the pipelines with transitions of Pods."""

    finite = False

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._rng = Random(context.rng.random())  # noqa: S311 - jitter
        self._client: RestClient | None = None
        self._reflectors: dict[str, Reflector] = {}
        self._event_reflectors: dict[str, Reflector] = {}
        self._listed: dict[str, asyncio.Event] = {}
        """Set when the Pods of a path were listed: Events of Pods that are not watched are left out."""
        self._observer = PodObserver()
        self._tell = context.tell
        self._live = False
        self._hand_over = HandingOver(context, "kubernetes")
        name = context.id
        context.metrics.gauge(
            "podtrail_receiver_k8s_pods_watched", "Pods that are there, as far as is known.", ("receiver",)
        ).read_from(lambda: len(self._observer), name)
        context.metrics.gauge(
            "podtrail_receiver_k8s_pods_watch_failing", "1 while Pods can't be listed or watched.", ("receiver", "path")
        ).read_all_from(
            lambda: {
                (name, path): float(reflector.last_failure is not None)
                for path, reflector in (self._reflectors | self._event_reflectors).items()
            },
            name,
        )

    async def __aenter__(self) -> Self:
        """Read how the API server is reached; one that is away is waited for.

        Raises:
            StartError: it can't be known how.
        """
        from podtrail_kubernetes.errors import RestConfigError
        from podtrail_kubernetes.reflector import ListWatch, Reflector
        from podtrail_kubernetes.rest_client import RestClient, user_agent

        try:
            self._client = await RestClient.open(self._config.path(), agent=user_agent("podtrail", __version__))
        except RestConfigError as error:
            raise StartError(str(error)) from error
        for path in [f"/api/v1/namespaces/{name}/pods" for name in self._config.namespaces] or ["/api/v1/pods"]:
            watched = ListWatch(path, self._config.field_selector, self._config.label_selector)
            self._reflectors[path] = Reflector(self._client, watched, self._rng)
            self._listed[path] = asyncio.Event()
            if self._config.events:
                events = path.removesuffix("pods") + "events"
                self._event_reflectors[events] = Reflector(self._client, ListWatch(events, _WARNINGS), self._rng)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()

    async def run(self, consume: Consumer) -> None:
        """Tell what is seen, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for path, reflector in self._reflectors.items():
                group.create_task(reflector.run(partial(self._take, consume, path)))
            for path, reflector in self._event_reflectors.items():
                group.create_task(self._watch_events(reflector, path.removesuffix("events") + "pods", consume))

    async def _watch_events(self, reflector: "Reflector", pods: str, consume: Consumer) -> None:
        await self._listed[pods].wait()
        await reflector.run(partial(self._take_event, consume))

    async def _take_event(self, consume: Consumer, change: "Change") -> None:
        from podtrail_kubernetes.reflector import Deleted, Listed

        if isinstance(change, Deleted):
            return
        now = time.time_ns()
        kind, objects = (
            ("LISTED", list(change.objects)) if isinstance(change, Listed) else ("MODIFIED", [change.object])
        )
        told = [group for each in objects if self._watches(each) for group in self._observer.warn(kind, each, now)]
        if told:
            await self._hand_over(Batch(told, now), consume)

    def _watches(self, event: Mapping[str, Any]) -> bool:
        about = event.get("involvedObject")
        return isinstance(about, dict) and about.get("uid") in self._observer

    async def _take(self, consume: Consumer, path: str, change: "Change") -> None:
        from podtrail_kubernetes.reflector import Deleted, Listed

        now = time.time_ns()
        if not self._live:
            self._live = True
            self._tell(LiveSource())
        objects: list[Mapping[str, Any]]
        if isinstance(change, Listed):
            kind, objects = "LISTED", list(change.objects)
        else:
            missed = isinstance(change, Deleted) and change.inferred
            kind, objects = "MISSED" if missed else type(change).__name__.upper(), [change.object]
        told: list[Group] = []
        for each in objects:
            told += self._observer.take(kind, each, now)
            if len(told) >= _MOST_GROUPS:
                await self._hand_over(Batch(told, now), consume)
                told = []
        if told:
            await self._hand_over(Batch(told, now), consume)
        if isinstance(change, Listed):
            self._listed[path].set()
