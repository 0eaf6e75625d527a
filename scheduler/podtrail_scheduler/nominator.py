"""Pods that wait for room which preemption makes on a node, so that nobody of lower priority takes it."""

from collections.abc import Sequence

from .framework.node_info import NodeInfo
from .objects import Pod


class Nominator:
    """Which Pod hopes for which node."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._nodes: dict[str, str] = {}

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Notes that `pod` hopes for the node, in place of an earlier hope."""
        self.withdraw(pod.uid)
        self._nodes[pod.uid] = node_name
        self._by_node.setdefault(node_name, {})[pod.uid] = pod

    def withdraw(self, uid: str) -> None:
        """The Pod hopes for nothing (any more)."""
        node_name = self._nodes.pop(uid, None)
        if node_name is not None:
            pods = self._by_node[node_name]
            del pods[uid]
            if not pods:
                del self._by_node[node_name]

    def on(self, node_name: str) -> list[Pod]:
        """The Pods that hope for the node."""
        return list(self._by_node.get(node_name, {}).values())

    def with_nominated(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        """The nodes as `pod` must see them: Pods of its priority or more that hope for a node count as being there."""
        if not self._by_node:
            return nodes
        return [self._counted(pod, node) if node.name in self._by_node else node for node in nodes]

    def _counted(self, pod: Pod, node: NodeInfo) -> NodeInfo:
        ahead = [other for other in self.on(node.name) if other.priority >= pod.priority and other.uid != pod.uid]
        ahead = [other for other in ahead if other.uid not in node.pods]
        if not ahead:
            return node
        copy = node.clone()
        for other in ahead:
            copy.add(other)
        return copy
