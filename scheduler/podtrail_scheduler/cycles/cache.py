"""What the scheduler believes the cluster looks like: nodes, the Pods on them, and Pods assumed but not yet bound."""

from collections.abc import Sequence

from podtrail_scheduler.framework.image_states import ImageStates
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.runtime.node_table import NodeTable


class Cache:
    """Follows the watch; an assumed Pod counts as if it were bound until it is, or is forgotten (`cacheImpl`)."""

    def __init__(self) -> None:
        self.table = NodeTable()
        self._images = ImageStates()
        self._nodes: dict[str, NodeInfo] = {}
        self._pods: dict[str, Pod] = {}
        self._elsewhere: dict[str, dict[str, Pod]] = {}
        """Pods of nodes that are not (or no longer) known, by node."""
        self._assumed: set[str] = set()

    def nodes(self) -> Sequence[NodeInfo]:
        """All nodes, one of each zone after the other."""
        return self.table.infos

    def node(self, name: str) -> NodeInfo | None:
        """The node of that name."""
        return self._nodes.get(name)

    def sizes(self) -> dict[str, int]:
        """How many nodes, Pods and assumed Pods there are (`scheduler_scheduler_cache_size`)."""
        return {"nodes": len(self._nodes), "pods": len(self._pods), "assumed_pods": len(self._assumed)}

    def set_node(self, node: Node) -> None:
        """A node was added or changed."""
        info = self._nodes.get(node.name)
        if info is None:
            self._nodes[node.name] = info = NodeInfo(node, self._images)
            for pod in self._elsewhere.pop(node.name, {}).values():
                info.add(pod)
        else:
            info.set_node(node)
        self.table.put(info)

    def remove_node(self, name: str) -> None:
        """A node is gone; its Pods are until the watch says so, too."""
        info = self._nodes.pop(name, None)
        if info is not None:
            info.leave()
            self.table.remove(name)
            if info.pods:
                self._elsewhere[name] = dict(info.pods)

    def pod(self, uid: str) -> Pod | None:
        """The Pod as it is counted on a node, None when it is on none."""
        return self._pods.get(uid)

    def is_assumed(self, uid: str) -> bool:
        """Whether the Pod is counted on a node without being bound yet."""
        return uid in self._assumed

    def assume(self, pod: Pod, node_name: str) -> Pod:
        """Counts `pod` as running on the node before it is bound; the Pod as it is counted."""
        assumed = pod.on(node_name)
        self._assumed.add(pod.uid)
        self._add(assumed)
        return assumed

    def forget(self, uid: str) -> bool:
        """Undoes `assume`; False when the Pod was bound or removed in the meantime."""
        if uid not in self._assumed:
            return False
        self.remove_pod(uid)
        return True

    def set_pod(self, pod: Pod) -> None:
        """The watch shows `pod` on a node."""
        self.remove_pod(pod.uid)
        self._add(pod)

    def remove_pod(self, uid: str) -> None:
        """The watch shows that the Pod is gone."""
        self._assumed.discard(uid)
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        info = self._nodes.get(pod.node_name)
        if info is not None:
            info.remove(pod)
            self.table.changed(info.name)
        elif (elsewhere := self._elsewhere.get(pod.node_name)) is not None:
            elsewhere.pop(uid, None)
            if not elsewhere:
                del self._elsewhere[pod.node_name]

    def _add(self, pod: Pod) -> None:
        self._pods[pod.uid] = pod
        info = self._nodes.get(pod.node_name)
        if info is None:
            self._elsewhere.setdefault(pod.node_name, {})[pod.uid] = pod
        else:
            info.add(pod)
            self.table.changed(info.name)
