"""The scheduling attempt that a trace records (KEP-5927): its root span `SchedulePod`, read when asked for."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, cast

from podtrail.otlp.framing import split
from podtrail.otlp.group import Group
from podtrail.otlp.lite import SPAN, lite_type
from podtrail.otlp.span import SpanView
from podtrail.otlp.values import Value, read_key_value

ROOT_NAME = "SchedulePod"
_MARK = ROOT_NAME.encode()
_MILLISECOND = 1_000_000
_INT64 = 1 << 63
_MAX_DECLARED = 1 << 31
_SCALARS = dict.fromkeys(("trace_id", "span_id", "name", "start_time_unix_nano", "end_time_unix_nano", "attributes"))
_ROOT = cast("Any", lite_type(SPAN, {**_SCALARS, "status": {"message": None}}))


class Attempt(NamedTuple):
    """One attempt to schedule a Pod, as its root span tells it; `start` and `end` in Unix nanoseconds."""

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
    queue_wait: int | None = None
    """How long the Pod waited in the scheduling queue, nanoseconds; None where the root does not say, or nonsense."""
    declared: int = 0
    """The scheduler's own count of attempts for this Pod, this one included; 0 where the root does not say."""

    @property
    def failed(self) -> bool:
        """Whether it ended in anything but success; a root that says nothing of a result fails by its message."""
        return self.result != "Success" and bool(self.result or self.message)


def attempt_of(groups: Iterable[Group]) -> Attempt | None:
    """Return the attempt that these groups of one trace record; None without a `SchedulePod` root among them."""
    return next((attempt for group in groups for attempt in attempts_in(group.spans)), None)


def attempts_in(spans: bytes) -> Iterator[Attempt]:
    """Yield the attempts whose roots stand in a group's `spans` (or in several joined), in their order."""
    last = spans.rfind(_MARK)
    if last < 0:
        return
    marked = (raw for raw in reversed(split(spans)) if _MARK in raw)
    # Mostly there is one, and near the end, for a root ends last: no need to look through the other spans.
    for raw in reversed(list(marked)) if spans.find(_MARK, 0, last) >= 0 else islice(marked, 1):
        if attempt := _read(raw):
            yield attempt


def read_attempt(span: SpanView) -> Attempt | None:
    """Return the attempt that a span is the root of; None when it is not a `SchedulePod`."""
    return _read(span.raw)


def _read(raw: bytes) -> Attempt | None:
    root = _ROOT.FromString(raw)
    if root.name != _MARK:
        return None
    attributes = dict(map(read_key_value, reversed(root.attributes)))  # of several of one key the first counts
    found = attributes.get
    return Attempt(
        root.trace_id,
        root.span_id,
        root.start_time_unix_nano,
        root.end_time_unix_nano,
        _text(found("k8s.pod.uid")),
        _text(found("k8s.namespace.name") or found("k8s.pod.namespace")),
        _text(found("k8s.pod.name")),
        _text(found("scheduler.result")),
        _text(found("scheduler.profile")),
        root.status.message.decode(),
        _wait(found("scheduler.queue_wait_ms")),
        _count(found("scheduler.attempts")),
    )


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""


def _wait(milliseconds: Value) -> int | None:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or not 0 <= milliseconds < _INT64:
        return None
    return int(milliseconds * _MILLISECOND)


def _count(value: Value) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MAX_DECLARED else 0
