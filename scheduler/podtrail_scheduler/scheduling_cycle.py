"""The scheduling cycle: one Pod at a time, from the queue to a chosen node with everything reserved on it."""

from collections.abc import Sequence

from podtrail_instrumentation import Span

from .attempt import Attempt, Choice, Failure, failure_on_node
from .cache import Cache
from .framework.diagnosis import Diagnosis
from .framework.filtering import FilterPhase, nodes_wanted
from .framework.node_info import NodeInfo
from .framework.runtime import Framework, Refused
from .framework.status import Code
from .nominator import Nominator

CYCLE_THRESHOLD = 50_000_000


class SchedulingCycle:
    """Remembers only where the last search for nodes stopped, so that the next one starts there."""

    def __init__(self, framework: Framework, cache: Cache, nominator: Nominator) -> None:
        self._framework = framework
        self._cache = cache
        self._nominator = nominator
        self._next_node = 0
        self._attributes = {"scheduler.phase": "schedulingCycle", "scheduler.profile": framework.profile.name}

    def run(self, attempt: Attempt) -> Choice:
        """Chooses a node, assumes the Pod there, reserves and asks for permission."""
        span = attempt.root.start("schedulingCycle", self._attributes)
        choice = self._choose(attempt, span)
        span.set_attributes({"scheduler.result": choice.failure.result if choice.failure else "Success"})
        if choice.failure is not None and choice.failure.result == "Error":
            span.fail(choice.failure.message)
        span.end(CYCLE_THRESHOLD)
        return choice

    def _choose(self, attempt: Attempt, span: Span) -> Choice:
        state, pod = attempt.state, attempt.pod
        nodes = self._cache.nodes()
        diagnosis = Diagnosis(len(nodes))
        if not nodes:
            return Choice(failure=Failure("Unschedulable", diagnosis.message()))
        refused = self._framework.run_pre_filter(span, state, pod, nodes)
        if refused is not None:
            return self._refused_early(attempt, span, diagnosis, refused)
        feasible, refused = self._feasible(attempt, span, diagnosis, nodes)
        if refused is not None:
            return Choice(failure=Failure("Error", refused.status.message))
        if not feasible:
            return Choice(failure=self._make_room(attempt, span, diagnosis))
        chosen = feasible[0]
        if len(feasible) > 1:
            chosen, refused = self._framework.run_score(span, state, pod, feasible)
            if refused is not None:
                return Choice(failure=Failure("Error", refused.status.message))
        return self._take(attempt, span, chosen.name)

    def _refused_early(self, attempt: Attempt, span: Span, diagnosis: Diagnosis, refused: Refused) -> Choice:
        if refused.status.code is Code.ERROR:
            return Choice(failure=Failure("Error", refused.status.message))
        diagnosis.pre_filter_message = refused.status.message
        diagnosis.refused_by.add(refused.plugin)
        return Choice(failure=self._make_room(attempt, span, diagnosis))

    def _feasible(
        self, attempt: Attempt, span: Span, diagnosis: Diagnosis, nodes: Sequence[NodeInfo]
    ) -> tuple[list[NodeInfo], Refused | None]:
        phase = FilterPhase(self._framework, span, attempt.state, attempt.pod)
        found: list[NodeInfo] = []
        nominated = self._cache.node(attempt.pod.nominated_node_name)
        if nominated is not None:
            found = phase.search(self._nominator.with_nominated(attempt.pod, [nominated]), 1)
        if not found:
            start = self._next_node % len(nodes)
            rotated = nodes if not start else [*nodes[start:], *nodes[:start]]
            before = phase.evaluated
            if nominated is not None:
                rotated = [node for node in rotated if node is not nominated]
            found = phase.search(self._nominator.with_nominated(attempt.pod, rotated), nodes_wanted(len(nodes)))
            self._next_node = (start + phase.evaluated - before) % len(nodes)
        return found, phase.end(diagnosis)

    def _make_room(self, attempt: Attempt, span: Span, diagnosis: Diagnosis) -> Failure:
        nominated_node: str | None = ""
        if self._framework.profile.post_filter:
            statuses = dict(diagnosis.statuses())
            result = self._framework.run_post_filter(span, attempt.state, attempt.pod, statuses)
            if result.status is not None:
                if result.status.code is Code.ERROR:
                    return Failure("Error", result.status.message)
                diagnosis.post_filter_message = result.status.message
            nominated_node = result.nominated_node
        return Failure(
            "Unschedulable", diagnosis.message(), frozenset(diagnosis.refused_by), nominated_node=nominated_node
        )

    def _take(self, attempt: Attempt, span: Span, node: str) -> Choice:
        state, pod = attempt.state, attempt.pod
        self._cache.assume(pod, node)
        waiting = None
        refused = self._framework.run_reserve(span, state, pod, node)
        if refused is None:
            waiting, refused = self._framework.run_permit(span, state, pod, node)
        if refused is None:
            return Choice(node, waiting=waiting)
        self._framework.run_unreserve(span, state, pod, node)
        self._cache.forget(pod.uid)
        return Choice(node, failure_on_node(refused, node))
