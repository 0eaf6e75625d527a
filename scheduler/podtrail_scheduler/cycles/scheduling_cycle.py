"""The scheduling cycle: one Pod at a time, from the queue to a chosen node with everything reserved on it."""

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, TypeVar

from podtrail_instrumentation import Log, Span

from podtrail_scheduler.framework.diagnosis import Diagnosis
from podtrail_scheduler.framework.extending import ExtenderError, Extenders
from podtrail_scheduler.framework.status import unresolvable
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.runtime.calling import PhaseFailure
from podtrail_scheduler.runtime.filtering import FilterPhase, nodes_wanted
from podtrail_scheduler.runtime.framework import Framework, PreFilterOutcome
from podtrail_scheduler.runtime.scoring import ScorePhase

from .attempt import AttemptFailure, RunningAttempt, ScoreExplanation, failed_on_node
from .attempt_spans import NodeSearch
from .cache import Cache

Answer = TypeVar("Answer")

CYCLE_THRESHOLD = 50_000_000
"""Nanoseconds from which on a scheduling cycle is logged with its steps."""


class Turn:
    """Where the last search for nodes stopped, so that the next one, of whichever profile, starts there."""

    def __init__(self) -> None:
        self.next_node = 0


class SchedulingCycle:
    """Runs the scheduling cycles of one profile: from PreFilter to Permit."""

    def __init__(
        self,
        framework: Framework,
        cache: Cache,
        turn: Turn,
        random: Random,
        *,
        log: Log,
        extenders: Extenders | None = None,
    ) -> None:
        """`log` is told of a search for a node that took long, when it is over."""
        self._framework = framework
        self._cache = cache
        self._turn = turn
        self._random = random
        self._log = log
        self._extenders = extenders
        profile = framework.profile
        self._attributes = {"scheduler.phase": "schedulingCycle", "scheduler.profile": profile.name}
        self._scores = bool(profile.score) or (extenders is not None and extenders.prioritizes)
        self._all_wanted = self._scores or (extenders is not None and extenders.filters)

    async def run(self, attempt: RunningAttempt) -> AttemptFailure | None:
        """Chooses a node, assumes the Pod there, reserves and asks for permission."""
        span = attempt.root.start("schedulingCycle", self._attributes)
        failure = await self._run(attempt, span)
        if span.recording:
            span.set_attributes({"scheduler.result": failure.result if failure else "Success"})
            if failure is not None and failure.result == "Error":
                span.fail(failure.message)
        span.end(CYCLE_THRESHOLD)
        assert span.ended is not None
        attempt.cycle_took = span.ended - span.started
        return failure

    async def _run(self, attempt: RunningAttempt, span: Span) -> AttemptFailure | None:
        nodes = self._cache.nodes()
        diagnosis = Diagnosis(len(nodes))
        if not nodes:
            return AttemptFailure("Unschedulable", diagnosis.message())
        search = NodeSearch(self._framework.clock.now)
        chosen = await self._choose(attempt, span, diagnosis, search)
        search.end(attempt.pod, self._log)
        if isinstance(chosen, AttemptFailure):
            return chosen
        return await (self._take(attempt, span, chosen) if chosen else self._make_room(attempt, span, diagnosis))

    async def _choose(
        self, attempt: RunningAttempt, span: Span, diagnosis: Diagnosis, search: NodeSearch
    ) -> str | AttemptFailure:
        """The best node for the Pod, empty when it fits none; `search` is told the steps of the way there."""
        prepared = await self._work(
            attempt, self._framework.run_pre_filter, span, attempt.state, attempt.pod, self._cache.nodes()
        )
        diagnosis.refused_by.update(prepared.restricting)
        refused = prepared.refused
        found: Sequence[int] = ()
        failed = None
        if refused is None:
            try:
                found, failed = await self._feasible(attempt, span, diagnosis, prepared)
            except ExtenderError as refusal:
                return AttemptFailure("Error", str(refusal))
        elif refused.status.rejected:
            diagnosis.absent = refused.status
            diagnosis.pre_filter_message = refused.status.message
            diagnosis.blame(refused.plugin, refused.status)
        else:
            failed = refused
        if failed is not None:
            return AttemptFailure("Error", failed.status.message)
        search.step("Computing predicates done")
        if len(found) > 1:
            chosen, failed = await self._best(attempt, span, found)
            if failed is not None:
                return AttemptFailure("Error", failed.status.message)
            search.step("Prioritizing done")
            return chosen
        chosen = self._cache.nodes()[found[0]].name if found else ""
        if found and attempt.explanation is not None:
            attempt.explanation.feasible = [chosen]
        return chosen

    def _work(self, attempt: RunningAttempt, function: Callable[..., Answer], *args: Any) -> Awaitable[Answer]:
        """What `function` returns, in which plugins of others are called."""
        return self._framework.aside.work(attempt.pod.key, function, *args)

    async def _feasible(
        self, attempt: RunningAttempt, span: Span, diagnosis: Diagnosis, prepared: PreFilterOutcome
    ) -> tuple[list[int], PhaseFailure | None]:
        phase = FilterPhase(self._framework, span, attempt.state, attempt.pod)
        table = self._framework.table
        tried = table.index.get(attempt.pod.nominated_node_name)
        found: list[int] = []
        if tried is not None:
            found = await self._work(attempt, phase.search, [tried], 1)
            if found and self._extenders is not None and self._extenders.filters:
                found = await self._ask_extenders(attempt.pod, found, diagnosis)
        if not found and phase.failed is None:
            order, total = self._order(prepared, tried, diagnosis)
            profile = self._framework.profile
            wanted = nodes_wanted(total, profile.percentage_of_nodes_to_score) if self._all_wanted else 1
            for part in order:
                if len(found) < wanted:
                    found += await self._work(attempt, phase.search, part, wanted - len(found))
            self._turn.next_node = (self._turn.next_node + phase.evaluated) % len(table.infos)
            if found and phase.failed is None and self._extenders is not None and self._extenders.filters:
                found = await self._ask_extenders(attempt.pod, found, diagnosis)
                phase.feasible = len(found)
        attempt.evaluated, attempt.feasible = phase.evaluated, len(found)
        return found, phase.end(diagnosis)

    def _order(
        self, prepared: PreFilterOutcome, tried: int | None, diagnosis: Diagnosis
    ) -> tuple[Sequence[Sequence[int]], int]:
        """The nodes to look at, in parts, and how many they are; `tried` was looked at already."""
        table = self._framework.table
        if prepared.node_names is None:
            total = len(table.infos)
            start = self._turn.next_node % total
            parts: Sequence[Sequence[int]] = [range(start, total), range(start)]
        else:
            named = sorted(table.index[name] for name in prepared.node_names if name in table.index)
            plugins = " ".join(sorted(prepared.restricting))
            diagnosis.absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{plugins}]")
            total = len(named)
            start = self._turn.next_node % total if total else 0
            parts = [named[start:], named[:start]]
        if tried is not None:
            parts = [[each for each in part if each != tried] for part in parts]
        return parts, total

    async def _ask_extenders(self, pod: Pod, found: Sequence[int], diagnosis: Diagnosis) -> list[int]:
        assert self._extenders is not None
        table = self._framework.table
        names = await self._extenders.filter(pod, [table.infos[index].name for index in found], diagnosis)
        return [table.index[name] for name in names if name in table.index]

    async def _best(self, attempt: RunningAttempt, span: Span, found: Sequence[int]) -> tuple[str, PhaseFailure | None]:
        phase = ScorePhase(self._framework, attempt.state, attempt.pod, found)
        phase.observed = attempt.explanation is not None
        if self._scores:
            refused = await self._work(attempt, phase.run, span)
            if refused is not None:
                return "", refused
        if self._extenders is not None and self._extenders.prioritizes:
            phase.add(await self._extenders.prioritize(attempt.pod, phase.names))
        if attempt.explanation is not None:
            _explain(attempt.explanation, phase)
        best = phase.best(self._random)
        span.add_event("Prioritizing done")
        return best, None

    async def _make_room(self, attempt: RunningAttempt, span: Span, diagnosis: Diagnosis) -> AttemptFailure:
        nominated_node: str | None = ""
        if self._framework.profile.post_filter:
            statuses = diagnosis.statuses(self._framework.table.index)
            result = await self._framework.run_post_filter(span, attempt.state, attempt.pod, statuses)
            if result.status is not None:
                diagnosis.post_filter_message = result.status.message
            nominated_node = result.nominated_node
        return AttemptFailure(
            "Unschedulable",
            diagnosis.message(),
            frozenset(diagnosis.refused_by),
            frozenset(diagnosis.pending_on),
            nominated_node,
        )

    async def _take(self, attempt: RunningAttempt, span: Span, node: str) -> AttemptFailure | None:
        state, pod = attempt.state, attempt.pod
        attempt.node = node
        self._cache.assume(pod, node)
        self._framework.nominator.withdraw(pod.uid)
        refused = await self._framework.run_reserve(span, state, pod, node)
        if refused is None:
            attempt.waiting, refused = await self._framework.run_permit(span, state, pod, node)
        if refused is None:
            return None
        await self._framework.run_unreserve(span, state, pod, node)
        self._cache.forget(pod.uid)
        return failed_on_node(refused, node)


def _explain(explanation: ScoreExplanation, phase: ScorePhase) -> None:
    names = phase.names
    explanation.feasible = names
    explanation.totals = dict(zip(names, phase.sums(), strict=True))
    explanation.scores = {plugin: dict(zip(names, scores, strict=True)) for plugin, scores in phase.by_plugin.items()}
