"""Watches and lists of Pods, Nodes and Events to facts: each line with its arrival, or as kubectl prints them."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

from podtrail.reconstruction.calendar import rfc3339
from podtrail.reconstruction.klog import writable
from podtrail.reconstruction.kubectl_output import KubectlOutput, as_listed, kind_of, latest_time
from podtrail.reconstruction.line_counts import LineCounts
from podtrail.reconstruction.pods_of_lines import is_pod

_LONGEST = 4096
_NAME = 256
_TRACEPARENT: Final = "tracing.k8s.io/traceparent"
_HASH: Final = "kubernetes.io/config.hash"
_MIRROR: Final = "kubernetes.io/config.mirror"
_W3C = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_MOST_GATES: Final = 16
_MOST_DIGITS: Final = 19
_LATEST: Final = (1 << 63) - (1 << 40)
PRINTED: Final = "PRINTED"
"""The change of an object without a time of arrival, as kubectl prints it: it is as it is, since when nothing shows."""
_SECOND: Final = 1_000_000_000
_AHEAD: Final = 30_000_000_000
"""Nanoseconds by which the scheduler's clock may be ahead of the watch's: a later time is not believed."""


class PodSeen(NamedTuple):
    """A Pod as the API server had it. Times are Unix nanoseconds, 0 where it does not say."""

    time: int
    change: str
    """`LISTED`, `ADDED`, `MODIFIED`, `DELETED` or `PRINTED`."""
    uid: str
    pod: str
    """`namespace/name`."""
    created: int
    node: str
    profile: str
    """The scheduler it asks for."""
    reason: str
    """Of a `PodScheduled` condition that is False; "" when it is not."""
    message: str
    since: int
    """Since when the condition stands, in whole seconds."""
    nominated: str
    gates: tuple[str, ...]
    """The scheduling gates that are left."""
    parent: tuple[bytes, bytes] | None
    """Trace and span id that its annotation claims."""


class EventSeen(NamedTuple):
    """An Event about a Pod, or the latest of its series."""

    time: int
    """When it arrived, Unix nanoseconds."""
    at: int
    """When it happened, by the scheduler's clock."""
    reason: str
    pod: str
    uid: str
    note: str
    profile: str
    repeated: bool
    """Its time is a later one's of its series, its note may be the first one's."""
    host: str = ""
    """Where the scheduler runs that reported it; "" if the Event does not say."""
    resolution: int = 1_000
    """Nanoseconds by which `at` may be before its time: core/v1 has whole seconds."""


class LeaderSeen(NamedTuple):
    """An Event about a lease: a replica became leader. Times are Unix nanoseconds."""

    time: int
    """When it arrived."""
    at: int
    """When it happened, in whole seconds."""
    lock: str
    """The lease, `namespace/name`."""
    identity: str
    """Of the process."""


Seen = PodSeen | EventSeen | LeaderSeen
_BECAME: Final = " became leader"


class WatchedObject(NamedTuple):
    """An object as a watch brought it."""

    arrival: int
    """Unix nanoseconds; 0 for Events of a list that says none."""
    change: str
    """`LISTED`, `ADDED`, `MODIFIED`, `DELETED` or `PRINTED`."""
    kind: str
    object: Mapping[str, Any]


