"""What Filter looks up: how many matching Pods each domain has, and the fewest that any domain has."""

from collections.abc import Callable, Mapping, Sequence

from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, unresolvable, unschedulable
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.plugins.shared.domain_counts import CountsByQuestion

from .constraints import Constraint, has_keys, keys_of

NOT_SPREAD = unschedulable("node(s) didn't match pod topology spread constraints")
NO_LABEL = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")


class Domains:
    """The counts of one constraint: those of the cluster, which are shared, and what was changed to try things."""

    __slots__ = ("_changed", "_counted", "_fewest", "_with_fewest")

    def __init__(self, counted: Mapping[str, int]) -> None:
        self._counted = counted
        self._changed: dict[str, int] = {}
        self._fewest = min(counted.values(), default=0)
        self._with_fewest: frozenset[str] | None = None

    def clone(self) -> "Domains":
        """A copy whose counts can be changed."""
        copy = Domains.__new__(Domains)
        copy._counted, copy._changed = self._counted, dict(self._changed)
        copy._fewest, copy._with_fewest = self._fewest, self._lowest()
        return copy

    def change(self, value: str, amount: int) -> None:
        """Adds `amount` to the number of matching Pods in the domain."""
        self._changed[value] = self.count(value) + amount

    def count(self, value: str) -> int:
        """The number of matching Pods in the domain."""
        changed = self._changed.get(value)
        return self._counted.get(value, 0) if changed is None else changed

    def above(self, most: int) -> set[str]:
        """The domains with more than `most`, which is not below 0."""
        full = {value for value, count in self._counted.items() if count > most}
        for value, count in self._changed.items():
            (full.add if count > most else full.discard)(value)
        return full

    def fewest(self, min_domains: int) -> int:
        """The fewest in any domain; 0 while there are fewer domains than there should be."""
        changed = self._changed
        if not changed:
            return self._fewest if len(self._counted) >= min_domains else 0
        if len(self._counted.keys() | changed.keys()) < min_domains:
            return 0
        fewest = min(changed.values())
        if self._lowest() - changed.keys():
            return min(fewest, self._fewest)
        return min([fewest, *(count for value, count in self._counted.items() if value not in changed)])

    def _lowest(self) -> frozenset[str]:
        if self._with_fewest is None:
            fewest = self._fewest
            self._with_fewest = frozenset(value for value, count in self._counted.items() if count == fewest)
        return self._with_fewest


class Spread:
    """The hard constraints of a Pod and their counts; those are shared until something is tried."""

    __slots__ = ("_constraints", "_domains", "_selects_itself")

    def __init__(self, constraints: Sequence[Constraint], domains: list[Domains], selects_itself: list[bool]) -> None:
        """`selects_itself`: for each constraint, whether the Pod would count once it is there."""
        self._constraints = constraints
        self._domains = domains
        self._selects_itself = selects_itself

    def clone(self) -> "Spread":
        """A copy whose counts can be changed."""
        return Spread(self._constraints, [each.clone() for each in self._domains], self._selects_itself)

    def count(self, pod: Pod, other: Pod, node: NodeInfo, sign: int) -> None:
        """Counts `other` in (1) or out (-1) on `node`, on behalf of `pod`."""
        labels = node.node.labels
        if other.namespace != pod.namespace or not has_keys(labels, self._constraints):
            return
        for constraint, domains in zip(self._constraints, self._domains, strict=True):
            if constraint.selector.matches(other.labels) and constraint.includes(pod, node.node):
                domains.change(labels[constraint.topology_key], sign)

    def answer(self, node: NodeInfo) -> Status | None:
        """Whether the Pod may be on the node."""
        labels = node.node.labels
        for constraint, domains, itself in zip(self._constraints, self._domains, self._selects_itself, strict=True):
            value = labels.get(constraint.topology_key)
            if value is None:
                return NO_LABEL
            if domains.count(value) + itself - domains.fewest(constraint.min_domains) > constraint.max_skew:
                return NOT_SPREAD
        return None

    def answers(self, nodes: Sequence[NodeInfo]) -> list[Status | None]:
        """As `answer`, for many nodes."""
        labels = [node.node.labels for node in nodes]
        answers: list[Status | None] = [None] * len(nodes)
        for constraint, domains, itself in zip(self._constraints, self._domains, self._selects_itself, strict=True):
            key = constraint.topology_key
            full = domains.above(constraint.max_skew + domains.fewest(constraint.min_domains) - itself)
            answers = [
                answer or (NO_LABEL if key not in each else NOT_SPREAD if each[key] in full else None)
                for answer, each in zip(answers, labels, strict=True)
            ]
        return answers


def counted(
    pod: Pod, nodes: Sequence[NodeInfo], constraints: Sequence[Constraint], remembered: CountsByQuestion
) -> Spread:
    """The counts over all `nodes` that have the labels of every constraint."""
    keys = keys_of(constraints)
    domains = []
    for constraint in constraints:
        question = keys, constraint.question(pod)
        domains.append(Domains(remembered.ask(question, nodes, _matching(pod, constraint, constraints))))
    return Spread(constraints, domains, [each.selector.matches(pod.labels) for each in constraints])


def _matching(
    pod: Pod, constraint: Constraint, all_of_them: Sequence[Constraint]
) -> Callable[[NodeInfo], Mapping[str, int]]:
    keys = keys_of(all_of_them)

    def contribution(node: NodeInfo) -> Mapping[str, int]:
        labels = node.node.labels
        if not keys <= labels.keys() or not constraint.includes(pod, node.node):
            return {}
        return {labels[constraint.topology_key]: constraint.selector.matching_pods(node.pods, pod.namespace)}

    return contribution
