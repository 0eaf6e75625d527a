"""Which parts of which Pods' lives the spans of a group tell."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from podtrail.otlp import ROOT_NAME, Group, SpanView, attempts_in, read_attempt, split
from podtrail.otlp.node_words import pod_of_sandbox
from podtrail.otlp.pod_transition import TRANSITION_MARK, read_transition
from podtrail.pod_identity import sound_uid
from podtrail_processors.link_stitching.lifecycle.part import Part
from podtrail_processors.link_stitching.lifecycle.told_by_kubelet import (
    CALL_MARKS,
    SANDBOX_MARK,
    SYNC_MARKS,
    read_call,
    read_sync,
)
from podtrail_processors.link_stitching.lifecycle.told_by_scheduler import parts_of
from podtrail_processors.link_stitching.lifecycle.told_by_watch import part_of

_ATTEMPT_MARK = ROOT_NAME.encode()
_SYNC, _TERMINATE = SYNC_MARKS
_RUNTIME_MARKS = (*CALL_MARKS, SANDBOX_MARK)


class Told(NamedTuple):
    """What one span tells."""

    uid: str
    """"" where only its trace can say."""
    namespace: str = ""
    name: str = ""
    node: str = ""
    part: Part | None = None
    of_trace: bool = False
    """Whether all of its trace is about this Pod."""
    watched: bool = False
    """Whether somebody told it who watches the Pod."""


def is_told(spans: bytes) -> bool:
    """Say whether there may be parts of a life among these spans, by a search through their bytes."""
    return (
        _ATTEMPT_MARK in spans
        or _SYNC in spans
        or _TERMINATE in spans
        or TRANSITION_MARK in spans
        or any(mark in spans for mark in _RUNTIME_MARKS)
    )


def told_in(group: Group) -> Iterator[Told]:
    """Yield what the spans of a group tell."""
    beside = group.spans if _tells_one_attempt(group.spans) else b""
    for raw in split(group.spans):
        if _ATTEMPT_MARK in raw:
            yield from _of_attempt(SpanView(raw), beside)
        elif TRANSITION_MARK in raw:
            yield from _of_watch(SpanView(raw))
        elif _SYNC in raw or _TERMINATE in raw:
            yield from _of_kubelet(SpanView(raw))
        elif any(mark in raw for mark in _RUNTIME_MARKS):
            yield from _of_runtime(SpanView(raw))


def _tells_one_attempt(spans: bytes) -> bool:
    """Say whether there is one attempt among these spans: of several it can't be said whose part a span is."""
    return spans.count(_ATTEMPT_MARK) == 1 or len(list(islice(attempts_in(spans), 2))) == 1


def _of_attempt(span: SpanView, spans: bytes) -> Iterator[Told]:
    attempt = read_attempt(span)
    uid = sound_uid(attempt.pod_uid) if attempt else ""
    if attempt is None or not uid:
        return
    node = span.attributes.get("scheduler.selected_node")
    for part in parts_of(attempt, spans):
        yield Told(uid, attempt.namespace, attempt.name, node if isinstance(node, str) else "", part)


def _of_watch(span: SpanView) -> Iterator[Told]:
    told = read_transition(span)
    uid = sound_uid(told.uid) if told else ""
    if told is None or not uid:
        return
    names = [span.attributes.get(key) for key in ("k8s.namespace.name", "k8s.pod.name", "k8s.node.name")]
    namespace, name, node = [name if isinstance(name, str) else "" for name in names]
    yield Told(uid, namespace, name, node, part_of(span, told), watched=True)


def _of_kubelet(span: SpanView) -> Iterator[Told]:
    if sync := read_sync(span):
        yield Told(sync.uid, sync.namespace, sync.name, part=sync.part, of_trace=True)


def _of_runtime(span: SpanView) -> Iterator[Told]:
    if call := read_call(span):
        yield Told(call.uid, part=call.part, of_trace=bool(call.uid))
    elif named := pod_of_sandbox(span.attributes.get("sandbox.name")):
        yield Told(named.uid, of_trace=True)
