"""An attempt as a trace, in the words of KEP-5927. What was concluded and not told carries `podtrail.inferred`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from podtrail.otlp import (
    ROOT_NAME,
    Event,
    Group,
    Link,
    Rejection,
    Status,
    Value,
    encode_span,
    frame,
    resource_header,
    scope_header,
)
from podtrail.reconstruction.draft import POINTS, Draft, Identity, PluginMarks, Rebuilt
from podtrail.reconstruction.failed_scheduling import Failure, read_failure
from podtrail.reconstruction.identifiers import span_id, trace_id, trace_of

_RESOURCE: Final = resource_header({"service.name": "kube-scheduler", "podtrail.reconstructed": True})
_SCOPE: Final = scope_header("podtrail.reconstruction")
_NAMES_SHOWN: Final = 10
_SCORES_SHOWN: Final = 5
_PREDICATES: Final = "Computing predicates done"
_PRIORITIZING: Final = "Prioritizing done"
_IN_CYCLE: Final = ("preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit")
_IN_BINDING: Final = ("waitOnPermit", "preBind", "bind", "postBind")
_ORDER: Final = {point: at for at, point in enumerate(POINTS.values())}
_CYCLE: Final = "schedulingCycle"
_BINDING: Final = "bindingCycle"
_BY_LINES: Final = "from the first to the last line of the phase, which is the least it took"
_AS_CYCLE: Final = "as its cycle: nothing tells this phase's own time"

Inferred = Mapping[str, str]


def trace(rebuilt: Rebuilt) -> Group:
    """Return an attempt's spans, the root last."""
    spans = list(_Writer(rebuilt).spans())
    return Group(_RESOURCE, _SCOPE, trace_of(rebuilt.identity), frame(spans), len(spans))


