"""Pods as somebody sees them who watches them: each transition once, as a span.

A span's ids follow from the Pod's uid and the transition: who lists again after a restart, or watches beside another,
tells the same spans.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from podtrail.lru import Lru
from podtrail.otlp import Group, Link, Status, Value, encode_span, frame, resource_header, scope_header
from podtrail.otlp.pod_transition import (
    CONTAINER,
    GATES,
    MESSAGE,
    MIRROR_UID,
    NOT_READY_FOR_SCHEDULING,
    REASON,
    SCHEDULING_GATED,
    TRANSITION,
)
from podtrail.reconstruction.identifiers import span_id, trace_id
from podtrail.reconstruction.pod_transitions import SECOND, Transition, mapping, resources, text, transitions
from podtrail.reconstruction.pod_warnings import warnings
from podtrail.reconstruction.watch import claimed_parent, static_uid

_RESOURCE: Final = resource_header({"service.name": "k8s_pods"})
_SCOPE: Final = scope_header("podtrail.k8s_pods")
_OF_CONTAINERS: Final = frozenset({"started", "waiting", "terminated", "resized"})
_HELD: Final = frozenset({SCHEDULING_GATED, NOT_READY_FOR_SCHEDULING})
_INTERNAL: Final = 1
_FAILED: Final = 2
_MOST_TOLD: Final = 1_024
"""Transitions of a Pod that are remembered: more than an object shows at once, so that none is told twice."""
_MOST_WARNINGS: Final = 65_536
_WHEN_SEEN: Final = "start: when it was seen, within the second that the object says"
_UNSAID: Final = "start: when it was seen; the object does not say"
_GONE: Final = "start: when it was missed; it went while nobody watched"


@dataclass(slots=True)
class _Watched:
    """A Pod that is watched."""

    held: Transition | None = None
    """Why it is held outside of the scheduler's active queue, if it is."""
    unscheduled: bool = False
    """It was told why it has no node."""
    resources: dict[str, str] = field(default_factory=dict)
    """Of each container, as the kubelet has applied them."""
    told: Lru[tuple[str, str], bool] = field(default_factory=lambda: Lru(_MOST_TOLD))


class PodObserver:
    """Tells what is new in what a watch brings; remembers each Pod that is there."""

    def __init__(self) -> None:
        self._pods: dict[str, _Watched] = {}
        self._static: dict[str, str] = {}
        """Uids that kubelets give static Pods, by those of their mirrors."""
        self._warned: Lru[tuple[str, str], bool] = Lru(_MOST_WARNINGS)
        """Uids of Pods, and warnings of theirs that were told."""

    def __contains__(self, uid: object) -> bool:
        return uid in self._pods or uid in self._static.values()

    def __len__(self) -> int:
        return len(self._pods)

    def take(self, change: str, pod: Mapping[str, Any], arrival: int) -> list[Group]:
        """Return the spans of what is new, one trace each.

        Args:
            change: `LISTED`, `ADDED`, `MODIFIED`, `DELETED`, or `MISSED` for one that is gone since it was last seen.
            pod: The object; of one that is missed its identity is enough.
            arrival: When it came, Unix nanoseconds.
        """
        meta = mapping(pod, "metadata")
        uid = text(meta, "uid")
        if not uid or not text(meta, "name") or not text(meta, "namespace"):
            return []
        known = self._pods.get(uid)
        if known is None:
            known = self._pods[uid] = _Watched()
            if static := static_uid(pod):
                self._static[uid] = static
        live = change in ("ADDED", "MODIFIED", "DELETED")
        told: list[Group] = []
        if change != "MISSED":
            found = list(transitions(pod))
            told += self._released(known, pod, found, arrival, gone=change == "DELETED")
            for transition in [*found, *_resized(known, pod)]:
                # A condition that stays False keeps its time when its reason changes.
                again = transition.kind == "unscheduled" and known.unscheduled
                if self._is_news(known, transition):
                    known.unscheduled = known.unscheduled or transition.kind == "unscheduled"
                    shown = transition._replace(since=0) if again else transition
                    told.append(_group(pod, shown, _when(shown, arrival, live=live)))
        if change in ("DELETED", "MISSED"):
            del self._pods[uid]
            self._static.pop(uid, None)
            how = _GONE if change == "MISSED" else _UNSAID
            told.append(_group(pod, Transition("deleted", "", 0, {}), (arrival, arrival, 0, how)))
        return told

    def warn(self, change: str, event: Mapping[str, Any], arrival: int) -> list[Group]:
        """Return the spans of what an Event warns of, once for each occurrence that it shows.

        Args:
            change: `LISTED`, `ADDED`, `MODIFIED` or `PRINTED`.
            event: The object, of core/v1 or events.k8s.io/v1.
            arrival: When it came, Unix nanoseconds; 0 if that is not known.
        """
        told = []
        for pod, transition, resolution in warnings(event, change, arrival):
            key = text(mapping(pod, "metadata"), "uid"), transition.which
            if key not in self._warned:
                self._warned.put(key, True)
                times = (transition.since, transition.since, resolution if resolution >= SECOND else 0, "")
                told.append(_group(pod, transition, times))
        return told

    def _is_news(self, known: _Watched, transition: Transition) -> bool:
        key = transition.kind, transition.which
        news = key not in known.told
        known.told.put(key, True)
        return news

    def _released(
        self, known: _Watched, pod: Mapping[str, Any], found: list[Transition], arrival: int, *, gone: bool
    ) -> list[Group]:
        """Return that a Pod is no longer held by gates or by a PreEnqueue plugin, and remember why it is held now."""
        held = next((one for one in found if one.kind == "unscheduled" and one.attributes[REASON] in _HELD), None)
        before, known.held = known.held, held
        if held is not None and (before is not None or known.unscheduled):
            known.held = held._replace(since=before.since if before else arrival)  # since when it is held at all
        over = known.held if gone else before if held is None else None
        if over is None:
            return []
        told = Transition("gated", "" if GATES in over.attributes else over.which, over.since, over.attributes)
        if not self._is_news(known, told):
            return []
        times = (min(over.since or arrival, arrival), arrival, SECOND, "end: when the gates were seen to be gone")
        return [_group(pod, told, times)]


