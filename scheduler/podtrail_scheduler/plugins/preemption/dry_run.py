"""Trying on copies of nodes which Pods would have to go for another to fit."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, error, unresolvable
from podtrail_scheduler.framework.trial import FilterTrial
from podtrail_scheduler.objects import Pod, PodDisruptionBudget

from .victims import Candidate, by_importance, split_by_budgets

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")


class DryRunResult(NamedTuple):
    """The nodes that would do, and why the others that were tried would not."""

    candidates: list[Candidate]
    refusals: Mapping[str, Status]


class DryRun:
    """Looks for victims on each node, for one Pod in one attempt."""

    def __init__(self, handle: Handle, state: CycleState, pod: Pod) -> None:
        """`state` is the attempt's, as PreFilter left it."""
        self._trial = handle.trial
        self._budgets = list(handle.listers.all(PodDisruptionBudget))
        self._now = handle.clock.now()
        self._state = state
        self._pod = pod

    def run(self, nodes: Sequence[NodeInfo], offset: int, wanted: int) -> DryRunResult:
        """Tries `nodes` from `offset` on until there are `wanted` candidates, one without violations among them."""
        clean: list[Candidate] = []
        violating: list[Candidate] = []
        refusals: dict[str, Status] = {}
        for turn in range(len(nodes)):
            node = nodes[(offset + turn) % len(nodes)]
            found = self._on(node)
            if isinstance(found, Status):
                refusals[node.name] = found
                continue
            (violating if found.violations else clean).append(found)
            if clean and len(clean) + len(violating) >= wanted:
                break
        return DryRunResult(clean + violating, refusals)

    def _on(self, node: NodeInfo) -> Candidate | Status:
        lower = [each for each in node.pods.values() if each.priority < self._pod.priority]
        if not lower:
            return NO_VICTIMS
        supposed = _Supposed(self._trial, self._state.clone(), self._pod, node.clone())
        supposed.take(lower)
        refused = supposed.failed or supposed.refusal()
        if refused is not None:
            return refused
        violating, others = split_by_budgets(by_importance(lower, self._now), self._budgets)
        violations = 0
        for victim in violating:
            violations += not supposed.give_back(victim)
        for victim in others:
            supposed.give_back(victim)
        if supposed.failed is not None:
            return supposed.failed
        if not supposed.victims:
            return error(f'expected at least one victim pod on node "{node.name}"')
        return Candidate(node.name, tuple(by_importance(supposed.victims, self._now)), violations)


class _Supposed:
    """A copy of a node, and what PreFilter wrote kept in step with it."""

    def __init__(self, trial: FilterTrial, state: CycleState, pod: Pod, node: NodeInfo) -> None:
        self.victims: list[Pod] = []
        self.failed: Status | None = None
        """The first failure of a plugin, None when there was none."""
        self._trial = trial
        self._state = state
        self._pod = pod
        self._node = node

    def take(self, pods: Sequence[Pod]) -> None:
        """Removes `pods` from the copy of the node."""
        for each in pods:
            self._node.remove(each)
            self._note(self._trial.remove_pod(self._state, self._pod, each, self._node))

    def refusal(self) -> Status | None:
        """Why the Pod does not fit now."""
        refused = self._trial.filter_with_nominated(self._state, self._pod, self._node)
        return None if refused is None else refused[1]

    def give_back(self, victim: Pod) -> bool:
        """Puts `victim` back if the Pod still fits then; otherwise it is one of the victims, and False."""
        self._node.add(victim)
        self._note(self._trial.add_pod(self._state, self._pod, victim, self._node))
        if self.refusal() is None:
            return True
        self.take((victim,))
        self.victims.append(victim)
        return False

    def _note(self, status: Status | None) -> None:
        if status is not None and self.failed is None:
            self.failed = status
