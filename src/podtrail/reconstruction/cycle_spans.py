"""The scheduling cycle of an attempt: its phases, the plugins at work in them, who refused which nodes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from podtrail.otlp import Event, Rejection, Value
from podtrail.reconstruction.attempt_draft import Draft, PluginMarks
from podtrail.reconstruction.failed_scheduling import Failure
from podtrail.reconstruction.span_writer import ROOT, Inferred, SpanWriter

CYCLE: Final = "schedulingCycle"
_POINTS: Final = ("preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit")
_NAMES_SHOWN: Final = 10
_STEPS: Final = {"Computing predicates done": "filter", "Prioritizing done": "score"}
_BY_LINES: Final = "from the first to the last line of the phase, which is the least it took"
_BY_STEP: Final = "a step of the trace in the log, to the millisecond"
_AS_CYCLE: Final = "as its cycle: nothing tells this phase's own time"
_UNNAMED: Final = "unknown"
"""A plugin that nothing names."""

_Times = tuple[int, int]


class CycleSpans:
    """Tells the scheduling cycle of one attempt, which takes `times`."""

    def __init__(self, draft: Draft, failure: Failure, writer: SpanWriter, times: _Times) -> None:
        self._draft = draft
        self._failure = failure
        self._writer = writer
        self._times = times

    def spans(self, *, error: str) -> Iterator[bytes]:
        """Yield the cycle's spans, itself last; `error` when the attempt failed in it."""
        draft, place = self._draft, f"{ROOT}/{CYCLE}"
        inferred: dict[str, str] = {}
        if "start" in draft.inferred:
            inferred["start"] = "as the attempt's"
        if draft.chosen_at is None and draft.result == "Success":
            told = draft.binding_at is not None
            inferred["end"] = "the beginning of the bind" if told else "nothing tells when a node was chosen"
        for point in _POINTS:
            yield from self._phase(place, point)
        for refusal in self._failure.refusals:
            if not refusal.point:  # of a group of Pods: no single extension point gives it
                yield self._plugin(place, "", refusal.plugin or _UNNAMED, None, [refusal], self._times)
        attributes = self._writer.of_phase(CYCLE)
        if error:
            attributes["scheduler.result"] = draft.result
        yield self._writer.write(place, CYCLE, self._times, attributes, inferred=inferred, error=error)

    def _phase(self, cycle: str, point: str) -> Iterator[bytes]:
        """Yield a phase with its plugins, if anything tells of it."""
        draft = self._draft
        plugins = {plugin: marks for (at, plugin), marks in draft.plugins.items() if at == point}
        refusals = [one for one in self._failure.refusals if one.point == point]
        window, inferred = self._window(point, plugins)
        if window is None:
            filtered = point == "filter" and (self._failure.nodes is not None or draft.result == "Success")
            if not (plugins or refusals or filtered):
                return
            window, inferred = self._times, {"start": _AS_CYCLE, "end": _AS_CYCLE}
        place = f"{cycle}/{point}"
        for plugin in {**plugins, **dict.fromkeys(one.plugin or _UNNAMED for one in refusals)}:
            of_it = [one for one in refusals if (one.plugin or _UNNAMED) == plugin]
            yield self._plugin(place, point, plugin, plugins.get(plugin), of_it, window)
        attributes = {**self._writer.of_phase(point), **self._counts(point)}
        yield self._writer.write(place, point, window, attributes, inferred=inferred)

    def _window(self, point: str, plugins: Mapping[str, PluginMarks]) -> tuple[_Times | None, Inferred]:
        draft = self._draft
        start, end = self._times
        if draft.block:
            at = draft.block.start
            for name, took in draft.block.steps:
                if _STEPS.get(name) == point:
                    return (min(at, end), min(at + took, end)), {"start": _BY_STEP, "end": _BY_STEP}
                at += took
        times = [time for marks in plugins.values() for time in (marks.first, marks.last)]
        if point == "score" and draft.totalled:
            times.append(draft.totalled)
        if point == "postFilter" and draft.post_filtered:
            times.append(draft.post_filtered)
        if not times:
            return None, {}
        first = min(max(min(times), start), max(end, start))
        return (first, max(first, min(max(times), end))), {"start": _BY_LINES, "end": _BY_LINES}

    def _counts(self, point: str) -> dict[str, Value]:
        draft, failure = self._draft, self._failure
        counts: dict[str, Value] = {}
        if point == "filter":
            feasible = failure.feasible if draft.feasible is None else draft.feasible
            for name, count in (("total", failure.nodes), ("evaluated", draft.evaluated), ("feasible", feasible)):
                if count is not None:
                    counts[f"scheduler.nodes.{name}"] = count
        elif point == "score" and draft.scores:
            counts |= draft.scores.of_phase(draft.node)
        return counts

    def _plugin(
        self,
        phase: str,
        point: str,
        plugin: str,
        marks: PluginMarks | None,
        refusals: Sequence[Rejection],
        window: _Times,
    ) -> bytes:
        attributes: dict[str, Value] = {"scheduler.plugin.name": plugin}
        if point:
            attributes["scheduler.plugin.extension_point"] = point
        if marks is None:
            how = "as its phase: nothing tells the plugin's own time"
            inferred = {"plugin": "from the words of the reason", "start": how, "end": how}
            start, end = window
        else:
            inferred = dict.fromkeys(("start", "end"), "from its lines, which is the least it took")
            start = min(max(marks.first, window[0]), window[1])
            end = min(marks.last, window[1])
            if point == "score" and self._draft.scores:
                attributes |= self._draft.scores.of_plugin(plugin, self._draft.node)
        if rejected := sum(refusal.nodes or 0 for refusal in refusals):
            attributes["scheduler.nodes.rejected"] = rejected
        events = [_refused(refusal, marks, end) for refusal in refusals]
        name = f"plugin: {plugin}"
        return self._writer.write(f"{phase}/{name}", name, (start, end), attributes, inferred=inferred, events=events)


def _refused(refusal: Rejection, marks: PluginMarks | None, time: int) -> Event:
    told: dict[str, Value] = {"scheduler.result": refusal.status, "scheduler.reason": refusal.reason}
    if refusal.nodes is not None:
        told["scheduler.nodes.count"] = refusal.nodes
    if marks and marks.refused:
        told["scheduler.nodes.names"] = list(marks.refused[:_NAMES_SHOWN])
    return Event(time, "plugin rejected", told)
