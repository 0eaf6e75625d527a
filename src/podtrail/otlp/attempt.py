"""The scheduling attempt that a trace records (KEP-5927): its root span `SchedulePod`, read when asked for."""

from collections.abc import Iterable
from typing import NamedTuple

from podtrail.otlp.framing import split
from podtrail.otlp.group import Group
from podtrail.otlp.span import SpanView
from podtrail.otlp.values import Value

ROOT_NAME = "SchedulePod"
_MARK = ROOT_NAME.encode()


class Attempt(NamedTuple):
    """One attempt to schedule a Pod, as its root span tells it."""

    trace_id: bytes
    span_id: bytes
    start: int
    end: int
    pod_uid: str
    namespace: str
    name: str
    result: str
    """`Success`, `Unschedulable`, `Error`; "" where the root does not say."""
    profile: str
    message: str
    """The status message: why it failed."""


def attempt_of(groups: Iterable[Group]) -> Attempt | None:
    """Return the attempt that these groups of one trace record; None without a `SchedulePod` root among them."""
    for group in groups:
        if _MARK not in group.spans:
            continue
        for raw in split(group.spans):
            if _MARK in raw and (attempt := read_attempt(SpanView(raw))):
                return attempt
    return None


def read_attempt(span: SpanView) -> Attempt | None:
    """Return the attempt that a span is the root of; None when it is not a `SchedulePod`."""
    if span.name != ROOT_NAME:
        return None
    attributes = span.attributes
    return Attempt(
        trace_id=span.trace_id,
        span_id=span.span_id,
        start=span.start,
        end=span.end,
        pod_uid=_text(attributes.get("k8s.pod.uid")),
        namespace=_text(attributes.get("k8s.namespace.name") or attributes.get("k8s.pod.namespace")),
        name=_text(attributes.get("k8s.pod.name")),
        result=_text(attributes.get("scheduler.result")),
        profile=_text(attributes.get("scheduler.profile")),
        message=span.status.message,
    )


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""
