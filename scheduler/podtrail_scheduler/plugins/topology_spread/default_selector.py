"""Which Pods belong together when a Pod has no constraints of its own: what its Services and its controller select."""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.objects import LabelSelector, Pod, PodSelecting

_CONTROLLERS = {
    "ReplicationController": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
}
"""API versions by kind."""


class Selector(NamedTuple):
    """Several label selectors as one: all parts must match; None selects nothing."""

    parts: tuple[LabelSelector, ...] | None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` are selected."""
        return self.parts is not None and all(part.matches(labels) for part in self.parts)

    @property
    def empty(self) -> bool:
        """Whether it has no condition."""
        return self.parts is not None and all(part.empty for part in self.parts)

    @property
    def question(self) -> Hashable:
        """A hashable stand-in: equal for equal selectors."""
        return None if self.parts is None else tuple(part.question for part in self.parts)

    def matching_pods(self, pods: Mapping[str, Pod], namespace: str) -> int:
        """How many of the Pods are selected, in the namespace and not on their way out; none when it is empty."""
        if self.empty:
            return 0
        return sum(
            other.deletion_timestamp is None and other.namespace == namespace and self.matches(other.labels)
            for other in pods.values()
        )


class DefaultSelectors:
    """Looks Services and controllers up, by namespace; the index is renewed when any of them changed."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._version = -1
        self._services: dict[str, list[LabelSelector]] = {}
        self._controllers: dict[tuple[str, str, str], LabelSelector] = {}

    def of(self, pod: Pod) -> Selector:
        """The selectors of all Services that select `pod`, and that of its controller; empty when there are none."""
        self._renew()
        parts = [each for each in self._services.get(pod.namespace, ()) if each.matches(pod.labels)]
        owner = pod.owner
        if owner is not None and _CONTROLLERS.get(owner.kind) == owner.api_version:
            selector = self._controllers.get((owner.kind, pod.namespace, owner.name))
            if selector is not None:
                parts.append(selector)
        return Selector(tuple(parts))

    def _renew(self) -> None:
        version = self._listers.version(PodSelecting)
        if version == self._version:
            return
        self._version = version
        self._services, self._controllers = {}, {}
        for each in self._listers.all(PodSelecting):
            if each.selector is None:
                continue
            if each.kind == "Service":
                self._services.setdefault(each.namespace, []).append(each.selector)
            else:
                self._controllers[each.kind, each.namespace, each.name] = each.selector
