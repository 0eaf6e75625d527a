"""Which Pods belong together when a Pod has no constraints of its own: what its Services and its controller select."""

from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.objects import LabelSelector, Pod, PodSelecting

from .selector import Selector

_CONTROLLERS = {
    "ReplicationController": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
}
"""API versions by kind."""


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
