"""Pods that wait for a node, by watches and the scheduler's queue, until they have one or are deleted."""

from dataclasses import replace
from typing import Final

from podtrail.component import ObservedPod
from podtrail.lru import Lru
from podtrail.otlp.pod_transition import NOT_READY_FOR_SCHEDULING
from podtrail.reconstruction.watch import PodSeen

_MOST: Final = 65_536
_SETTLED: Final = 1_000_000_000
"""Nanoseconds after which a Pod that left the scheduler's queue was deleted, unless a node was reported by then: the
scheduler logs the same line for a Pod that is bound."""
_WATCH_LAG: Final = 5_000_000_000


class ObservedPods:
    """Follows Pods until they have a node or are deleted; `take` returns those that changed. Bounded."""

    def __init__(self) -> None:
        self._waiting: Lru[str, ObservedPod] = Lru(_MOST)
        """By uid, or by name where only the log shows a Pod."""
        self._changed: dict[str, ObservedPod] = {}
        self._uids: Lru[str, str] = Lru(_MOST)
        """Of waiting Pods, by name."""
        self._leaving: Lru[str, int] = Lru(_MOST)
        """Pods that left the scheduler's queue, with the time, until it is known why."""
        self._placed: Lru[str, int] = Lru(_MOST)
        self._lost: Lru[str, int] = Lru(_MOST)
        self._newest_watched = 0

    def see(self, seen: PodSeen) -> None:
        """Take a Pod that a watch shows."""
        self._newest_watched = max(self._newest_watched, seen.time)
        known = self._waiting.get(seen.uid)
        pod = ObservedPod(
            seen.uid,
            *_names(seen.pod),
            since=seen.created or (known.since if known else seen.time),
            scheduler=seen.profile,
            gates=seen.gates,
            held_by=seen.message if seen.reason == NOT_READY_FOR_SCHEDULING else known.held_by if known else "",
            bound=bool(seen.node),
            node=seen.node,
            deleted=seen.time if seen.change == "DELETED" else 0,
            at=seen.time,
        )
        if pod != known:
            self._put(seen.uid, pod)

    def arrive(self, pod: str, time: int) -> None:
        """Take the scheduler's word that a Pod came into its queue."""
        if not self._newest_watched:  # a watch reports the Pod with its uid
            follows = self._leaving.pop(pod, None) or self._lost.get(pod, 0)
            self._put(pod, ObservedPod("", *_names(pod), since=time, follows=follows, at=time))

    def leave(self, pod: str, time: int) -> None:
        """Take the scheduler's word that a Pod left its queue: because it is deleted, or because it has a node."""
        self._leaving.put(pod, time)

    def place(self, pod: str, time: int) -> None:
        """Take the scheduler's word that a Pod has a node."""
        self._leaving.pop(pod, None)
        self._placed.put(pod, time)
        known = self._waiting.get(pod)
        if known or not self._newest_watched:  # a watch reports the binding itself, with the node
            self._put(pod, replace(known or _unknown(pod), bound=True, at=time))

    def lose(self, pod: str, time: int) -> None:
        """Take the scheduler's word that a Pod no longer exists."""
        self._leaving.pop(pod, None)
        self._lost.put(pod, time)
        # A watch that is current reports the deletion itself, and of which Pod of this name.
        if time > self._newest_watched + _WATCH_LAG or not self._newest_watched:
            key = self._uids.get(pod, "") or pod
            known = self._waiting.get(key) or _unknown(pod)
            self._put(key, replace(known, deleted=time, at=time))

    def hold(self, pod: str, time: int, held_by: str) -> None:
        """Take the scheduler's word that a PreEnqueue plugin holds a Pod; `held_by` names it with its reason."""
        key = self._uids.get(pod, "") or pod
        known = self._waiting.get(key) or _unknown(pod)
        held_by = held_by or known.held_by or "a PreEnqueue plugin"
        if held_by != known.held_by:
            self._put(key, replace(known, held_by=held_by, at=time))

    def release(self, pod: str, time: int) -> None:
        """Take the scheduler's word that it tries a Pod: no plugin holds it."""
        key = self._uids.get(pod, "") or pod
        known = self._waiting.get(key)
        if known is not None and known.held_by:
            self._put(key, replace(known, held_by="", at=time))

    def take(self, now: int) -> list[ObservedPod]:
        """Return the Pods that changed since the last call; `now` is in Unix nanoseconds."""
        for pod, time in [each for each in self._leaving.items() if each[1] + _SETTLED <= now]:
            if abs(self._placed.get(pod, -_MOST) - time) > _SETTLED:
                self.lose(pod, time)
            self._leaving.pop(pod, None)
        changed, self._changed = list(self._changed.values()), {}
        return changed

    def _put(self, key: str, pod: ObservedPod) -> None:
        name = f"{pod.namespace}/{pod.name}"
        if pod.bound or pod.deleted:
            self._waiting.pop(key, None)
            if self._uids.get(name) == pod.uid:
                self._uids.pop(name, None)
        else:
            self._waiting.put(key, pod)
            self._uids.put(name, pod.uid)
        self._changed[key] = pod


def _names(pod: str) -> tuple[str, str]:
    namespace, _, name = pod.partition("/")
    return namespace, name


def _unknown(pod: str) -> ObservedPod:
    return ObservedPod("", *_names(pod), since=0)
