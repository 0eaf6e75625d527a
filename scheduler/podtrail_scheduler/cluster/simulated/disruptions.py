"""What a workload's faults do to nodes, to Pods and to the watch."""

from dataclasses import replace

from podtrail_scheduler.objects import NO_EXECUTE, NO_SCHEDULE, Node, Taint
from podtrail_scheduler.workload import Workload
from podtrail_scheduler.workload.faults import NodeChurn, NodeLoss, WatchBreak

from .api_server import SimulatedApiServer
from .timeline import Timeline

UNREACHABLE = "node.kubernetes.io/unreachable"
_TAINTS = (Taint(UNREACHABLE, effect=NO_SCHEDULE), Taint(UNREACHABLE, effect=NO_EXECUTE))


class Disruptions:
    """Plans node losses, node churn and breaks of the watch on the timeline."""

    def __init__(self, workload: Workload, timeline: Timeline, api_server: SimulatedApiServer) -> None:
        self._workload = workload
        self._timeline = timeline
        self._api_server = api_server
        self._sizes = {group.name: group.count for group in workload.nodes}

    def plan(self) -> None:
        """Plans everything; times of the workload's faults count from now."""
        faults = self._workload.faults
        for loss in faults.node_loss:
            self._plan_loss(loss, 0, loss.at)
        for churn in faults.node_churn:
            self._plan_churn(churn, 0)
        for each in faults.watch_breaks:
            self._plan_break(each, each.at)

    def _plan_loss(self, loss: NodeLoss, first: int, after: int) -> None:
        def lose() -> None:
            size = self._sizes[loss.nodes]
            for number in range(first, first + min(loss.count, size)):
                self._lose(loss, f"{loss.nodes}-{number % size}")
            if loss.every is not None:
                self._plan_loss(loss, (first + loss.count) % size, loss.every)

        self._timeline.after(after, lose)

    def _lose(self, loss: NodeLoss, name: str) -> None:
        node = self._api_server.node(name)
        if node is None or any(taint.key == UNREACHABLE for taint in node.taints):
            return
        if loss.removed:
            self._api_server.remove_node(name)
            self._api_server.evict(name)
            if loss.lasts is not None:
                self._timeline.after(loss.lasts, lambda: self._api_server.add_node(node))
            return
        self._api_server.change_node(replace(node, taints=node.taints + _TAINTS))
        self._timeline.after(loss.evicted_after, lambda: self._evict(name))
        if loss.lasts is not None:
            self._timeline.after(loss.lasts, lambda: self._recover(name))

    def _evict(self, name: str) -> None:
        node = self._api_server.node(name)
        if node is not None and any(taint.key == UNREACHABLE for taint in node.taints):
            self._api_server.evict(name)

    def _recover(self, name: str) -> None:
        node = self._api_server.node(name)
        if node is not None:
            kept = tuple(taint for taint in node.taints if taint.key != UNREACHABLE)
            self._api_server.change_node(replace(node, taints=kept))

    def _plan_churn(self, churn: NodeChurn, number: int) -> None:
        def cordon() -> None:
            name = f"{churn.nodes}-{number % self._sizes[churn.nodes]}"
            self._cordon(self._api_server.node(name), cordoned=True)
            self._timeline.after(churn.cordoned_for, lambda: self._cordon(self._api_server.node(name), cordoned=False))
            self._plan_churn(churn, number + 1)

        self._timeline.after(churn.every, cordon)

    def _cordon(self, node: Node | None, *, cordoned: bool) -> None:
        if node is not None:
            self._api_server.change_node(replace(node, unschedulable=cordoned))

    def _plan_break(self, each: WatchBreak, after: int) -> None:
        def begin() -> None:
            self._api_server.watch.break_off(each.lasts)
            if each.every is not None:
                self._plan_break(each, each.every)

        self._timeline.after(after, begin)
