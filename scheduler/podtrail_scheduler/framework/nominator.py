"""Pods that wait for room which preemption makes on a node, so that nobody of lower priority takes it."""

from collections.abc import Collection

from podtrail_scheduler.objects import Pod


class Nominator:
    """Nominated Pods by node (kube-scheduler's `nominator`)."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._nodes: dict[str, str] = {}

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Nominates `pod` for the node, in place of an earlier nomination."""
        self.withdraw(pod.uid)
        self._nodes[pod.uid] = node_name
        self._by_node.setdefault(node_name, {})[pod.uid] = pod

    def withdraw(self, uid: str) -> None:
        """Ends the Pod's nomination, if it has one."""
        node_name = self._nodes.pop(uid, None)
        if node_name is not None:
            pods = self._by_node[node_name]
            del pods[uid]
            if not pods:
                del self._by_node[node_name]

    def on(self, node_name: str) -> list[Pod]:
        """The Pods that are nominated for the node."""
        return list(self._by_node.get(node_name, {}).values())

    @property
    def nodes(self) -> Collection[str]:
        """The nodes that any Pod is nominated for."""
        return self._by_node.keys()

    def observe(self, old: Pod | None, new: Pod) -> None:
        """A Pod without a node came (`old` None) or changed.

        What its status says counts; an update that says nothing, as before, leaves a nomination known here only.
        """
        hoped = self._nodes.get(new.uid, "")
        node_name = new.nominated_node_name
        if not node_name and (old is None or not old.nominated_node_name):
            node_name = hoped
        if node_name:
            self.nominate(new, node_name)
        else:
            self.withdraw(new.uid)
