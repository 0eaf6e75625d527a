"""The watch of the simulation: what the scheduler hears, a moment after it happened.

While it is broken nothing is heard; then everything is listed, and the scheduler hears of what differs, as an informer
tells it: what happened in between and was undone again it never learns.
"""

from podtrail_scheduler.cluster.observer import Observer
from podtrail_scheduler.objects import ApiObject, Node, Pod

from .timeline import Timeline

DELAY = 1_000_000
"""After how many nanoseconds the scheduler hears of a change."""

_Key = tuple[type, str]


class Watch:
    """Tells one watcher of all objects."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.watcher: Observer | None = None
        self._latest: dict[_Key, ApiObject] = {}
        self._shown: dict[_Key, ApiObject] = {}
        self._breaks = 0

    def tell(self, old: ApiObject | None, new: ApiObject | None) -> None:
        """An object came (no `old`), changed or went (no `new`)."""
        item = new if new is not None else old
        assert item is not None
        key = type(item), item.uid if isinstance(item, Pod) else item.key
        self._timeline.after(DELAY, lambda: self._arrive(key, new))

    def shown(self, uid: str) -> Pod | None:
        """The Pod as the watcher knows it."""
        pod = self._shown.get((Pod, uid))
        return pod if isinstance(pod, Pod) else None

    def break_off(self, lasts: int) -> None:
        """Breaks the watch for `lasts` nanoseconds: the watcher hears nothing meanwhile."""
        self._breaks += 1
        self._timeline.after(lasts, self._list)

    def _arrive(self, key: _Key, new: ApiObject | None) -> None:
        if new is None:
            self._latest.pop(key, None)
        else:
            self._latest[key] = new
        if not self._breaks:
            self._show(key)

    def _list(self) -> None:
        self._breaks -= 1
        if not self._breaks:
            for key in [*self._shown, *(key for key in self._latest if key not in self._shown)]:
                self._show(key)

    def _show(self, key: _Key) -> None:
        old, new = self._shown.get(key), self._latest.get(key)
        if old is new:
            return
        if new is None:
            del self._shown[key]
        else:
            self._shown[key] = new
        assert self.watcher is not None
        if isinstance(old, Pod) or isinstance(new, Pod):
            self._show_pod(self.watcher, old, new)
        elif isinstance(old, Node) or isinstance(new, Node):
            self._show_node(self.watcher, old, new)
        else:
            self.watcher.object_changed(old, new)

    @staticmethod
    def _show_pod(watcher: Observer, old: ApiObject | None, new: ApiObject | None) -> None:
        if isinstance(old, Pod) and isinstance(new, Pod):
            watcher.pod_updated(old, new)
        elif isinstance(new, Pod):
            watcher.pod_added(new)
        elif isinstance(old, Pod):
            watcher.pod_deleted(old)

    @staticmethod
    def _show_node(watcher: Observer, old: ApiObject | None, new: ApiObject | None) -> None:
        if isinstance(old, Node) and isinstance(new, Node):
            watcher.node_updated(old, new)
        elif isinstance(new, Node):
            watcher.node_added(new)
        elif isinstance(old, Node):
            watcher.node_deleted(old)