class WatchReader:
    """Reads watches; counts what it could not read. Nodes are counted only."""

    def __init__(self, counts: LineCounts) -> None:
        self._counts = counts
        self._newest = 0

    def read(self, lines: Iterable[bytes], longest: int) -> Iterator[Seen]:
        """Yield what lines tell, in their order; those longer than `longest` are counted.

        What has no time of arrival, as kubectl prints it, comes last, by the times in it.
        """
        undated: list[Seen] = []
        for told, arrival in self._lines(lines, longest):
            if arrival:
                yield from self._count(told, arrival)
            else:
                undated += self._count(told, arrival)
        self._counts.newest = max([self._counts.newest, *(seen.time for seen in undated)])
        yield from sorted(undated, key=attrgetter("time"))

    def objects(self, lines: Iterable[bytes], longest: int) -> Iterator[WatchedObject]:
        """Yield the objects that lines bring, in their order; those longer than `longest` are counted."""
        undated: list[WatchedObject] = []
        for told, arrival in self._lines(lines, longest):
            if arrival:
                yield from self._objects(told, arrival)
            else:
                undated += self._objects(told, arrival)
        yield from sorted(undated, key=attrgetter("arrival"))

    def _lines(self, lines: Iterable[bytes], longest: int) -> Iterator[tuple[Mapping[str, Any], int]]:
        output = KubectlOutput(longest)
        for line in lines:
            self._counts.lines += 1
            if len(line) > longest:
                self._counts.unknown[f"longer than {longest >> 20} MiB"] += 1
                continue
            if not output.open:
                if not line.strip():
                    self._counts.continued += 1
                    continue
                if (told := self._line(line)) is not None:
                    yield told
                    continue
            objects = output.take(line)
            if objects is None:
                self._counts.unknown["not JSON or YAML of kubectl"] += 1
                continue
            if not objects:
                self._counts.continued += 1
            self._counts.lines += max(0, len(objects) - 1)
            for one in objects:
                yield one, 0
        ended = output.end()
        self._counts.continued -= min(len(ended), self._counts.continued)
        for one in ended:
            yield one, 0

    def take(self, told: Mapping[str, Any], arrival: int) -> list[Seen]:
        """Return what a list (`{"list": {…}}`) or an event of a watch (`{"event": {…}}`) tells that came just now."""
        self._counts.lines += 1
        return self._count(told, arrival)

    def _line(self, line: bytes) -> tuple[Mapping[str, Any], int] | None:
        """Return the list or event in a line, with its arrival or 0; None if the line is not whole JSON of one."""
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(told, dict):
            return None
        arrival = _nanos(told.get("arrivalUnixNano"))
        if arrival or _map(told, "list").get("kind") == "EventList":
            return told, arrival
        listed = as_listed(told)
        return (listed, 0) if listed is not None else None

    def _count(self, told: Mapping[str, Any], arrival: int) -> list[Seen]:
        if arrival and arrival < self._newest:
            self._counts.notes["times that go back"] += 1
        self._newest = max(self._newest, arrival)
        self._counts.newest = max(self._counts.newest, arrival)
        found = [seen for one in self._objects(told, arrival) for seen in self._seen(one)]
        if found:
            self._counts.account(type(found[0]).__name__)
        else:
            self._counts.other += 1
        return found

    def _objects(self, told: Mapping[str, Any], arrival: int) -> Iterator[WatchedObject]:
        listed, event = told.get("list"), told.get("event")
        if isinstance(listed, dict):
            items = listed.get("items")
            kind = str(listed.get("kind") or "").removesuffix("List")
            for item in items if isinstance(items, list) else ():
                yield from _object(arrival, "LISTED" if arrival else PRINTED, item, kind)
        elif isinstance(event, dict):
            change = event.get("type")
            if change in ("ADDED", "MODIFIED", "DELETED"):
                yield from _object(arrival, change, event.get("object"), "")
            elif change == "ERROR":
                self._counts.notes["watches that ended with an error"] += 1

    def _seen(self, one: WatchedObject) -> Iterator[Seen]:
        arrival, change, kind, item = one
        if kind == "Pod" and (pod := _pod(arrival, change, item)):
            yield pod
        elif kind == "Event" and change != "DELETED" and (event := read_event(arrival, change, item)):
            yield event
        elif kind == "Node":
            self._counts.told[f"Node {change}"] += 1


def _object(arrival: int, change: str, item: Any, kind: str) -> Iterator[WatchedObject]:
    if isinstance(item, dict):
        kind = kind_of(item) or kind
        yield WatchedObject(arrival or (latest_time(item) if kind != "Event" else 0), change, kind, item)


def _pod(arrival: int, change: str, item: Mapping[str, Any]) -> PodSeen | None:
    meta, spec, status = _map(item, "metadata"), _map(item, "spec"), _map(item, "status")
    pod, uid = f"{_text(meta, 'namespace')}/{_text(meta, 'name')}", _text(meta, "uid")[:_NAME]
    if not is_pod(pod) or not uid:
        return None
    conditions = status.get("conditions")
    scheduled: Mapping[str, Any] = {}
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict) and condition.get("type") == "PodScheduled":
            scheduled = condition
    refused = scheduled.get("status") == "False"
    return PodSeen(
        time=arrival,
        change=change,
        uid=static_uid(item) or uid,
        pod=pod,
        created=rfc3339(_text(meta, "creationTimestamp")) or 0,
        node=_text(spec, "nodeName")[:_NAME],
        profile=_text(spec, "schedulerName")[:_NAME],
        reason=_text(scheduled, "reason") if refused else "",
        message=_text(scheduled, "message") if refused else "",
        since=rfc3339(_text(scheduled, "lastTransitionTime")) or 0,
        nominated=_text(status, "nominatedNodeName")[:_NAME],
        gates=_gates(spec.get("schedulingGates")),
        parent=claimed_parent(item),
    )