def _resized(known: _Watched, pod: Mapping[str, Any]) -> Iterator[Transition]:
    """Yield the containers that the kubelet gave other resources while they run."""
    before, known.resources = known.resources, resources(pod)
    for name, now in known.resources.items():
        if before.get(name, now) != now:
            told: dict[str, Value] = {CONTAINER: name, MESSAGE: f"{before[name]} -> {now}"}
            yield Transition("resized", f"{name}/{before[name]}/{now}", 0, told)


Times = tuple[int, int, int, str]
"""Start, end, the resolution of the start in nanoseconds (0: exact), and what was concluded."""


def _when(transition: Transition, arrival: int, *, live: bool) -> Times:
    since = transition.since
    if not since:
        return arrival, arrival, 0, _UNSAID
    if live and since <= arrival < since + SECOND:
        return arrival, arrival, 0, _WHEN_SEEN
    return since, since, SECOND, ""


def _group(pod: Mapping[str, Any], transition: Transition, times: Times) -> Group:
    meta = mapping(pod, "metadata")
    uid, node = text(meta, "uid"), text(mapping(pod, "spec"), "nodeName")
    start, end, resolution, concluded = times
    static = static_uid(pod)
    attributes: dict[str, Value] = {
        "k8s.pod.uid": static or uid,
        "k8s.pod.name": text(meta, "name"),
        "k8s.namespace.name": text(meta, "namespace"),
        TRANSITION: transition.kind,
        **transition.attributes,
    }
    if static:
        attributes[MIRROR_UID] = uid
    if node:
        attributes["k8s.node.name"] = node
    if resolution:
        attributes["podtrail.time.resolution_ns"] = resolution
    if concluded:
        attributes["podtrail.inferred"] = [concluded]
    claimed = claimed_parent(pod) if transition.kind == "created" else None
    trace = trace_id(uid, f"{transition.kind}/{transition.which}")
    span = encode_span(
        trace_id=trace,
        span_id=span_id(trace, transition.kind),
        name=f"{'container' if transition.kind in _OF_CONTAINERS else 'pod'} {transition.kind}",
        kind=_INTERNAL,
        start=start,
        end=end,
        status=Status(_FAILED, transition.error) if transition.error else None,
        attributes=attributes,
        links=[Link(*claimed, {"podtrail.link.type": "creation", "podtrail.link.trusted": False})] if claimed else (),
    )
    return Group(_RESOURCE, _SCOPE, trace, frame([span]), 1)
