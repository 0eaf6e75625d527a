"""Finding nodes for a Pod: the Filter plugins over as many nodes as are wanted.

Large clusters are not searched to the end: of N nodes, 100 and more are looked at until 50 - N/125 per cent (at least
5, at least 100 nodes) fit, starting where the last search stopped. Plugin by plugin over a slice of nodes gives the
same answer as node by node, because a slice is never longer than the number of nodes still wanted.
"""

from collections.abc import Sequence

from podtrail_instrumentation import Span

from podtrail_scheduler.objects import Pod

from .cycle_state import CycleState
from .diagnosis import Diagnosis, Refusal
from .extension_points import FilterPlugin
from .node_info import NodeInfo
from .runtime import PLUGIN_THRESHOLD, Framework, Refused
from .status import Code, Status

MIN_FEASIBLE = 100
MIN_PERCENTAGE = 5
NAMES_SHOWN = 10
"""How many names of refused nodes an event lists."""


def nodes_wanted(total: int) -> int:
    """How many feasible nodes are enough in a cluster of `total`."""
    if total < MIN_FEASIBLE:
        return total
    percentage = max(50 - total // 125, MIN_PERCENTAGE)
    return min(total, max(total * percentage // 100, MIN_FEASIBLE))


class _PluginRun:
    """One Filter plugin within one filter phase."""

    __slots__ = ("evaluated", "plugin", "refusals", "span", "stopped", "took")

    def __init__(self, plugin: FilterPlugin, span: Span) -> None:
        self.plugin = plugin
        self.span = span
        self.refusals: dict[Status, list[str]] = {}
        self.evaluated = 0
        self.took = 0
        self.stopped = span.started

    def keep(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[NodeInfo]:
        """Those of `nodes` that this plugin does not refuse."""
        fits, refusals, kept = self.plugin.filter, self.refusals, []
        for node in nodes:
            status = fits(state, pod, node)
            if status is None:
                kept.append(node)
            elif status in refusals:
                refusals[status].append(node.name)
            else:
                refusals[status] = [node.name]
        return kept


class FilterPhase:
    """The filter phase of one attempt; `search` may be called for several groups of nodes, then `end`."""

    def __init__(self, framework: Framework, parent: Span, state: CycleState, pod: Pod) -> None:
        self._framework = framework
        self._state = state
        self._pod = pod
        self._span = framework.start_phase(parent, "filter")
        self._plugins = [plugin for plugin in framework.profile.filter if plugin.name not in state.skip_filter]
        self._runs: dict[str, _PluginRun] = {}
        self.evaluated = 0
        self.feasible = 0

    def search(self, nodes: Sequence[NodeInfo], wanted: int) -> list[NodeInfo]:
        """The first `wanted` of `nodes` that fit, or all that do."""
        found: list[NodeInfo] = []
        position = 0
        while len(found) < wanted and position < len(nodes):
            part = nodes[position : position + wanted - len(found)]
            position += len(part)
            found += self._filter(part)
        self.evaluated += position
        self.feasible += len(found)
        return found

    def end(self, diagnosis: Diagnosis) -> Refused | None:
        """Ends the spans and tells `diagnosis` who refused what; the failure if a plugin had one."""
        failed = None
        for run in self._runs.values():
            for status, names in run.refusals.items():
                diagnosis.refusals.append(Refusal(run.plugin.name, status, names))
                diagnosis.refused_by.add(run.plugin.name)
                if status.code is Code.ERROR and failed is None:
                    failed = Refused(run.plugin.name, status)
            self._end_run(run)
        if self._span.recording:
            self._span.set_attributes(
                {
                    "scheduler.nodes.total": diagnosis.nodes_total,
                    "scheduler.nodes.evaluated": self.evaluated,
                    "scheduler.nodes.feasible": self.feasible,
                }
            )
        if self.feasible:
            self._span.add_event("Computing predicates done")
        none_fits = Refused("", Status(Code.UNSCHEDULABLE)) if not self.feasible else None
        self._framework.end_phase(self._span, failed or none_fits)
        return failed

    def _filter(self, nodes: Sequence[NodeInfo]) -> list[NodeInfo]:
        kept = list(nodes)
        for plugin in self._plugins:
            if not kept:
                break
            run = self._runs.get(plugin.name)
            if run is None:
                span = self._framework.start_plugin(self._span, plugin.name, "filter")
                run = self._runs[plugin.name] = _PluginRun(plugin, span)
            began = self._framework.clock.now()
            kept = self._call(run, kept)
            run.stopped = self._framework.clock.now()
            run.took += run.stopped - began
        return kept

    def _call(self, run: _PluginRun, nodes: list[NodeInfo]) -> list[NodeInfo]:
        run.evaluated += len(nodes)
        return self._framework.invoke(
            run.span, run.plugin.name, "filter", len(nodes), lambda: run.keep(self._state, self._pod, nodes)
        )

    def _end_run(self, run: _PluginRun) -> None:
        span = run.span
        if span.recording:
            span.set_attributes(
                {
                    "scheduler.nodes.evaluated": run.evaluated,
                    "scheduler.nodes.rejected": sum(map(len, run.refusals.values())),
                    "scheduler.duration_ns": run.took,
                }
            )
            for status, names in run.refusals.items():
                self._tell(span, run.stopped, status, names)
        span.end(PLUGIN_THRESHOLD, at=run.stopped)

    def _tell(self, span: Span, at: int, status: Status, names: list[str]) -> None:
        attributes: dict[str, str | int | bool | Sequence[str]] = {
            "scheduler.result": status.code.text,
            "scheduler.reason": status.message,
            "scheduler.nodes.count": len(names),
            "scheduler.nodes.names": tuple(names[:NAMES_SHOWN]),
        }
        if len(names) > NAMES_SHOWN:
            attributes["scheduler.nodes.names_cut"] = True
        if status.code is Code.ERROR:
            span.fail(status.message)
        span.add_event("plugin rejected", attributes, at=at)