def _leader(arrival: int, item: Mapping[str, Any], about: Mapping[str, Any]) -> LeaderSeen | None:
    note = _text(item, "note") or _text(item, "message")
    at = rfc3339(_text(item, "eventTime")) or _whole_seconds(item)
    if _text(item, "reason") != "LeaderElection" or not note.endswith(_BECAME) or not at:
        return None
    lock = f"{_text(about, 'namespace')}/{_text(about, 'name')}"
    return LeaderSeen(arrival or at, at, lock, note.removesuffix(_BECAME)[:_NAME])


def read_event(arrival: int, change: str, item: Mapping[str, Any]) -> EventSeen | LeaderSeen | None:
    """Return what an Event of core/v1 or events.k8s.io/v1 reports about a Pod or a lease; None for any other Event."""
    about = _map(item, "regarding") or _map(item, "involvedObject")
    if about.get("kind") != "Pod":
        return _leader(arrival, item, about)
    pod = f"{_text(about, 'namespace')}/{_text(about, 'name')}"
    if not is_pod(pod):
        return None
    series = _map(item, "series")
    last = rfc3339(_text(series, "lastObservedTime")) or 0
    exact = rfc3339(_text(item, "eventTime")) or 0
    first = exact or _whole_seconds(item)
    if not first and not last:
        return None
    return EventSeen(
        time=arrival or last or first,
        at=min(last or first, arrival + _AHEAD) if arrival else last or first,
        reason=_text(item, "reason"),
        pod=pod,
        uid=_text(about, "uid")[:_NAME],
        note=_text(item, "note") or _text(item, "message"),
        profile=_reporter(item)[:_NAME],
        host=_host(item)[:_NAME],
        repeated=bool(last) or change == "MODIFIED" or _occurrences(item) > 1,
        resolution=1_000 if exact or last else _SECOND,
    )


def _reporter(item: Mapping[str, Any]) -> str:
    source = _map(item, "source") or _map(item, "deprecatedSource")
    return _text(item, "reportingController") or _text(item, "reportingComponent") or _text(source, "component")


def _host(item: Mapping[str, Any]) -> str:
    source = _map(item, "source") or _map(item, "deprecatedSource")
    return _text(item, "reportingInstance").removeprefix(f"{_reporter(item)}-") or _text(source, "host")


def first_time(item: Mapping[str, Any]) -> int:
    """Return when what an Event reports happened first, Unix nanoseconds; 0 if it does not say."""
    keys = ("eventTime", "firstTimestamp", "deprecatedFirstTimestamp")
    return next((time for key in keys if (time := rfc3339(_text(item, key)))), 0)


def _whole_seconds(item: Mapping[str, Any]) -> int:
    """Return when an Event without `eventTime` happened last."""
    keys = ("lastTimestamp", "deprecatedLastTimestamp", "firstTimestamp", "deprecatedFirstTimestamp")
    return next((time for key in keys if (time := rfc3339(_text(item, key)))), 0)


def _occurrences(item: Mapping[str, Any]) -> int:
    count = item.get("count") or item.get("deprecatedCount")
    return count if isinstance(count, int) else 1


def _gates(told: Any) -> tuple[str, ...]:
    gates = [_text(gate, "name")[:_NAME] for gate in told if isinstance(gate, dict)] if isinstance(told, list) else []
    return tuple(gates[:_MOST_GATES])


def static_uid(item: Mapping[str, Any]) -> str:
    """Return the uid that the kubelet gives a static Pod whose mirror this is; "" for any other Pod."""
    annotations = _map(_map(item, "metadata"), "annotations")
    mirror = _text(annotations, _MIRROR)[:_NAME]
    return _text(annotations, _HASH)[:_NAME] or mirror if mirror else ""


def claimed_parent(item: Mapping[str, Any]) -> tuple[bytes, bytes] | None:
    """Return the trace and span id that a Pod's annotation claims (KEP-5915); None without a valid one."""
    return _parent(_text(_map(_map(item, "metadata"), "annotations"), _TRACEPARENT))


def _parent(text: str) -> tuple[bytes, bytes] | None:
    found = _W3C.fullmatch(text)
    if found is None:
        return None
    trace, span = bytes.fromhex(found[1]), bytes.fromhex(found[2])
    return (trace, span) if any(trace) and any(span) else None


def _map(told: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = told.get(key)
    return value if isinstance(value, dict) else {}


def _text(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    return writable(value[:_LONGEST]) if isinstance(value, str) else ""


def _nanos(value: Any) -> int:
    text = str(value)
    nanos = int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else 0
    return nanos if nanos < _LATEST else 0
