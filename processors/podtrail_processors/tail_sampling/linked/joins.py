"""What links a trace with others, read off its spans once: links, values they share, the Pods that they are about."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from podtrail.otlp import Value, resource_attributes, span_reader
from podtrail.otlp.finding import attributes_among, linked_trace, spans_with
from podtrail_processors.pod_identity import AUDIT_ID, POD_MARKS, POD_UID, READ_KEYS, Sighting, sighting_in
from podtrail_processors.tail_sampling.evidence import Header

Key = bytes | tuple[str, str]
"""What traces share: a trace id, or the name of an attribute and its value."""

PLACE: Final = "namespace/name"
"""The name under which Pods are known by their place alone."""

_MOST_SPANS: Final = 64
_MOST_LINKS: Final = 128
_MOST_VALUES: Final = 16
_LONGEST_VALUE: Final = 128
_MOST_RESOURCES: Final = 1024


@dataclass(slots=True)
class Joins:
    """What links a trace with others."""

    keys: dict[Key, None] = field(default_factory=dict)
    """Its own id, the traces that it links to, values of attributes."""
    pods: list[Sighting] = field(default_factory=list)
    """Where it says both uid and place."""
    nameless: list[Sighting] = field(default_factory=list)
    """Where it says the place without the uid."""


class JoinReader:
    """Reads joins. Bounded: of a trace at most 64 spans, 128 links and 16 values count, of 128 characters each."""

    def __init__(self, join_on: Iterable[str]) -> None:
        self._join_on = tuple(join_on)
        self._sees_pods = POD_UID in self._join_on
        keys = frozenset(key.encode() for key in self._join_on)
        others = keys - {POD_UID.encode()}
        self._keys = keys | READ_KEYS if self._sees_pods else keys
        self._marks = (*POD_MARKS, *sorted(others)) if self._sees_pods else tuple(sorted(keys))
        self._resource_marks = tuple(sorted(keys))
        self._resources: dict[bytes, Sequence[Key]] = {}
        self._read = span_reader(("attributes", "links", "kind", "name", "start_time_unix_nano"))

    def read(self, trace_id: bytes, spans: bytes, headers: Iterable[Header]) -> Joins:
        """Return what links a trace with others. `spans`: all that is known of it, framed."""
        joins = Joins({trace_id: None})
        for header in headers:
            for key in self._of_resource(header.resource):
                joins.keys[key] = None
        found = spans_with(self._marks, spans, trace_id, _MOST_SPANS, with_links=True)
        if found:
            self._look_at(b"".join(found), joins)
        return joins

    def _look_at(self, spans: bytes, joins: Joins) -> None:
        links = 0
        for span in self._read(spans):
            for link in span.links:
                if links < _MOST_LINKS and (target := linked_trace(link)):
                    links += 1
                    joins.keys[target] = None
            attributes = attributes_among(span.attributes, self._keys)
            if not attributes or len(joins.keys) - links > _MOST_VALUES:
                continue
            for key in self._join_on:
                if value := _text(attributes.get(key)):
                    joins.keys[key, value] = None
            if self._sees_pods:
                sighting = sighting_in(attributes, span.name, span.kind, span.start_time_unix_nano)
                if sighting is not None:
                    _note(sighting, joins)

    def _of_resource(self, resource: bytes) -> Sequence[Key]:
        keys = self._resources.get(resource)
        if keys is None:
            if len(self._resources) >= _MOST_RESOURCES:
                self._resources.clear()
            marked = any(mark in resource for mark in self._resource_marks)
            attributes = resource_attributes(resource) if marked else {}
            keys = [(key, value) for key in self._join_on if (value := _text(attributes.get(key)))]
            self._resources[resource] = keys
        return keys


def _note(sighting: Sighting, joins: Joins) -> None:
    if sighting.uid:
        if sighting.place:
            joins.pods.append(sighting)
        return
    if sighting.place and len(joins.nameless) < _MOST_VALUES:
        joins.nameless.append(sighting)
    if sighting.audit_id:
        joins.keys[AUDIT_ID, sighting.audit_id] = None


def _text(value: Value) -> str:
    """Return a value to join on as text; "" for one that is too long or no plain value."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_VALUE else ""
    return str(value) if isinstance(value, int) else ""
