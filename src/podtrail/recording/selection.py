"""Which traces of a recording are meant: by what they record, and by when they began."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from podtrail.otlp import Attempt, Group, SpanView, Value, attempts_in, cluster_name, split
from podtrail.recording.record import Record

FAILED: Final = "failed"
"""Stands for every result that is not a success."""
MOST_TRACES: Final = 2_000_000
"""Traces that can be chosen: ids of 16 bytes, about 100 each in memory."""
MOST_REMEMBERED: Final = 500_000
"""Traces of which is remembered whether they began in time."""


class TooMany(ValueError):
    """More traces are meant than `MOST_TRACES`."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """What a trace must record. Of each kind that is named one must hold; all that are named, of the same span."""

    pods: frozenset[str] = frozenset()
    """`namespace/name`, or a uid."""
    namespaces: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()
    """Of a scheduling attempt, in lower case; `FAILED` stands for several."""
    clusters: frozenset[str] = frozenset()
    """As resources name them; "" where one does not."""

    def __bool__(self) -> bool:
        return bool(self.clusters or self._of_span)

    @property
    def _of_span(self) -> bool:
        return bool(self.pods or self.namespaces or self.results)

    def meets(self, group: Group) -> bool:
        """Say whether a span in a group meets all of it."""
        if self.clusters and cluster_name(group.resource) not in self.clusters:
            return False
        if not self._of_span:
            return True
        if any(map(self._is_attempt, attempts_in(group.spans))):
            return True
        if self.results:
            return False
        needles = [self._needle(pod) for pod in self.pods] or [name.encode() for name in self.namespaces]
        if not any(needle in group.spans for needle in needles):
            return False
        return any(
            self._is_named(SpanView(raw).attributes.get)
            for raw in split(group.spans)
            if any(needle in raw for needle in needles)
        )

    def _is_attempt(self, attempt: Attempt) -> bool:
        return (
            self._is_pod(attempt.pod_uid, attempt.namespace, attempt.name)
            and (not self.namespaces or attempt.namespace in self.namespaces)
            and (
                not self.results
                or attempt.result.lower() in self.results
                or (FAILED in self.results and attempt.failed)
            )
        )

    def _is_named(self, value_of: Callable[[str], Value]) -> bool:
        namespace = value_of("k8s.namespace.name") or value_of("k8s.pod.namespace")
        return self._is_pod(value_of("k8s.pod.uid"), namespace, value_of("k8s.pod.name")) and (
            not self.namespaces or namespace in self.namespaces
        )

    def _is_pod(self, uid: Value, namespace: Value, name: Value) -> bool:
        if not self.pods or uid in self.pods:
            return True
        return isinstance(namespace, str) and isinstance(name, str) and f"{namespace}/{name}" in self.pods

    @staticmethod
    def _needle(pod: str) -> bytes:
        """Return bytes that stand in every span that names a Pod."""
        return pod.rpartition("/")[2].encode()


def meeting(records: Iterable[Record], criteria: Criteria) -> set[bytes]:
    """Return the ids of the traces that meet criteria.

    Raises:
        TooMany: they can't be held.
    """
    found: set[bytes] = set()
    for group in _groups(records):
        if group.trace_id not in found and criteria.meets(group):
            _add(found, group.trace_id)
    return found


def linked(records: Iterable[Record], traces: Iterable[bytes]) -> set[bytes]:
    """Return these traces with those that their spans link to.

    Raises:
        TooMany: they can't be held.
    """
    found = set(traces)
    of = frozenset(found)
    for group in _groups(records):
        if group.trace_id in of:
            for raw in split(group.spans):
                for link in SpanView(raw).links:
                    _add(found, link.trace_id)
    return found


def _groups(records: Iterable[Record]) -> Iterator[Group]:
    return (group for record in records for group in record.intake.groups)


def _add(found: set[bytes], trace: bytes) -> None:
    found.add(trace)
    if len(found) > MOST_TRACES:
        raise TooMany(f"more than {MOST_TRACES:,} traces are meant: narrow the choice, or cut by time first")


class Window:
    """Tells the traces that begin within a time from the others; a trace begins with its first request.

    The latest traces are remembered, so that late spans stay with theirs. One that was forgotten begins anew.
    """

    def __init__(self, since: int | None, until: int | None, most: int = MOST_REMEMBERED) -> None:
        """Make the window of what begins at `since` or later and before `until`, Unix nanoseconds."""
        self._since = since
        self._until = until
        self._most = most
        self._within: dict[bytes, bool] = {}
        self.forgotten = 0
        """Traces that were forgotten, lest memory grows."""

    def takes(self, trace_id: bytes, arrival: int) -> bool:
        """Say whether a trace, of which something arrives now, began within."""
        if self._since is None and self._until is None:
            return True
        within = self._within.get(trace_id)
        if within is None:
            within = (self._since is None or arrival >= self._since) and (self._until is None or arrival < self._until)
            self._within[trace_id] = within
            if len(self._within) > self._most:
                del self._within[next(iter(self._within))]
                self.forgotten += 1
        return within


def chosen(
    records: Iterable[Record], window: Window, traces: frozenset[bytes] | None
) -> Iterator[tuple[Record, list[Group]]]:
    """Yield the requests in which something is meant, with the groups that are; `traces` None: all."""
    for record in records:
        groups = [
            group
            for group in record.intake.groups
            if (traces is None or group.trace_id in traces) and window.takes(group.trace_id, record.arrival)
        ]
        if groups:
            yield record, groups
