"""Sums over the nodes of the cluster, kept between attempts: only nodes that changed are looked at again."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TypeVar, cast

from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.runtime.node_table import NodeList, NodeTable

Domain = Hashable
Contribution = Callable[[NodeInfo], Mapping[Domain, int]]
"""What a node adds to which domains; it may depend on nothing but the node and its Pods."""

Kind = TypeVar("Kind", bound=Domain)

_NOTHING: Mapping[Domain, int] = {}


class DomainCounts:
    """The sum of every node's contribution, by domain. A domain that only adds zeroes is there nevertheless."""

    __slots__ = ("_contributing", "_contribution", "_generations", "_known", "_layout", "_seen", "sums")

    def __init__(self, contribution: Contribution) -> None:
        self._contribution = contribution
        self._known: list[Mapping[Domain, int]] = []
        """What the node in each place contributes."""
        self._generations: list[int] = []
        self._layout: tuple[NodeTable, int] | None = None
        """The table, and which layout of it, that the places are of; None when the nodes came without one."""
        self._seen = 0
        """Up to where the table's log has been followed."""
        self._contributing: dict[Domain, int] = {}
        """How many nodes add to each domain."""
        self.sums: dict[Domain, int] = {}

    def refresh(self, nodes: Sequence[NodeInfo]) -> None:
        """Makes `sums` those of `nodes`, which are all there are."""
        for place in self._changed(nodes):
            node = nodes[place]
            self._withdraw(self._known[place])
            self._known[place] = amounts = self._contribution(node)
            self._generations[place] = node.generation
            self._add(amounts)

    def _changed(self, nodes: Sequence[NodeInfo]) -> Collection[int]:
        """The places whose node is another one or has changed."""
        table = nodes.table if isinstance(nodes, NodeList) else None
        if table is None or table.infos is not nodes:
            self._layout = None
            return self._compared(nodes)
        seen, self._seen = self._seen, table.position
        if self._layout == (table, table.layout) and seen >= table.base:
            return set(table.log[seen - table.base :])
        self._layout = table, table.layout
        return self._compared(nodes)

    def _compared(self, nodes: Sequence[NodeInfo]) -> Collection[int]:
        missing = len(nodes) - len(self._known)
        for amounts in self._known[len(nodes) :]:
            self._withdraw(amounts)
        del self._known[len(nodes) :], self._generations[len(nodes) :]
        self._known.extend([_NOTHING] * missing)
        self._generations.extend([0] * missing)
        return [
            place
            for place, (generation, node) in enumerate(zip(self._generations, nodes, strict=True))
            if generation != node.generation
        ]

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

    def ask(
        self, question: Hashable, nodes: Sequence[NodeInfo], contribution: Callable[[NodeInfo], Mapping[Kind, int]]
    ) -> dict[Kind, int]:
        """The sums over `nodes`; `question` names all that `contribution` depends on besides the node.

        They are good until the question is asked again: an attempt that changes them does so in a copy.
        """
        counts = self._counts.get(question)
        if counts is None:
            counts = self._counts[question] = DomainCounts(cast("Contribution", contribution))
            if len(self._counts) > self._limit:
                self._counts.popitem(last=False)
        self._counts.move_to_end(question)
        counts.refresh(nodes)
        return cast("dict[Kind, int]", counts.sums)
