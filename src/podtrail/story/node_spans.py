"""Spans of the kubelet and the container runtime, read for the Pods that they are about.

The kubelet's `syncPod`, `syncTerminatingPod` and `syncTerminatedPod` have the Pod's uid; what stands below them in
their traces has none, and often arrives before them. So what a trace tells is held until one of its spans says whose it
is: those three, or the runtime's with a name that holds the uid (`NAME_NAMESPACE_UID_ATTEMPT`, no part has a `_`).
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from podtrail.lru import Lru
from podtrail.otlp import Group, SpanView, Value, cluster_name, resource_attributes, split
from podtrail.otlp.node_words import pod_of_container, pod_of_sandbox, start_failure_in
from podtrail.otlp.pod_transition import (
    ALL_IS_WELL,
    FINALIZERS,
    GATES,
    INIT,
    MIRROR_UID,
    RESTARTS,
    WARNED,
    PodTransition,
    read_transition,
)
from podtrail.story.node_record import NodeRecord, NodeStep, StepKind
from podtrail.story.values import number, text

_MARK: Final = re.compile(
    rb"syncPod|syncTerminat|RunPodSandbox|CreateContainer|StartContainer|StopContainer|PullImage|cni\.setup_pod_network"
    rb"|sandbox\.name|podtrail\.pod\.transition"
)
_SYNCS: Final[dict[str, StepKind]] = {
    "syncPod": "sync",
    "syncTerminatingPod": "terminating",
    "syncTerminatedPod": "terminated",
}
_CALLS: Final[dict[str, StepKind]] = {
    "runtime.v1.RuntimeService/RunPodSandbox": "sandbox",
    "runtime.v1.RuntimeService/CreateContainer": "create",
    "runtime.v1.RuntimeService/StartContainer": "start",
    "runtime.v1.RuntimeService/StopContainer": "stop",
    "runtime.v1.ImageService/PullImage": "pull",
    "cni.setup_pod_network": "network",
}
_TRANSITIONS: Final[dict[str, StepKind]] = {
    "created": "created",
    "unscheduled": "unscheduled",
    "gated": "gated",
    "scheduled": "scheduled",
    "started": "seen started",
    "waiting": "seen waiting",
    "terminated": "exited",
    "ready": "ready",
    "not ready": "not ready",
    "disrupted": "disrupted",
    "resize pending": "resize pending",
    "resizing": "resizing",
    "resized": "resized",
    "warned": "seen waiting",
    "finished": "finished",
    "deleting": "seen deleting",
    "deleted": "deleted",
}
_BY_KUBELET: Final = frozenset({"initialized", "waiting", "started", "terminated", "ready"})
"""Transitions of which the kubelet is the cause."""
_PARTS: Final[dict[str, StepKind]] = {
    "created": "created",
    "gated": "gated",
    "sandbox": "sandbox",
    "image pull": "pull",
    "container created": "create",
    "container started": "start",
    "container exited": "exited",
    "failed start": "failed",
    "ready": "ready",
    "finished": "finished",
    "terminating": "terminating",
    "terminated": "terminated",
    "deleted": "deleted",
}
"""Children of `PodLifecycle`, as link_stitching writes them."""
_OF_A_LIFE: Final = b"podtrail.link_stitching"
_MOST_TRACES: Final = 2_000
_SERVER: Final = 2
_LONGEST: Final = 1_000
_LONGEST_NAME: Final = 256
_MOST_NAMED: Final = 8
_SECOND: Final = 1_000_000_000


class PodOfTrace(NamedTuple):
    """The Pod that a trace of a node is about."""

    uid: str
    namespace: str
    name: str
    cluster: str = ""


class NodeFinding(NamedTuple):
    """What spans of one trace tell of a Pod that had not been told before."""

    pod: PodOfTrace
    record: NodeRecord


class NodeSpans:
    """Reads traces in parts, in any order. What is held of those that have not said whose they are is bounded."""

    def __init__(self) -> None:
        self._pods: Lru[bytes, PodOfTrace] = Lru(_MOST_TRACES)
        self._waiting: Lru[bytes, NodeRecord] = Lru(_MOST_TRACES)

    def read(self, trace_id: bytes, groups: Iterable[Group]) -> NodeFinding | None:
        """Return what groups of one trace tell; None where nothing, or nobody knows yet of which Pod."""
        record: NodeRecord | None = None
        pods = {self._pods[trace_id]} if trace_id in self._pods else set()
        clusters = {pod.cluster for pod in pods}
        for group in groups:
            life = _OF_A_LIFE in group.scope
            if not life and _MARK.search(group.spans) is None:
                continue
            for raw in split(group.spans):
                if life or _MARK.search(raw) is not None:
                    record = record or self._waiting.get(trace_id) or NodeRecord()
                    pods |= _read(SpanView(raw), group, record)
                    clusters.add(cluster_name(group.resource))
        if record is None:
            return None
        if not pods:
            self._waiting.put(trace_id, record)
            return None
        uids = {each.uid for each in pods}
        # A trace of several Pods says of no call for which of them it was.
        pod = max(pods)._replace(cluster=max(clusters)) if len(uids) == 1 else _SEVERAL
        self._pods.put(trace_id, pod)
        self._waiting.pop(trace_id, None)
        return NodeFinding(pod, record) if record != NodeRecord() and pod is not _SEVERAL else None


_SEVERAL: Final = PodOfTrace("", "", "")


def _read(span: SpanView, group: Group, record: NodeRecord) -> set[PodOfTrace]:
    """Note what a span tells; return the Pods that it names: one or none."""
    if _OF_A_LIFE in group.scope:
        return _part(span, record)
    attributes = span.attributes
    seen = read_transition(span)
    if seen is not None:
        return _transition(span, seen, record)
    kind = _SYNCS.get(span.name)
    if kind is not None:
        uid = text(attributes.get("k8s.pod.uid"))
        if not uid:
            return set()
        _sync(span, kind, record)
        record.node = text(resource_attributes(group.resource).get("host.name"))[:_LONGEST_NAME]
        namespace, name = (text(attributes.get(key)) for key in ("k8s.namespace.name", "k8s.pod.name"))
        return {PodOfTrace(uid[:_LONGEST_NAME], namespace[:_LONGEST_NAME], name[:_LONGEST_NAME])}
    call = _CALLS.get(span.name)
    if call is not None:
        what = ""
        if call == "pull":
            what = text(attributes.get("image.ref"))
        elif call == "create":
            what = text(attributes.get("container.name")).partition("_")[0]
            if what and attributes.get("container.id"):
                record.name(text(attributes.get("container.id"))[:_LONGEST_NAME], what[:_LONGEST_NAME])
        elif call == "start":
            what = text(attributes.get("container.id"))
        key = span.parent_span_id if span.kind == _SERVER and span.parent_span_id else span.span_id
        error = (span.status.message[:_LONGEST] or "it failed") if span.status.code == 2 else ""
        step = NodeStep(call, span.start, span.duration or 0, what[:_LONGEST_NAME], error=error, trace_id=span.trace_id)
        record.add(key, step)
    names = pod_of_sandbox(attributes.get("sandbox.name")), pod_of_container(attributes.get("container.name"))
    return {PodOfTrace(named.uid, named.namespace, named.name) for named in names if named}


def _part(span: SpanView, record: NodeRecord) -> set[PodOfTrace]:
    """Note a part of a life."""
    attributes = span.attributes
    kind = _PARTS.get(span.name)
    uid = text(attributes.get("k8s.pod.uid"))
    if not uid:
        return set()
    record.life_trace_id = span.trace_id
    if kind is not None and span.links:
        what = text(attributes.get("k8s.container.name")) or text(attributes.get("container.image.name"))
        container_id = text(attributes.get("container.id"))[:_LONGEST_NAME]
        if kind == "create" and what and container_id:
            record.name(container_id, what[:_LONGEST_NAME])
        elif kind == "start" and container_id:
            what = container_id
        reason, error = text(attributes.get("podtrail.pod.reason")), ""
        if span.status.code == 2:
            why = start_failure_in(span.status.message)
            error = (why.error if why else "") or span.status.message or "it failed"
        if kind == "exited":
            reason = _exit(attributes.get("k8s.container.exit_code"), reason)
        cut = what[:_LONGEST_NAME], reason[:_LONGEST_NAME], error[:_LONGEST]
        part = NodeStep(kind, span.start, span.duration or 0, *cut, span.trace_id)
        record.add_part(span.links[0].span_id, part)
        record.node = text(attributes.get("k8s.node.name"))[:_LONGEST_NAME] or record.node
    names = (text(attributes.get(key))[:_LONGEST_NAME] for key in ("k8s.namespace.name", "k8s.pod.name"))
    return {PodOfTrace(uid[:_LONGEST_NAME], *names)}


def _transition(span: SpanView, told: PodTransition, record: NodeRecord) -> set[PodOfTrace]:
    """Note what somebody told who watches the Pod."""
    attributes = span.attributes
    kind = _TRANSITIONS.get(told.kind)
    record.watched = record.watched or told.kind != WARNED
    record.taken_on = record.taken_on or told.kind in _BY_KUBELET
    record.mirror_uid = text(attributes.get(MIRROR_UID))[:_LONGEST_NAME] or record.mirror_uid
    if told.container and attributes.get(INIT):
        record.note_init(told.container[:_LONGEST_NAME])
    elif told.container and attributes.get(RESTARTS) is not None:
        record.count_restarts(told.container[:_LONGEST_NAME], told.restarts)
    if kind is not None and not (kind == "seen waiting" and told.reason in ALL_IS_WELL):
        what, reason = told.container, told.reason
        if kind in ("gated", "unscheduled"):
            what = _names(attributes.get(GATES))
        elif kind == "seen deleting":
            what = _names(attributes.get(FINALIZERS))
        elif kind == "exited":
            reason = _exit(attributes.get("k8s.container.exit_code"), reason)
        cut = what[:_LONGEST_NAME], reason[:_LONGEST_NAME], told.message[:_LONGEST]
        # Of a time in whole seconds the end is taken: by then it had happened, and what led to it stands before it.
        coarse = number(attributes.get("podtrail.time.resolution_ns")) or 0
        took = (span.duration or 0) if kind == "gated" else 0
        start = span.start if took else span.start + min(max(coarse - 1, 0), _SECOND)
        record.add(span.span_id, NodeStep(kind, start, took, *cut, span.trace_id))
        record.node = text(attributes.get("k8s.node.name"))[:_LONGEST_NAME] or record.node
    namespace, name = (text(attributes.get(key))[:_LONGEST_NAME] for key in ("k8s.namespace.name", "k8s.pod.name"))
    return {PodOfTrace(told.uid[:_LONGEST_NAME], namespace, name)}


def _names(told: Value) -> str:
    return ", ".join(map(str, told[:_MOST_NAMED])) if isinstance(told, list) else ""


def _exit(code: Value, reason: str) -> str:
    told = number(code)
    return reason if told is None else f"{told} ({reason})" if reason else str(told)


def _sync(span: SpanView, kind: StepKind, record: NodeRecord) -> None:
    step = NodeStep(kind, span.start, span.duration or 0, trace_id=span.trace_id)
    if span.status.code == 2:
        why = start_failure_in(span.status.message)
        said = (why.error if why else "") or span.status.message
        reason, what = (why.reason, why.what) if why else ("", "")
        failed = NodeStep("failed", span.end, 0, what, reason, said[:_LONGEST], span.trace_id)
        record.add(span.span_id, failed)
    elif kind == "sync":
        record.last_good_sync = max(record.last_good_sync, span.start)
    record.add(span.span_id, step)
