"""What the scheduler believes the cluster looks like: nodes, the Pods on them, and Pods assumed but not yet bound."""

from collections.abc import Sequence

from .framework.node_info import NodeInfo
from .objects import Node, Pod


class Cache:
    """Follows the watch; an assumed Pod counts as if it were bound until it is, or is forgotten."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        self._listed: list[NodeInfo] = []
        self._pods: dict[str, Pod] = {}
        self._assumed: set[str] = set()

    def nodes(self) -> Sequence[NodeInfo]:
        """All nodes, in the order in which they joined."""
        return self._listed

    def node(self, name: str) -> NodeInfo | None:
        """The node of that name."""
        return self._nodes.get(name)

    def set_node(self, node: Node) -> None:
        """A node was added or changed."""
        info = self._nodes.get(node.name)
        if info is not None:
            info.node = node
            return
        self._nodes[node.name] = info = NodeInfo(node)
        self._listed.append(info)
        for pod in self._pods.values():
            if pod.node_name == node.name:
                info.add(pod)

    def assume(self, pod: Pod, node_name: str) -> None:
        """Counts `pod` as running on the node before it is bound."""
        self._assumed.add(pod.uid)
        self._add(pod.on(node_name))

    def is_assumed(self, uid: str) -> bool:
        """Whether the Pod is assumed on a node and the watch has not shown it there yet."""
        return uid in self._assumed

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
        if pod is not None and (node := self._nodes.get(pod.node_name)) is not None:
            node.remove(pod)

    def _add(self, pod: Pod) -> None:
        self._pods[pod.uid] = pod
        if (node := self._nodes.get(pod.node_name)) is not None:
            node.add(pod)
