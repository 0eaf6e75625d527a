"""What links a trace with others, read off its spans: links, values that they share, the Pods that they are about."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from podtrail.otlp import CLUSTER_NAME, Value, raw_span_reader, read_key_value, resource_attributes
from podtrail.otlp.byte_search import (
    AttributeSearch,
    attributes_among,
    key_value,
    link_targets,
    linked_traces,
    spans_with,
)
from podtrail.otlp.native import has
from podtrail.pod_identity import (
    AUDIT_ID,
    PLACE_MARK,
    POD_UID,
    PODS_MARK,
    REQUEST_KEYS,
    RUNTIME_KEYS,
    Sighting,
    cluster_of,
    in_cluster,
    sighting_of_request,
)
from podtrail_processors.evidence.evidence import Header

Key = bytes | tuple[str, str]
"""What traces share: a trace id, an attribute as its KeyValue message, or what the API server says of a Pod."""

PLACE: Final = "namespace/name"
"""The name under which Pods are known by their place alone."""
RUNTIME: Final = "container.id"
"""The name under which sandboxes and containers are known, whichever attribute has the id."""
LINK: Final = "link"

_TRACE_ID_BYTES: Final = 16
_NO_TRACE: Final = bytes(_TRACE_ID_BYTES)
_CONFIGURATION: Final = key_value("podtrail.link.type", "configuration")
_UID_MARK: Final = POD_UID.encode()
_AUDIT_MARK: Final = AUDIT_ID.encode()
_CLUSTER_MARK: Final = CLUSTER_NAME.encode()
_EVENTS_MARK: Final = b"/events/"
_RUNTIME_MARK: Final = b".id"
_IDS_OF_ONE: Final = 2
"""A container's id and that of its sandbox: what has more of them, and no uid, may be about several Pods."""
_MOST_REQUESTS: Final = 4
_MOST_LINKS: Final = 128
_MOST_VALUES: Final = 16
_LONGEST_PAIR: Final = 127
_MOST_RESOURCES: Final = 1024
_EMPTIES: Final[Sequence[Value]] = ("", None, [], {}, b"")
_UID_START: Final = key_value(POD_UID, "")[: 2 + len(POD_UID)]
_OF_PODS: Final = frozenset({PLACE, RUNTIME})
_EMPTY: Final = frozenset(key_value("k", value)[len(b"\n\1k") :] for value in _EMPTIES) | {b""}
"""What stands behind the key where an attribute is empty, which is nothing to share."""


class Joins(NamedTuple):
    """What links a trace with others."""

    keys: dict[Key, None]
    """Its own id, those it links to and values of attributes."""
    nameless: Sequence[Sighting]
    """The Pods of which it says the place without the uid."""
    cluster: str
    """Which it is of, as `cluster_of` has it."""


class _OfResource(NamedTuple):
    """What a resource adds."""

    pairs: Sequence[bytes]
    cluster: str


