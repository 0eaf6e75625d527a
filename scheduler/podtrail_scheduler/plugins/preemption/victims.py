"""Which Pods matter more, which deletions break a disruption budget, and whose node is taken."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from podtrail_scheduler.objects import Pod, PodDisruptionBudget

_LOWEST_PRIORITY = -(2**31)


class Candidate(NamedTuple):
    """A node where the Pod fits without the victims."""

    node_name: str
    victims: tuple[Pod, ...]
    """Pods to delete, the most important first."""
    violations: int
    """How many of them go against a PodDisruptionBudget."""


def started(pod: Pod, now: int) -> int:
    """When it started, unix nanoseconds; `now` when it has not yet."""
    return pod.start_time or now


def by_importance(pods: Iterable[Pod], now: int) -> list[Pod]:
    """The most important first: the highest priority, then the longest running."""
    return sorted(pods, key=lambda pod: (-pod.priority, started(pod, now)))


def split_by_budgets(pods: Iterable[Pod], budgets: Sequence[PodDisruptionBudget]) -> tuple[list[Pod], list[Pod]]:
    """Those whose deletion violates a budget, and the others, if they are deleted in the given order."""
    left = [budget.disruptions_allowed for budget in budgets]
    violating: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        (violating if _violates(pod, budgets, left) else others).append(pod)
    return violating, others


def choose(candidates: Sequence[Candidate], now: int) -> Candidate:
    """The one whose victims matter least, the first of equals.

    Fewest violations, lowest highest priority, lowest sum of priorities, fewest victims, latest start of the longest
    running of those with the highest priority.
    """
    costs: tuple[Callable[[Candidate], int], ...] = (
        lambda each: each.violations,
        lambda each: each.victims[0].priority,
        lambda each: sum(victim.priority - _LOWEST_PRIORITY for victim in each.victims),
        lambda each: len(each.victims),
        lambda each: -_earliest_start(each.victims, now),
    )
    return min(candidates, key=lambda each: tuple(cost(each) for cost in costs))


def _violates(pod: Pod, budgets: Sequence[PodDisruptionBudget], left: list[int]) -> bool:
    if not pod.labels:
        return False
    for number, budget in enumerate(budgets):
        if budget.namespace != pod.namespace or pod.name in budget.disrupted_pods:
            continue
        if budget.selector is None or budget.selector.empty or not budget.selector.matches(pod.labels):
            continue
        left[number] -= 1
        if left[number] < 0:
            return True
    return False


def _earliest_start(victims: Sequence[Pod], now: int) -> int:
    highest = max(victim.priority for victim in victims)
    return min(started(victim, now) for victim in victims if victim.priority == highest)