class _Writer:
    """Writes one attempt."""

    def __init__(self, rebuilt: Rebuilt) -> None:
        self._draft: Draft = rebuilt.draft
        self._identity: Identity = rebuilt.identity
        self._trace = trace_of(rebuilt.identity)
        self._start = min(self._draft.start, self._draft.end)
        self._failure = self._read()

    def _read(self) -> Failure:
        draft = self._draft
        if draft.result == "Success" or not draft.message:
            return Failure(unschedulable=False)
        return read_failure(draft.message, draft.asked)

    def spans(self) -> Iterator[bytes]:
        """Yield the spans, children ahead of their parents."""
        begun = self._binding_begins()
        binds = begun is not None
        end = self._cycle_end(begun)
        yield from self._scheduling(end)
        if binds and begun is not None:
            yield from self._binding(min(begun, self._draft.end), self._draft.end)
        yield self._root()

    def _span(self, place: str, name: str, start: int, end: int, **more: object) -> bytes:
        inferred = more.get("inferred")
        attributes: dict[str, Value] = {}
        given = more.get("attributes")
        attributes.update(given if isinstance(given, dict) else {})
        if isinstance(inferred, Mapping) and inferred:
            attributes["podtrail.inferred"] = _told_how(inferred)
        parent, _, _ = place.rpartition("/")
        error = more.get("error")
        events, links = more.get("events"), more.get("links")
        return encode_span(
            trace_id=self._trace,
            span_id=span_id(self._trace, place),
            parent_span_id=span_id(self._trace, parent) if parent else b"",
            name=name,
            start=start,
            end=max(start, end),
            status=Status(2, error) if isinstance(error, str) and error else None,
            attributes=attributes,
            events=events if isinstance(events, list) else (),
            links=links if isinstance(links, list) else (),
        )

    def _root(self) -> bytes:
        draft, identity = self._draft, self._identity
        namespace, _, name = identity.pod.partition("/")
        attributes: dict[str, Value] = {
            "k8s.pod.name": name,
            "k8s.pod.namespace": namespace,
            "k8s.namespace.name": namespace,
            "podtrail.sources": [*sorted(draft.sources)],
            "podtrail.time.resolution_ns": draft.resolution,
            "scheduler.attempts": identity.number,
        }
        inferred = dict(draft.inferred)
        if identity.uid:
            attributes["k8s.pod.uid"] = identity.uid
        if not identity.counted:
            inferred["attempts"] = "counted from the first one seen: the Pod's beginning was not"
        if identity.profile:
            attributes["scheduler.profile"] = identity.profile
        if draft.wait is not None:
            attributes["scheduler.queue_wait_ms"] = draft.wait // 1_000_000
        if draft.result:
            attributes["scheduler.result"] = draft.result
        else:
            inferred["result"] = "not known"
        if draft.result == "Success":
            attributes["scheduler.selected_node"] = draft.node
        if nominated := draft.nominated or self._failure.nominated:
            attributes["scheduler.nominated_node"] = nominated
        if draft.group:
            attributes["scheduler.pod_group"] = draft.group
        error = draft.message or "failed; no source gives the message" if draft.result not in ("", "Success") else ""
        return self._span(
            _ROOT,
            ROOT_NAME,
            self._start,
            draft.end,
            attributes=attributes,
            inferred=inferred,
            error=error,
            links=list(self._links()),
            events=self._preemption(),
        )

    def _links(self) -> Iterator[Link]:
        identity = self._identity
        if identity.before is not None:
            before = trace_id(*identity.before)
            yield Link(before, span_id(before, _ROOT), {"podtrail.link.type": "previous-attempt"})
        if identity.parent:
            claimed, span = identity.parent
            yield Link(claimed, span, {"podtrail.link.type": "creation", "podtrail.link.trusted": False})

    def _preemption(self) -> list[Event]:
        draft = self._draft
        count = draft.victim_count if draft.victim_count is not None else self._failure.victims
        if count is None and not draft.victims:
            return []
        told: dict[str, Value] = {
            "scheduler.victims.count": len(draft.victims) if count is None else count,
            "scheduler.nominated_node": draft.nominated or self._failure.nominated,
        }
        if draft.victims:
            told["scheduler.victims.names"] = list(draft.victims[:_NAMES_SHOWN])
        return [Event(draft.end, "preemption", told)]

    def _binding_begins(self) -> int | None:
        """Return when the binding cycle begins, at the latest; None when the attempt did not come so far."""
        draft = self._draft
        known = draft.waiting_at or draft.binding_at
        if known is not None:
            return known
        if draft.result == "Success" or self._failure.point in _IN_BINDING:
            block_end = draft.block.start + draft.block.took if draft.block else None
            return block_end or draft.chosen_at or self._start
        return None

    def _cycle_end(self, binding: int | None) -> int:
        draft = self._draft
        if draft.chosen_at is not None:
            return max(draft.chosen_at, min(draft.totalled, draft.end))
        if draft.block is not None and draft.post_filtered is None and binding is not None:
            return min(draft.block.start + draft.block.took, draft.end)
        return draft.end if binding is None else binding

    def _scheduling(self, end: int) -> Iterator[bytes]:
        draft = self._draft
        place = f"{_ROOT}/{_CYCLE}"
        inferred: dict[str, str] = {}
        if "start" in draft.inferred:
            inferred["start"] = "as the attempt's"
        if draft.chosen_at is None and draft.result == "Success":
            inferred["end"] = (
                "the beginning of the bind" if draft.binding_at else "nothing tells when a node was chosen"
            )
        for point in _IN_CYCLE:
            yield from self._phase(place, point, self._start, end)
        for refusal in self._failure.refusals:
            if not refusal.point:  # of a group of Pods: no single extension point gives it
                plugin = refusal.plugin or _UNNAMED
                yield self._plugin(place, "", plugin, None, [refusal], (self._start, end))
        failed = draft.result == "Error" and self._binding_begins() is None
        attributes = {**self._of_phase(_CYCLE), **({"scheduler.result": draft.result} if failed else {})}
        error = draft.message if failed else ""
        yield self._span(place, _CYCLE, self._start, end, attributes=attributes, inferred=inferred, error=error)

    def _of_phase(self, phase: str) -> dict[str, Value]:
        told: dict[str, Value] = {"scheduler.phase": phase}
        if self._identity.profile:
            told["scheduler.profile"] = self._identity.profile
        return told

    def _phase(self, cycle: str, point: str, start: int, end: int) -> Iterator[bytes]:
        """Yield a phase of the scheduling cycle with its plugins, if anything tells of it."""
        plugins = {plugin: marks for (at, plugin), marks in self._draft.plugins.items() if at == point}
        refusals = [one for one in self._failure.refusals if one.point == point]
        window, inferred = self._window(point, plugins, start, end)
        told = point == "filter" and (self._failure.nodes is not None or self._draft.evaluated is not None)
        if window is None:
            if not (plugins or refusals or told or (point == "filter" and self._draft.result == "Success")):
                return
            window, inferred = (start, end), {"start": _AS_CYCLE, "end": _AS_CYCLE}
        place = f"{cycle}/{point}"
        for plugin in {**plugins, **dict.fromkeys(one.plugin or _UNNAMED for one in refusals)}:
            of_it = [one for one in refusals if (one.plugin or _UNNAMED) == plugin]
            yield self._plugin(place, point, plugin, plugins.get(plugin), of_it, window)
        attributes = {**self._of_phase(point), **self._counts(point)}
        yield self._span(place, point, *window, attributes=attributes, inferred=inferred)

    def _window(
        self, point: str, plugins: Mapping[str, PluginMarks], start: int, end: int
    ) -> tuple[tuple[int, int] | None, Inferred]:
        draft = self._draft
        if draft.block and point in ("filter", "score"):
            at = draft.block.start
            for name, took in draft.block.steps:
                if (point, name) in (("filter", _PREDICATES), ("score", _PRIORITIZING)):
                    how = "a step of the trace in the log, to the millisecond"
                    return (min(at, end), min(at + took, end)), {"start": how, "end": how}
                at += took
        first = min((marks.first for marks in plugins.values()), default=None)
        last = max((marks.last for marks in plugins.values()), default=None)
        if point == "score" and draft.totalled:
            last = max(last or 0, draft.totalled)
            first = first or last
        if point == "postFilter" and draft.post_filtered:
            last = max(last or 0, draft.post_filtered)
            first = first or last
        if first is None or last is None:
            return None, {}
        return (max(first, start), min(max(first, last), max(end, first))), {"start": _BY_LINES, "end": _BY_LINES}

    def _counts(self, point: str) -> dict[str, Value]:
        draft, failure = self._draft, self._failure
        counts: dict[str, Value] = {}
        if point == "filter":
            if failure.nodes is not None:
                counts["scheduler.nodes.total"] = failure.nodes
            if draft.evaluated is not None:
                counts["scheduler.nodes.evaluated"] = draft.evaluated
            feasible = draft.feasible if draft.feasible is not None else failure.feasible
            if feasible is not None:
                counts["scheduler.nodes.feasible"] = feasible
        elif point == "score" and draft.totals:
            best = sorted(draft.totals.items(), key=lambda one: (-one[1], one[0]))[:_SCORES_SHOWN]
            counts["scheduler.score.nodes"] = [node for node, _ in best]
            counts["scheduler.score.totals"] = [score for _, score in best]
            if draft.node in draft.totals:
                counts["scheduler.score.selected"] = draft.totals[draft.node]
        return counts

    def _plugin(
        self,
        phase: str,
        point: str,
        plugin: str,
        marks: PluginMarks | None,
        refusals: Sequence[Rejection],
        window: tuple[int, int],
    ) -> bytes:
        attributes: dict[str, Value] = {"scheduler.plugin.name": plugin}
        if point:
            attributes["scheduler.plugin.extension_point"] = point
        inferred: dict[str, str] = {}
        if marks is None:
            inferred["plugin"] = "from the words of the reason"
            start, end = window
            inferred["start"] = inferred["end"] = "as its phase: nothing tells the plugin's own time"
        else:
            start, end = max(marks.first, window[0]), min(marks.last, window[1])
            inferred["start"] = inferred["end"] = "from its lines, which is the least it took"
            if marks.scores:
                attributes["scheduler.nodes.evaluated"] = marks.scored
                attributes["scheduler.score.highest"] = max(marks.scores.values())
                attributes["scheduler.score.lowest"] = min(marks.scores.values())
                if self._draft.node in marks.scores:
                    attributes["scheduler.score.selected"] = marks.scores[self._draft.node]
        events = [self._refused(refusal, marks, end) for refusal in refusals]
        if refusals and (rejected := sum(refusal.nodes or 0 for refusal in refusals)):
            attributes["scheduler.nodes.rejected"] = rejected
        name = f"plugin: {plugin}"
        return self._span(
            f"{phase}/{name}", name, start, max(start, end), attributes=attributes, inferred=inferred, events=events
        )

    def _refused(self, refusal: Rejection, marks: PluginMarks | None, time: int) -> Event:
        told: dict[str, Value] = {"scheduler.result": refusal.status, "scheduler.reason": refusal.reason}
        if refusal.nodes is not None:
            told["scheduler.nodes.count"] = refusal.nodes
        if marks and marks.refused:
            told["scheduler.nodes.names"] = list(marks.refused[:_NAMES_SHOWN])
        return Event(time, "plugin rejected", told)

    def _binding(self, begun: int, end: int) -> Iterator[bytes]:
        draft, failure = self._draft, self._failure
        place = f"{_ROOT}/{_BINDING}"
        error = draft.message if draft.result == "Error" else ""
        inferred: dict[str, str] = {}
        if draft.binding_at is None and draft.waiting_at is None:
            inferred["start"] = "the end of the scheduling cycle, as far as that is known"
        if draft.waiting_at is not None:
            attributes = self._of_phase("waitOnPermit")
            until = draft.binding_at or end
            yield self._span(f"{place}/waitOnPermit", "waitOnPermit", begun, until, attributes=attributes)
        phase = failure.point or "bind"
        if phase in _IN_BINDING:
            start = draft.binding_at or begun
            yield from self._bind(f"{place}/{phase}", phase, start, end, error, inferred)
        attributes = {**self._of_phase(_BINDING), "scheduler.selected_node": draft.node}
        if draft.result:
            attributes["scheduler.result"] = draft.result
        yield self._span(place, _BINDING, begun, end, attributes=attributes, inferred=inferred, error=error)

    def _bind(self, place: str, phase: str, start: int, end: int, error: str, inferred: Inferred) -> Iterator[bytes]:
        draft = self._draft
        if plugin := draft.failed_plugin or self._failure.plugin:
            told: dict[str, Value] = {"scheduler.plugin.name": plugin, "scheduler.plugin.extension_point": phase}
            name = f"plugin: {plugin}"
            yield self._span(f"{place}/{name}", name, start, end, attributes=told, inferred=inferred, error=error)
        attributes = self._of_phase(phase)
        if draft.throttled is not None:
            attributes["scheduler.client.throttled_ms"] = draft.throttled // 1_000_000
        yield self._span(place, phase, start, end, attributes=attributes, inferred=inferred, error=error)


def _told_how(inferred: Inferred) -> list[Value]:
    """Return what was concluded, each way of concluding once: `start, end: as its phase …`."""
    of_way: dict[str, list[str]] = {}
    for what, how in inferred.items():
        of_way.setdefault(how, []).append(what)
    return [f"{', '.join(whats)}: {how}" for how, whats in of_way.items()]


_ROOT: Final = "root"
_UNNAMED: Final = "unknown"
"""A plugin that nothing names."""
