"""Sums over the nodes of the cluster, kept between attempts: only nodes that changed are looked at again."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence

from podtrail_scheduler.framework.node_info import NodeInfo

Domain = Hashable
Contribution = Callable[[NodeInfo], Mapping[Domain, int]]
"""What a node adds to which domains; it may depend on nothing but the node and its Pods."""


class DomainCounts:
    """The sum of every node's contribution, by domain. A domain that only adds zeroes is there nevertheless."""

    __slots__ = ("_contributing", "_contribution", "_known", "sums")

    def __init__(self, contribution: Contribution) -> None:
        self._contribution = contribution
        self._known: dict[str, tuple[int, Mapping[Domain, int]]] = {}
        """Generation and contribution of each node."""
        self._contributing: dict[Domain, int] = {}
        """How many nodes add to each domain."""
        self.sums: dict[Domain, int] = {}

    def refresh(self, nodes: Sequence[NodeInfo]) -> None:
        """Makes `sums` those of `nodes`, which are all there are."""
        known = self._known
        for node in nodes:
            before = known.get(node.name)
            if before is None or before[0] != node.generation:
                if before is not None:
                    self._withdraw(before[1])
                amounts = self._contribution(node)
                known[node.name] = node.generation, amounts
                self._add(amounts)
        if len(known) > len(nodes):
            for name in known.keys() - {node.name for node in nodes}:
                self._withdraw(known.pop(name)[1])

    def _add(self, amounts: Mapping[Domain, int]) -> None:
        for domain, amount in amounts.items():
            self.sums[domain] = self.sums.get(domain, 0) + amount
            self._contributing[domain] = self._contributing.get(domain, 0) + 1

    def _withdraw(self, amounts: Mapping[Domain, int]) -> None:
        for domain, amount in amounts.items():
            left = self._contributing[domain] - 1
            if left:
                self._contributing[domain] = left
                self.sums[domain] -= amount
            else:
                del self._contributing[domain], self.sums[domain]


class CountsByQuestion:
    """`DomainCounts` of the questions asked last, so that replicas of one workload share what was counted."""

    def __init__(self, limit: int = 64) -> None:
        """`limit`: how many questions are remembered; beyond it the one not asked for longest goes."""
        self._limit = limit
        self._counts: OrderedDict[Hashable, DomainCounts] = OrderedDict()

    def ask(self, question: Hashable, nodes: Sequence[NodeInfo], contribution: Contribution) -> dict[Domain, int]:
        """The sums over `nodes`; `question` names all that `contribution` depends on besides the node.

        They are good until the question is asked again: an attempt that changes them does so in a copy.
        """
        counts = self._counts.get(question)
        if counts is None:
            counts = self._counts[question] = DomainCounts(contribution)
            if len(self._counts) > self._limit:
                self._counts.popitem(last=False)
        self._counts.move_to_end(question)
        counts.refresh(nodes)
        return counts.sums
