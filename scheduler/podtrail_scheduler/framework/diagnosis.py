"""Why a Pod fits no node: which plugin refused which nodes for which reasons, and kube-scheduler's `FitError` text."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .status import Code, Status, unresolvable

NO_NODES = "no nodes available to schedule pods"
_UNTOLD = unresolvable()


class NodeRefusal(NamedTuple):
    """Nodes that one plugin refused with the same status."""

    plugin: str
    status: Status
    nodes: list[str]


class Diagnosis:
    """Why a Pod fits no node (kube-scheduler's `Diagnosis`); filled while an attempt runs."""

    def __init__(self, nodes_total: int) -> None:
        self.nodes_total = nodes_total
        self.refusals: list[NodeRefusal] = []
        self.absent = _UNTOLD
        """The status of the nodes that were not looked at."""
        self.pre_filter_message = ""
        self.post_filter_message = ""
        self.refused_by: set[str] = set()
        self.pending_on: set[str] = set()

    def add(self, refusal: NodeRefusal) -> None:
        """Notes that a plugin refused nodes, and which plugin to ask about later events."""
        self.refusals.append(refusal)
        self.blame(refusal.plugin, refusal.status)

    def blame(self, plugin: str, status: Status) -> None:
        """Notes the plugin among those whose hints are asked about later events."""
        if plugin and status.rejected:
            (self.pending_on if status.code is Code.PENDING else self.refused_by).add(plugin)

    def statuses(self, nodes: Iterable[str]) -> dict[str, Status]:
        """The status of each of `nodes`, those that nobody looked at included."""
        statuses = dict.fromkeys(nodes, self.absent)
        for refusal in self.refusals:
            statuses.update(dict.fromkeys(refusal.nodes, refusal.status))
        return statuses

    def message(self) -> str:
        """The text of the FailedScheduling event: `0/3 nodes are available: 3 Insufficient cpu. preemption: ...`."""
        if not self.nodes_total:
            return NO_NODES
        refusals = self.refusals
        untold = self.nodes_total - len({name for refusal in refusals for name in refusal.nodes})
        if untold and self.absent.reasons:
            refusals = [*refusals, NodeRefusal("", self.absent, [""] * untold)]
        return fit_message(self.nodes_total, refusals, self.pre_filter_message, self.post_filter_message)


def fit_message(
    nodes_total: int, refusals: Sequence[NodeRefusal], pre_filter_message: str = "", post_filter_message: str = ""
) -> str:
    """`0/N nodes are available:`, then the count of each reason, sorted as text, or what PreFilter said instead."""
    text = f"0/{nodes_total} nodes are available:"
    if pre_filter_message:
        text += f" {pre_filter_message}."
    else:
        counts: Counter[str] = Counter()
        for refusal in refusals:
            for reason in refusal.status.reasons:
                counts[reason] += len(refusal.nodes)
        if counts:
            text += f" {', '.join(sorted(f'{number} {reason}' for reason, number in counts.items()))}."
    return f"{text} {post_filter_message}" if post_filter_message else text
