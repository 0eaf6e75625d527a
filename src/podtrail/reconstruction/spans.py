"""An attempt as a trace, in the words of KEP-5927. What was concluded and not told carries `podtrail.inferred`."""

from collections.abc import Iterator
from typing import Final

from podtrail.otlp import ROOT_NAME, Event, Group, Link, Value, frame, resource_header, scope_header
from podtrail.reconstruction.attempt_draft import Draft, PodIdentity, Rebuilt
from podtrail.reconstruction.configz import KnownConfigurations
from podtrail.reconstruction.cycle_spans import CycleSpans
from podtrail.reconstruction.failed_scheduling import Failure, read_failure
from podtrail.reconstruction.identifiers import span_id
from podtrail.reconstruction.span_writer import ROOT, Inferred, SpanWriter

_RESOURCE: Final = resource_header({"service.name": "kube-scheduler", "podtrail.reconstructed": True})
_SCOPE: Final = scope_header("podtrail.reconstruction")
_NAMES_SHOWN: Final = 10
_BINDING: Final = "bindingCycle"
_IN_BINDING: Final = ("waitOnPermit", "preBind", "bind", "postBind")


def trace(rebuilt: Rebuilt, configurations: KnownConfigurations | None = None) -> Group:
    """Return an attempt's spans, the root last; `configurations` are those that the scheduler was known to have."""
    told = _Trace(rebuilt)
    if configurations is not None:
        told.generation = configurations.at(told.start)
    spans = list(told.spans())
    return Group(_RESOURCE, _SCOPE, rebuilt.identity.trace_id, frame(spans), len(spans))


class _Trace:
    """Tells one attempt."""

    def __init__(self, rebuilt: Rebuilt) -> None:
        draft: Draft = rebuilt.draft
        self._draft = draft
        self._identity: PodIdentity = rebuilt.identity
        self._writer = SpanWriter(rebuilt.identity.trace_id, rebuilt.identity.profile)
        self._start = min(draft.start, draft.end)
        self.generation = ""
        failed = draft.result != "Success" and draft.message
        self._failure = (
            read_failure(draft.message, draft.asked, draft.minor) if failed else Failure(unschedulable=False)
        )

    @property
    def start(self) -> int:
        """When it began, as far as that is known."""
        return self._start

    def spans(self) -> Iterator[bytes]:
        """Yield the spans, children ahead of their parents."""
        draft = self._draft
        begun = self._binding_begins()
        times = (self._start, max(self._start, min(self._cycle_end(begun), draft.end)))
        failed_here = draft.result == "Error" and begun is None
        cycle = CycleSpans(draft, self._failure, self._writer, times)
        yield from cycle.spans(error=draft.message if failed_here else "")
        if begun is not None:
            yield from self._binding(max(self._start, min(begun, draft.end)), draft.end)
        yield self._root()

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

    def _root(self) -> bytes:
        draft, identity = self._draft, self._identity
        namespace, _, name = identity.pod.partition("/")
        known: dict[str, Value | None] = {
            "k8s.pod.name": name,
            "k8s.pod.namespace": namespace,
            "k8s.namespace.name": namespace,
            "k8s.pod.uid": identity.uid or None,
            "scheduler.attempts": identity.number,
            "scheduler.profile": identity.profile or None,
            "scheduler.queue_wait_ms": None if draft.wait is None else draft.wait // 1_000_000,
            "scheduler.result": draft.result or None,
            "scheduler.selected_node": draft.node if draft.result == "Success" else None,
            "scheduler.nominated_node": draft.nominated or self._failure.nominated or None,
            "scheduler.pod_group": draft.group or None,
            "scheduler.config.generation": self.generation or None,
            "podtrail.sources": [*sorted(draft.sources)],
            "podtrail.time.resolution_ns": draft.resolution,
        }
        attributes: dict[str, Value] = {key: value for key, value in known.items() if value is not None}
        inferred = dict(draft.inferred)
        if not identity.counted:
            inferred["attempts"] = "counted from the first one seen; there may have been others"
        if self.generation:
            inferred["scheduler.config.generation"] = "as /configz said it last"
        if not draft.result:
            inferred["result"] = "not known"
        error = draft.message or "failed; no source gives the message" if draft.result not in ("", "Success") else ""
        return self._writer.write(
            ROOT,
            ROOT_NAME,
            (self._start, draft.end),
            attributes,
            inferred=inferred,
            error=error,
            links=list(self._links()),
            events=self._preemption(),
        )

    def _links(self) -> Iterator[Link]:
        identity = self._identity
        if identity.before is not None:
            yield Link(identity.before, span_id(identity.before, ROOT), {"podtrail.link.type": "previous-attempt"})
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

    def _binding(self, begun: int, end: int) -> Iterator[bytes]:
        draft, failure = self._draft, self._failure
        place = f"{ROOT}/{_BINDING}"
        error = draft.message if draft.result == "Error" else ""
        inferred: dict[str, str] = {}
        if draft.binding_at is None and draft.waiting_at is None:
            inferred["start"] = "the end of the scheduling cycle, as far as that is known"
        if draft.waiting_at is not None:
            times = (begun, draft.binding_at or end)
            waited = self._writer.of_phase("waitOnPermit")
            yield self._writer.write(f"{place}/waitOnPermit", "waitOnPermit", times, waited)
        phase = failure.point or "bind"
        if phase in _IN_BINDING:
            times = (draft.binding_at or begun, end)
            yield from self._bind(f"{place}/{phase}", phase, times, error, inferred)
        attributes = {**self._writer.of_phase(_BINDING), "scheduler.selected_node": draft.node}
        if draft.result:
            attributes["scheduler.result"] = draft.result
        yield self._writer.write(place, _BINDING, (begun, end), attributes, inferred=inferred, error=error)

    def _bind(self, place: str, phase: str, times: tuple[int, int], error: str, inferred: Inferred) -> Iterator[bytes]:
        draft = self._draft
        if plugin := draft.failed_plugin or self._failure.plugin:
            told: dict[str, Value] = {"scheduler.plugin.name": plugin, "scheduler.plugin.extension_point": phase}
            name = f"plugin: {plugin}"
            yield self._writer.write(f"{place}/{name}", name, times, told, inferred=inferred, error=error)
        attributes = self._writer.of_phase(phase)
        if draft.throttled is not None:
            attributes["scheduler.client.throttled_ms"] = draft.throttled // 1_000_000
        yield self._writer.write(place, phase, times, attributes, inferred=inferred, error=error)
