"""The pool of Pods that were refused, or are held back before the active queue."""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from podtrail_scheduler.framework.queued_pod import QueuedPod


class _Unschedulable(NamedTuple):
    order: int
    entry: QueuedPod
    plugins: frozenset[str]
    gated: bool


class UnschedulablePool:
    """Pods by uid, found by the plugins that refused them, so that an event costs nothing to Pods it can't help."""

    def __init__(self) -> None:
        self._order = count()
        self._places: dict[str, _Unschedulable] = {}
        self._by_plugin: dict[str, dict[str, QueuedPod]] = {}
        self._gated = 0

    def put(self, entry: QueuedPod) -> None:
        """Adds a Pod that is not in the pool; who gates and refuses it changes only when it is taken out."""
        uid = entry.pod.uid
        self._places[uid] = _Unschedulable(next(self._order), entry, entry.rejectors, entry.gated)
        for plugin in entry.rejectors:
            self._by_plugin.setdefault(plugin, {})[uid] = entry
        self._gated += entry.gated

    def remove(self, uid: str) -> QueuedPod | None:
        """Takes the Pod of that uid out, None when there is none."""
        place = self._places.pop(uid, None)
        if place is None:
            return None
        for plugin in place.plugins:
            del self._by_plugin[plugin][uid]
        self._gated -= place.gated
        return place.entry

    def get(self, uid: str) -> QueuedPod | None:
        """The Pod of that uid, None when there is none."""
        place = self._places.get(uid)
        return None if place is None else place.entry

    def refused_by_any(self, plugins: Iterable[str]) -> list[QueuedPod]:
        """The Pods that one of the plugins refused, in the order in which they came."""
        groups = [pods for plugin in plugins if (pods := self._by_plugin.get(plugin))]
        if len(groups) <= 1:
            return list(groups[0].values()) if groups else []
        found = {uid: entry for pods in groups for uid, entry in pods.items()}
        return sorted(found.values(), key=lambda entry: self._places[entry.pod.uid].order)

    @property
    def gated(self) -> int:
        """How many of them PreEnqueue holds back."""
        return self._gated

    def __iter__(self) -> Iterator[QueuedPod]:
        return (place.entry for place in self._places.values())

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, uid: str) -> bool:
        return uid in self._places
