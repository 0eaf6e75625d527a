"""Why a Pod fits nowhere: which plugin refused which nodes with which reasons, and the text made of it."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from .status import Status

NO_NODES = "no nodes available to schedule pods"


class Refusal(NamedTuple):
    """Nodes that one plugin refused with the same status."""

    plugin: str
    status: Status
    nodes: list[str]


class Diagnosis:
    """Filled while an attempt runs."""

    def __init__(self, nodes_total: int) -> None:
        self.nodes_total = nodes_total
        self.refusals: list[Refusal] = []
        self.pre_filter_message = ""
        self.post_filter_message = ""
        self.refused_by: set[str] = set()

    def statuses(self) -> Iterator[tuple[str, Status]]:
        """Each refused node with its status."""
        for refusal in self.refusals:
            for node in refusal.nodes:
                yield node, refusal.status

    def message(self) -> str:
        """The text of the FailedScheduling event: `0/3 nodes are available: 3 Insufficient cpu. preemption: ...`."""
        if not self.nodes_total:
            return NO_NODES
        return fit_message(self.nodes_total, self.refusals, self.pre_filter_message, self.post_filter_message)


def fit_message(
    nodes_total: int, refusals: list[Refusal], pre_filter_message: str = "", post_filter_message: str = ""
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
