"""What is in a recording: counts that take bounded memory, however long it is."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from podtrail.otlp import (
    REFUSAL,
    Attempt,
    Group,
    SpanFields,
    attempts_in,
    raw_span_reader,
    read_message,
    read_rejections,
    resource_attributes,
    split,
)
from podtrail.recording.record import Record

_MOST_NAMES = 20_000
_MOST_SPANS = 250_000
_LATEST = 2**63 - 1
_read = raw_span_reader({"span_id", "parent_span_id", "name", "start_time_unix_nano", "end_time_unix_nano"})
_NONE = (b"", bytes(8))


class Names:
    """Counts by name; when there are too many names, new ones are counted together."""

    def __init__(self, most: int = _MOST_NAMES) -> None:
        self.counts: Counter[str] = Counter()
        self.others = 0
        """What was counted for names that came when there were too many."""
        self._most = most

    def add(self, name: str, count: int = 1) -> None:
        """Count."""
        if name in self.counts or len(self.counts) < self._most:
            self.counts[name] += count
        else:
            self.others += count


class Period:
    """From the earliest to the latest of some times, Unix nanoseconds."""

    def __init__(self) -> None:
        self.first = 0
        self.last = 0

    def add(self, time: int) -> None:
        """Extend to a time; 0 and what is beyond 2262 is none."""
        if 0 < time <= _LATEST:
            self.first = min(self.first or time, time)
            self.last = max(self.last, time)

    @property
    def length(self) -> int:
        """Nanoseconds."""
        return self.last - self.first


class _TraceSpans:
    __slots__ = ("parents", "spans")

    def __init__(self) -> None:
        self.spans: set[bytes] = set()
        self.parents: list[bytes] = []


class Traces:
    """Spans by trace: which came twice, whose parent never came. The traces that rest longest are let go."""

    def __init__(self, most_spans: int = _MOST_SPANS) -> None:
        self.count = 0
        self.let_go = 0
        """Traces that were looked at before the end, since too many spans are in mind: one that goes on counts twice,
        its duplicates and parents from before are not known."""
        self.duplicates = 0
        self._orphans = 0
        self._most_spans = most_spans
        self._held = 0
        self._open: dict[bytes, _TraceSpans] = {}

    @property
    def orphans(self) -> int:
        """Spans whose parent did not come."""
        return self._orphans + sum(map(_orphans, self._open.values()))

    def add(self, group: Group, spans: list[SpanFields]) -> None:
        """Take note of spans of one trace."""
        trace = self._open.pop(group.trace_id, None)
        if trace is None:
            self.count += 1
            trace = _TraceSpans()
        self._open[group.trace_id] = trace  # the last one now
        for span in spans:
            if span.span_id in trace.spans:
                self.duplicates += 1
                continue
            self._held += 1
            trace.spans.add(span.span_id)
            if span.parent_span_id not in _NONE:
                trace.parents.append(span.parent_span_id)
        while self._held > self._most_spans:
            gone = self._open.pop(next(iter(self._open)))
            self._held -= len(gone.spans)
            self._orphans += _orphans(gone)
            self.let_go += 1


def _orphans(trace: _TraceSpans) -> int:
    return sum(parent not in trace.spans for parent in trace.parents)


@dataclass(slots=True)
class Statistics:
    """Adds up requests."""

    requests: int = 0
    spans: int = 0
    rejected: int = 0
    """Invalid spans, which nobody would see."""
    size: int = 0
    """Bytes of the spans."""
    odd_times: int = 0
    """Spans without start or end, or that end before they start."""
    untimed: int = 0
    """Requests that do not say when they arrived."""
    put_off: int = 0
    """Requests that say that they arrived before the one ahead."""
    early: int = 0
    """Spans that arrived before they ended: clocks differ."""
    earliest: int = 0
    """Nanoseconds by which the earliest of these did."""
    arrivals: Period = field(default_factory=Period)
    times: Period = field(default_factory=Period)
    """Of spans: from the first start to the last end."""
    traces: Traces = field(default_factory=Traces)
    services: Names = field(default_factory=Names)
    names: Names = field(default_factory=Names)
    attempts: int = 0
    results: Names = field(default_factory=Names)
    profiles: Names = field(default_factory=Names)
    namespaces: Names = field(default_factory=Names)
    pods: Names = field(default_factory=Names)
    rejections: Names = field(default_factory=Names)
    """Rejections by plugin; from messages where no span tells."""

    def add(self, record: Record) -> None:
        """Count a request."""
        self.requests += 1
        self.rejected += record.intake.rejected
        self.odd_times += record.intake.odd_times
        self.untimed += not record.timed
        self.put_off += record.put_off > 0
        self.arrivals.add(record.arrival)
        for group in record.intake.groups:
            self._group(group, record)

    def _group(self, group: Group, record: Record) -> None:
        spans = list(_read(group.spans))
        self.spans += len(spans)
        self.size += len(group.spans)
        self.traces.add(group, spans)
        self.services.add(str(resource_attributes(group.resource).get("service.name", "")), len(spans))
        for name, count in Counter(span.name for span in spans).items():
            self.names.add(name.decode(), count)
        for span in spans:
            self.times.add(span.start_time_unix_nano)
            self.times.add(span.end_time_unix_nano)
            if record.timed and record.arrival < span.end_time_unix_nano <= _LATEST:
                self.early += 1
                self.earliest = max(self.earliest, span.end_time_unix_nano - record.arrival)
        attempts = list(attempts_in(group.spans))
        for attempt in attempts:
            self._attempt(attempt)
        for plugin in _refusing(group, attempts):
            self.rejections.add(plugin)

    def _attempt(self, attempt: Attempt) -> None:
        self.attempts += 1
        self.results.add(attempt.result)
        self.profiles.add(attempt.profile)
        self.namespaces.add(attempt.namespace)
        self.pods.add(attempt.pod_uid or f"{attempt.namespace}/{attempt.name}")


def _refusing(group: Group, attempts: list[Attempt]) -> Iterator[str]:
    if REFUSAL in group.spans:
        for raw in split(group.spans):
            for rejection in read_rejections(raw):
                yield rejection.plugin
        return
    for attempt in attempts:
        if attempt.failed:
            yield from {rejection.plugin for rejection in read_message(attempt.message).rejections}
