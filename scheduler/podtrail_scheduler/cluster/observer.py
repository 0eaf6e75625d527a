"""Who a cluster, simulated or real, tells of its changes."""

from typing import Protocol

from podtrail_scheduler.objects import ApiObject, Node, Pod


class Observer(Protocol):
    """Told of each change in the order of the watch, as `podtrail_scheduler.cycles.watching.Watching` is."""

    def pod_added(self, pod: Pod) -> None:
        """A Pod came."""
        ...

    def pod_updated(self, old: Pod, new: Pod) -> None:
        """A Pod changed."""
        ...

    def pod_deleted(self, pod: Pod) -> None:
        """A Pod is gone; `pod` is how it was last seen."""
        ...

    def node_added(self, node: Node) -> None:
        """A node came."""
        ...

    def node_updated(self, old: Node, new: Node) -> None:
        """A node changed."""
        ...

    def node_deleted(self, node: Node) -> None:
        """A node is gone; `node` is how it was last seen."""
        ...

    def object_changed(self, old: ApiObject | None, new: ApiObject | None) -> None:
        """An object of another kind came (no `old`), changed or went (no `new`)."""
        ...
