"""Pods that wait: their latest attempt failed, lately enough that the scheduler still has them.

kube-scheduler tries a Pod again after five minutes at the latest. One that is not tried for longer is gone, or somebody
else scheduled it. The receiver `k8s_pods` reports both at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from podtrail.config.types import SECOND
from podtrail.otlp import Attempt

_LONGEST = 128
"""Characters of a Pod's id."""
_NOBODY = ("unknown",)
"""Under what a Pod counts whose attempt tells of no plugin."""


@dataclass(slots=True)
class StuckPod:
    """A Pod that waits."""

    since: int
    """When the first attempt of those that failed ended, by the scheduler's clock, Unix nanoseconds."""
    ended: int
    trace_id: bytes
    """Of the latest attempt."""
    profile: str
    told: int
    """When that came."""
    plugins: tuple[str, ...] = ()
    """Whose no it failed for."""


SavedPods = tuple[tuple[str, int, int, bytes, str, int, tuple[str, ...]], ...]
"""Pods in a saved state, by their keys: the fields of a `StuckPod`."""


class PendingPods:
    """At most so many of them; those tried longest ago are forgotten first, and all after a while."""

    def __init__(self, most: int, forgotten_after: int) -> None:
        """Remember `most` Pods, each for so many nanoseconds since its latest attempt came."""
        self._most = most
        self._forgotten_after = forgotten_after
        self._pods: dict[str, StuckPod] = {}
        self._by_trace: dict[bytes, StuckPod] = {}

    def attempted(self, attempt: Attempt, profile: str, now: int) -> None:
        """Take note of an attempt of a profile: a Pod waits since it failed first, until it succeeds."""
        key = _short(attempt.pod_uid or f"{attempt.namespace}/{attempt.name}")
        before = self._pods.get(key)
        if before is not None and (attempt.trace_id == before.trace_id or attempt.end < before.ended):
            return
        self._forget(key)
        if attempt.failed:
            since = before.since if before else attempt.end
            pod = StuckPod(since, attempt.end, attempt.trace_id, profile, now)
            self._pods[key] = self._by_trace[attempt.trace_id] = pod
            if len(self._pods) > self._most:
                self._forget(next(iter(self._pods)))

    def ended(self, uid: str) -> None:
        """Take note that a Pod has a node, or was deleted."""
        self._forget(_short(uid))

    def refused(self, trace_id: bytes, plugin: str) -> None:
        """Take note that a plugin said no in an attempt."""
        if (pod := self._by_trace.get(trace_id)) and plugin not in pod.plugins:
            pod.plugins += (plugin,)

    def expire(self, now: int) -> None:
        """Forget what was not tried for so long."""
        while (due := self.deadline()) is not None and due <= now:
            self._forget(next(iter(self._pods)))

    def deadline(self) -> int | None:
        """Return when the next is forgotten."""
        first = next(iter(self._pods.values()), None)
        return None if first is None else first.told + self._forgotten_after

    def saved(self) -> "SavedPods":
        """Return the Pods that wait."""
        return tuple(
            [
                (key, pod.since, pod.ended, pod.trace_id, pod.profile, pod.told, pod.plugins)
                for key, pod in self._pods.items()
            ]
        )

    def restore(self, saved: "SavedPods") -> None:
        """Have those Pods wait that were saved."""
        for key, since, ended, trace_id, profile, told, plugins in saved:
            self._pods[key] = StuckPod(since, ended, trace_id, profile, told, plugins)
        self._by_trace = {pod.trace_id: pod for pod in self._pods.values()}

    def take_over(self, other: "PendingPods") -> None:
        """Take what another one remembers."""
        self._pods, other._pods = other._pods, self._pods
        self._by_trace, other._by_trace = other._by_trace, self._by_trace
        while len(self._pods) > self._most:
            self._forget(next(iter(self._pods)))

    def counts(self) -> Mapping[tuple[str, str], float]:
        """Return how many wait, by plugin and profile; a Pod counts under each plugin that said no to it."""
        found: dict[tuple[str, str], float] = {}
        for key, _ in self._by_plugin():
            found[key] = found.get(key, 0) + 1
        return found

    def since(self) -> Mapping[tuple[str, str], float]:
        """Return since when the first of them waits, in Unix seconds, by plugin and profile."""
        found: dict[tuple[str, str], float] = {}
        for key, pod in self._by_plugin():
            found[key] = min(found.get(key, pod.since / SECOND), pod.since / SECOND)
        return found

    def _by_plugin(self) -> Iterator[tuple[tuple[str, str], StuckPod]]:
        for pod in self._pods.values():
            for plugin in pod.plugins or _NOBODY:
                yield (plugin, pod.profile), pod

    def _forget(self, key: str) -> None:
        if pod := self._pods.pop(key, None):
            del self._by_trace[pod.trace_id]


def _short(key: str) -> str:
    return key if len(key) <= _LONGEST else blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