class JoinReader:
    """Reads joins. Bounded: of a trace at most 128 links, 16 values of 100 characters and 4 spans of requests count."""

    def __init__(self, join_on: Iterable[str]) -> None:
        keys = tuple(join_on)
        self._uid_search = AttributeSearch(POD_UID) if POD_UID in keys else None
        self._runtime = [AttributeSearch(key) for key in RUNTIME_KEYS]
        self._others = [AttributeSearch(key) for key in keys if key != POD_UID]
        self._keys = keys
        self._resources: dict[bytes, _OfResource] = {}
        self._read_links = raw_span_reader(("links",))
        self._read = raw_span_reader(("attributes", "kind", "name", "start_time_unix_nano"))

    def read(
        self, trace_id: bytes, spans: bytes, headers: Iterable[Header], links: Sequence[bytes] | None = None
    ) -> Joins:
        """Return what links a trace with others. `spans`: all that is known of it, framed; `links`: its, if known."""
        keys: dict[Key, None] = {trace_id: None}
        for target in linked_traces(spans, _MOST_LINKS) if links is None else link_targets(links, _MOST_LINKS):
            keys[target] = None
        if has(spans, _CONFIGURATION):
            for target in self._configurations(trace_id, spans):
                if target != trace_id:
                    keys.pop(target, None)
        keys.pop(_NO_TRACE, None)
        cluster = self._resource_keys(headers, keys)
        for search in self._others:
            for pair in search.in_spans(spans, _MOST_VALUES):
                if not _is_empty(pair):
                    keys[_unlike_ids(pair)] = None
        if self._uid_search is None:
            return Joins(keys, (), cluster)
        named = False
        for pair in self._uid_search.in_spans(spans, _MOST_VALUES):
            if not _is_empty(pair):
                keys[pair] = None
                named = True
        if has(spans, _RUNTIME_MARK):
            self._runtime_ids(spans, keys)
        nameless: Sequence[Sighting] = ()
        if named:
            pass
        elif has(spans, PODS_MARK) and (has(spans, PLACE_MARK) or has(spans, _AUDIT_MARK)):
            nameless = self._requests(trace_id, spans, cluster, keys)
        elif has(spans, _EVENTS_MARK):
            nameless = [one for one in self._sightings(trace_id, spans, cluster, _EVENTS_MARK, 1) if one.place]
        return Joins(keys, nameless, cluster)

    def _resource_keys(self, headers: Iterable[Header], keys: dict[Key, None]) -> str:
        """Put what resources share among the keys; return the cluster that the first which says one is of."""
        resources = self._resources
        cluster = ""
        for header in headers:
            known = resources.get(header[0]) or self._of_resource(header[0])
            cluster = cluster or known.cluster
            for pair in known.pairs:
                keys[pair] = None
        return cluster

    def _configurations(self, trace_id: bytes, spans: bytes) -> Iterable[bytes]:
        """Return the traces that a trace links to as the change that made the scheduler's configuration.

        Every attempt does, for as long as that is in force: they have no more in common than that.
        """
        for span in self._read_links(b"".join(spans_with(_CONFIGURATION, spans, trace_id, _MOST_VALUES))):
            yield from link_targets([link for link in span.links if _CONFIGURATION in link], _MOST_LINKS)

    def _runtime_ids(self, spans: bytes, keys: dict[Key, None]) -> None:
        """Put the ids of sandboxes and containers among the keys."""
        for search in self._runtime:
            for pair in dict.fromkeys(search.in_spans(spans, _MOST_VALUES)):
                _, value = read_key_value(pair)
                if isinstance(value, str) and value:
                    keys[RUNTIME, value] = None

    def _requests(self, trace_id: bytes, spans: bytes, cluster: str, keys: dict[Key, None]) -> Sequence[Sighting]:
        """Return the places of Pods that requests to the API server are about; put audit ids among the keys."""
        told = list(self._sightings(trace_id, spans, cluster, PLACE_MARK, _MOST_REQUESTS))
        for one in told or self._sightings(trace_id, spans, cluster, PODS_MARK, _MOST_REQUESTS):
            if one.audit_id:
                keys[AUDIT_ID, one.audit_id] = None
        return list({one.place: one for one in reversed(told) if one.place}.values())

    def pods(self, trace_id: bytes, spans: bytes, cluster: str) -> Sequence[Sighting]:
        """Return the Pods of which a trace of a cluster says both place and uid."""
        sightings = self._sightings(trace_id, spans, cluster, _UID_MARK, _MOST_VALUES)
        return [one for one in sightings if one.uid and one.place]

    def _sightings(self, trace_id: bytes, spans: bytes, cluster: str, mark: bytes, most: int) -> Iterable[Sighting]:
        for span in self._read(b"".join(spans_with(mark, spans, trace_id, most))):
            attributes = attributes_among(span.attributes, REQUEST_KEYS)
            if attributes:
                name = span.name.decode()
                sighting = sighting_of_request(attributes, name, span.kind, span.start_time_unix_nano)
                if sighting is not None:
                    yield sighting._replace(place=in_cluster(cluster, sighting.place)) if cluster else sighting

    def _of_resource(self, resource: bytes) -> _OfResource:
        found: list[bytes] = []
        cluster = cluster_of(resource_attributes(resource)) if _CLUSTER_MARK in resource else ""
        if any(key.encode() in resource for key in self._keys):
            attributes = resource_attributes(resource)
            pairs = [key_value(key, attributes[key]) for key in self._keys if key in attributes]
            found = [_unlike_ids(pair) for pair in pairs if len(pair) <= _LONGEST_PAIR and not _is_empty(pair)]
        if len(self._resources) >= _MOST_RESOURCES:
            self._resources.clear()
        known = self._resources[resource] = _OfResource(found, cluster)
        return known


def _is_empty(pair: bytes) -> bool:
    return pair[2 + pair[1] :] in _EMPTY


def uid_key(uid: str) -> Key:
    """Return the key of a Pod's uid."""
    return key_value(POD_UID, uid)


def is_of_pod(key: Key) -> bool:
    """Say whether all that share this are about one Pod."""
    return key[0] in _OF_PODS if isinstance(key, tuple) else key.startswith(_UID_START)


def is_of_one_pod(keys: Iterable[Key]) -> bool:
    """Say whether what is among these of Pods is of one: by its uid, else by its place, else by its containers."""
    uids = places = ids = 0
    for key in keys:
        if isinstance(key, tuple):
            places += key[0] == PLACE
            ids += key[0] == RUNTIME
        elif key.startswith(_UID_START):
            uids += 1
    if uids or places:
        return uids + places == 1
    return 0 < ids <= _IDS_OF_ONE


def join_of(key: Key) -> str:
    """Return by what traces that share this are linked: `link`, or the name of an attribute."""
    if isinstance(key, tuple):
        return key[0]
    # Only the tag, the length and the key are sure to be there: what follows may be a text that looks like a value.
    return LINK if len(key) == _TRACE_ID_BYTES else key[2 : 2 + key[1]].decode()


def _unlike_ids(pair: bytes) -> bytes:
    """Return the bytes of an attribute, told apart from a trace id if they are as long."""
    return pair + b"\0" if len(pair) == _TRACE_ID_BYTES else pair
