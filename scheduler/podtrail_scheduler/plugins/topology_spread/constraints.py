"""A Pod's constraints, or those that the profile gives to Pods without any, made ready for counting."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from podtrail_scheduler.configuration.args import SYSTEM_DEFAULTING, DefaultConstraint, PodTopologySpreadArgs
from podtrail_scheduler.objects import (
    HOSTNAME,
    NO_EXECUTE,
    NO_SCHEDULE,
    ZONE,
    LabelSelector,
    Node,
    Pod,
    TopologySpreadConstraint,
)

from .default_selector import DefaultSelectors, Selector

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HONOR = "Honor"

SYSTEM_DEFAULTS = (
    DefaultConstraint(3, HOSTNAME, SCHEDULE_ANYWAY),
    DefaultConstraint(5, ZONE, SCHEDULE_ANYWAY),
)


class Constraint(NamedTuple):
    """One constraint; which nodes count is a matter of the Pod's node affinity and tolerations if they are honored."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    def question(self, pod: Pod) -> Hashable:
        """All that counts for the constraint depend on besides the nodes."""
        required = pod.affinity.node_affinity.required
        return (
            pod.namespace,
            self.topology_key,
            self.selector.question,
            (frozenset(pod.node_selector.items()), required) if self.honors_affinity else None,
            pod.tolerations if self.honors_taints else None,
        )

    def includes(self, pod: Pod, node: Node) -> bool:
        """Whether Pods on `node` count for `pod`."""
        if self.honors_affinity and not _wanted(pod, node):
            return False
        return not self.honors_taints or all(
            any(toleration.tolerates(taint) for toleration in pod.tolerations)
            for taint in node.taints
            if taint.effect in (NO_SCHEDULE, NO_EXECUTE)
        )


class Constraints:
    """Finds the constraints of Pods under a profile's args."""

    def __init__(self, args: PodTopologySpreadArgs, selectors: DefaultSelectors) -> None:
        self.system_defaulted = args.defaulting_type == SYSTEM_DEFAULTING
        """The defaults are Kubernetes' own: nodes that lack a label are scored by the others."""
        self._defaults = SYSTEM_DEFAULTS if self.system_defaulted else args.default_constraints
        self._selectors = selectors

    def of(self, pod: Pod, action: str) -> tuple[Constraint, ...]:
        """The constraints with that `whenUnsatisfiable`: the Pod's own if it has any at all, else the defaults."""
        if pod.topology_spread:
            return tuple(
                _constraint(each, _own_selector(each, pod.labels))
                for each in pod.topology_spread
                if each.when_unsatisfiable == action
            )
        defaults = [each for each in self._defaults if each.when_unsatisfiable == action]
        if not defaults:
            return ()
        selector = self._selectors.of(pod)
        if selector.empty:
            return ()
        return tuple(_constraint(each, selector) for each in defaults)


def has_keys(labels: Mapping[str, str], constraints: Iterable[Constraint]) -> bool:
    """Whether a node with these labels is in a domain of every constraint."""
    return all(each.topology_key in labels for each in constraints)


def keys_of(constraints: Sequence[Constraint]) -> frozenset[str]:
    """The node labels that the constraints are about."""
    return frozenset(each.topology_key for each in constraints)


def _wanted(pod: Pod, node: Node) -> bool:
    if not pod.node_selector.items() <= node.labels.items():
        return False
    required = pod.affinity.node_affinity.required
    return required is None or required.matches(node.labels, node.name)


def _own_selector(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector:
    if constraint.label_selector is None:
        return Selector(None)
    values = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    return Selector((LabelSelector(values), constraint.label_selector) if values else (constraint.label_selector,))


def _constraint(given: TopologySpreadConstraint | DefaultConstraint, selector: Selector) -> Constraint:
    return Constraint(
        given.max_skew,
        given.topology_key,
        selector,
        1 if given.min_domains is None else given.min_domains,
        given.node_affinity_policy in ("", HONOR),
        given.node_taints_policy == HONOR,
    )
