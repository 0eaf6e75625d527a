"""Finding nodes for a Pod: the Filter plugins over as many nodes as are wanted.

Large clusters are not searched to the end: of N nodes, 100 and more are looked at until 50 - N/125 per cent (at least
5, at least 100 nodes) fit, starting where the last search stopped. Plugin by plugin over a slice of nodes gives the
same answer as node by node, because a slice is never longer than the number of nodes still wanted. Neighbouring
plugins that look at one node only answer together and are remembered, see `remembering`.
"""

from collections.abc import Hashable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import cast

from podtrail_instrumentation import Span
from podtrail_instrumentation.steps import Step

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.diagnosis import Diagnosis, NodeRefusal
from podtrail_scheduler.framework.extension_points import FilterPlugin, LocalFilterPlugin
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Code, Status, error
from podtrail_scheduler.objects import Pod

from .calling import PLUGIN_THRESHOLD, REJECTED, PhaseFailure
from .framework import Framework
from .remembering import UNKNOWN

MIN_FEASIBLE = 100
MIN_PERCENTAGE = 5
NAMES_SHOWN = 10
"""How many names of refused nodes an event lists."""


def nodes_wanted(total: int, percentage: int = 0) -> int:
    """How many feasible nodes are enough of `total`; `percentage` 0 is adaptive (`numFeasibleNodesToFind`)."""
    if total < MIN_FEASIBLE:
        return total
    percentage = percentage or max(50 - total // 125, MIN_PERCENTAGE)
    return min(total, max(total * percentage // 100, MIN_FEASIBLE))


class _PluginSpans:
    """A span for each plugin that decided, with what all its calls took.

    Started when the plugin is first called if others may nest under it, recorded at the end if not.
    """

    def __init__(self, framework: Framework, phase: Span) -> None:
        self._caller = framework.caller
        self._phase = phase
        self._open: dict[str, Span] = {}
        self._began: dict[str, int] = {}
        self._stopped: dict[str, int] = {}
        self.took: dict[str, int] = {}

    def of(self, plugin: FilterPlugin) -> Span | None:
        """The span to call the plugin in, if any."""
        if not self._caller.nests(plugin.name, "filter"):
            return None
        if not self._phase.recording:
            return self._phase
        span = self._open.get(plugin.name)
        if span is None:
            span = self._open[plugin.name] = self._caller.start_plugin(self._phase, plugin.name, "filter")
        return span

    def add(self, plugin: str, began: int) -> None:
        """Adds the time of a call of `plugin` that began at `began` (unix nanoseconds) and is over now."""
        now = self._caller.clock.now()
        self.took[plugin] = self.took.get(plugin, 0) + now - began
        self._began.setdefault(plugin, began)
        self._stopped[plugin] = now

    def end(self, plugin: str, evaluated: int, refusals: Sequence[NodeRefusal]) -> None:
        """Records what a plugin did: how many nodes it decided on, and why it refused which."""
        took, phase = self.took.get(plugin, 0), self._phase
        span = self._open.get(plugin)
        if span is None and took >= PLUGIN_THRESHOLD:
            now = self._caller.clock.now()
            self._caller.note_long(phase, plugin, "filter", now - took, now)
        if not phase.recording or not (evaluated or took):
            return
        began = self._began.get(plugin, phase.started)
        stopped = self._stopped.get(plugin, began)
        told = {"scheduler.nodes.evaluated": evaluated, "scheduler.nodes.rejected": 0, "scheduler.duration_ns": took}
        events: list[Step] = []
        failure = ""
        for each in refusals:
            told["scheduler.nodes.rejected"] += len(each.nodes)
            events.append(Step(REJECTED, stopped, _rejection(each)))
            if each.status.code is Code.ERROR:
                failure = failure or each.status.message
        if span is None:
            phase.leaf(*self._caller.named(plugin, "filter"), began, stopped, told, events, failure)
            return
        span.set_attributes(told)
        for event in events:
            span.add_event(event.name, event.fields, event.at)
        if failure:
            span.fail(failure)
        span.end(PLUGIN_THRESHOLD, at=stopped)


class FilterPhase:
    """The filter phase of one attempt; `search` may be called for several groups of nodes, then `end`."""

    def __init__(self, framework: Framework, parent: Span, state: CycleState, pod: Pod) -> None:
        self._framework = framework
        self._state = state
        self._pod = pod
        self.span = framework.caller.start_phase(parent, "filter")
        self._plugins = [each for each in framework.profile.filter if each.name not in state.skip_filter]
        self._groups = [
            (local, list(plugins))
            for local, plugins in groupby(self._plugins, lambda each: each.name in framework.profile.local_filters)
        ]
        self._spans = _PluginSpans(framework, self.span)
        self._columns: dict[int, list[object]] = {}
        self._refusals: dict[tuple[str, Status], list[str]] = {}
        self._expected = _with_nominated(framework, pod)
        self.failed: PhaseFailure | None = None
        self.evaluated = 0
        self.feasible = 0

    def search(self, indexes: Sequence[int], wanted: int) -> list[int]:
        """The first `wanted` of the nodes with these indexes that fit, or all that do; fewer once a plugin failed."""
        found: list[int] = []
        position = 0
        while len(found) < wanted and position < len(indexes) and self.failed is None:
            part = indexes[position : position + wanted - len(found)]
            position += len(part)
            found += self._filter(part)
        self.evaluated += position
        self.feasible += len(found)
        return found

    def end(self, diagnosis: Diagnosis) -> PhaseFailure | None:
        """Ends the spans and tells `diagnosis` who refused what; the failure if a plugin had one."""
        by_plugin: dict[str, list[NodeRefusal]] = {}
        for (plugin, status), names in self._refusals.items():
            refusal = NodeRefusal(plugin, status, names)
            by_plugin.setdefault(plugin, []).append(refusal)
            diagnosis.add(refusal)
        left = self.evaluated
        for each in self._plugins:
            refusals = by_plugin.get(each.name, ())
            self._spans.end(each.name, left, refusals)
            if refusals:
                left -= sum(len(refusal.nodes) for refusal in refusals)
        if self.span.recording:
            told = {
                "scheduler.nodes.total": diagnosis.nodes_total,
                "scheduler.nodes.evaluated": self.evaluated,
                "scheduler.nodes.feasible": self.feasible,
            }
            self.span.set_attributes(told)
        if self.feasible:
            self.span.add_event("Computing predicates done")
        none_fits = PhaseFailure("", Status(Code.UNSCHEDULABLE)) if not self.feasible else None
        self._framework.caller.end_phase(self.span, self.failed or none_fits)
        return self.failed

    def _filter(self, indexes: Sequence[int]) -> Sequence[int]:
        kept: Sequence[int] = indexes
        beside: list[int] = []
        if self._expected:
            infos = self._framework.table.infos
            kept = [each for each in indexes if infos[each].name not in self._expected]
            apart = [each for each in indexes if infos[each].name in self._expected]
            beside = [each for each in apart if self._fits_beside_nominated(infos[each])]
        for number, (local, plugins) in enumerate(self._groups):
            if not kept or self.failed is not None:
                break
            if local:
                kept = self._ask_memory(number, cast("list[LocalFilterPlugin]", plugins), kept)
            else:
                for plugin in plugins:
                    kept = self._ask(plugin, kept)
        return [*kept, *beside] if beside else kept

    def _fits_beside_nominated(self, node: NodeInfo) -> bool:
        refused = self._framework.trial.filter_with_nominated(self._state, self._pod, node)
        if refused is not None:
            self._refuse(refused, node.name)
        return refused is None

    def _ask_memory(self, number: int, plugins: Sequence[LocalFilterPlugin], indexes: Sequence[int]) -> Sequence[int]:
        column = self._columns.get(number)
        if column is None:
            keys: list[Hashable] = [number]
            for each in plugins:
                key = self._framework.caller.key(each, "filter", each.filter_key, self._pod)
                if isinstance(key, Status):
                    self._fail(each.name, key, ())
                    return []
                keys.append((each.name, key))
            column = self._columns[number] = self._framework.memory.column(tuple(keys))
        answers = _pick(column, indexes)
        if UNKNOWN in answers:
            self._answer(plugins, [each for each in indexes if column[each] is UNKNOWN], column)
            answers = _pick(column, indexes)
        if answers.count(None) == len(answers):
            return indexes
        infos = self._framework.table.infos
        kept = []
        for index, answer in zip(indexes, answers, strict=True):
            if answer is None:
                kept.append(index)
            elif answer is not UNKNOWN:
                self._refuse(cast("tuple[str, Status]", answer), infos[index].name)
        return kept

    def _answer(self, plugins: Sequence[LocalFilterPlugin], indexes: list[int], column: list[object]) -> None:
        """Puts into the column what the plugins say about these nodes; a failure is not remembered."""
        for plugin in plugins:
            statuses = self._statuses(plugin, indexes)
            left = []
            for index, status in zip(indexes, statuses, strict=True):
                if status is None:
                    left.append(index)
                else:
                    column[index] = (plugin.name, status)
            indexes = left
            if self.failed is not None:
                return
        for index in indexes:
            column[index] = None

    def _ask(self, plugin: FilterPlugin, indexes: Sequence[int]) -> Sequence[int]:
        if not indexes:
            return indexes
        statuses = self._statuses(plugin, indexes)
        if statuses.count(None) == len(statuses):
            return indexes
        infos, name = self._framework.table.infos, plugin.name
        kept = []
        for index, status in zip(indexes, statuses, strict=True):
            if status is None:
                kept.append(index)
            else:
                self._refuse((name, status), infos[index].name)
        return kept

    def _statuses(self, plugin: FilterPlugin, indexes: Sequence[int]) -> Sequence[Status | None]:
        infos, caller = self._framework.table.infos, self._framework.caller
        nodes = [infos[index] for index in indexes]
        span = self._spans.of(plugin)
        began = caller.clock.now()
        columns = self._framework.profile.column_filters.get(plugin.name)
        state, pod = self._state, self._pod
        if columns is not None:
            answer = caller.call(span, plugin, "filter", len(nodes), columns.filter_nodes, state, pod, nodes)
        else:
            answer = caller.call(span, plugin, "filter", len(nodes), _one_by_one, plugin, state, pod, nodes)
        self._spans.add(plugin.name, began)
        if caller.measures is not None:
            caller.measure(state, plugin.name, "filter", answer if isinstance(answer, Status) else None, began)
        if isinstance(answer, Status):
            return self._fail(plugin.name, answer, nodes)
        for status in answer:
            if status is not None and not status.rejected:
                return self._fail(plugin.name, status, nodes)
        return answer

    def _fail(self, plugin: str, status: Status, nodes: Sequence[NodeInfo]) -> Sequence[Status | None]:
        failure = error(f'running "{plugin}" filter plugin: {status.message}')
        if self.failed is None:
            self.failed = PhaseFailure(plugin, failure)
        return [failure] * len(nodes)

    def _refuse(self, answer: tuple[str, Status], node: str) -> None:
        if answer[1].code is Code.ERROR and self.failed is None:
            self.failed = PhaseFailure(*answer)
        names = self._refusals.get(answer)
        if names is None:
            self._refusals[answer] = [node]
        else:
            names.append(node)


def _one_by_one(
    plugin: FilterPlugin, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
) -> Sequence[Status | None]:
    fits = plugin.filter
    return [fits(state, pod, node) for node in nodes]


def _pick(column: list[object], indexes: Sequence[int]) -> list[object]:
    if isinstance(indexes, range):
        return column[indexes.start : indexes.stop]
    return list(itemgetter(*indexes)(column)) if len(indexes) > 1 else [column[index] for index in indexes]


def _with_nominated(framework: Framework, pod: Pod) -> frozenset[str]:
    """The nodes that Pods of at least the priority of `pod` are nominated to."""
    nominator = framework.nominator
    return frozenset(
        name
        for name in nominator.nodes
        if any(each.priority >= pod.priority and each.uid != pod.uid for each in nominator.on(name))
    )


def _rejection(refusal: NodeRefusal) -> dict[str, str | int | bool | Sequence[str]]:
    status, names = refusal.status, refusal.nodes
    told: dict[str, str | int | bool | Sequence[str]] = {
        "scheduler.result": status.code.text,
        "scheduler.reason": status.message,
        "scheduler.nodes.count": len(names),
        "scheduler.nodes.names": tuple(names[:NAMES_SHOWN]),
    }
    if len(names) > NAMES_SHOWN:
        told["scheduler.nodes.names_cut"] = True
    return told
