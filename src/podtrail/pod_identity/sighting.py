"""Reading off one span which Pod it is about. Names are those of kube-apiserver and etcd (v1.37), and older ones.

The API server's span of a request has the real path in `url.path` (older ones in `http.target`), spans within it in
`url`, all have its `audit-id`. A creation does not name the Pod in its path, but its child `Create etcd3` has
`key=/pods/NAMESPACE/NAME`, and etcd's own spans have `compare_first_key=/registry/pods/NAMESPACE/NAME`.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from podtrail.otlp import SpanView, Value

POD_UID: Final = "k8s.pod.uid"
AUDIT_ID: Final = "audit-id"
CREATE: Final = "create"
"""What a request did that created a Pod."""
_NAMES: Final = ("k8s.namespace.name", "k8s.pod.namespace")
_POD_NAME: Final = "k8s.pod.name"
_PATHS: Final = ("url.path", "http.target", "url")
_ETCD_KEYS: Final = ("key", "compare_first_key")

READ_KEYS: Final = frozenset(key.encode() for key in (POD_UID, AUDIT_ID, _POD_NAME, *_NAMES, *_PATHS, *_ETCD_KEYS))
"""The attributes that are looked at."""
PLACE_MARK: Final = b"/pods/"
"""Where this does not stand among the bytes of a span without a uid, it does not tell a Pod."""
PODS_MARK: Final = b"/pods"
"""Where not even this does, it has nothing to do with Pods."""

_LONGEST_UID: Final = 128
_LONGEST_PLACE: Final = 63 + 1 + 253
"""Namespace, slash, name."""

_SERVER_KIND: Final = 2
_NAME: Final = r"([^/?]{1,63})/%s([^/?]{1,253})"
_PATH: Final = re.compile(r"/api/v1/namespaces/" + _NAME % "pods/" + r"(?:/([a-z]{1,40}))?(?:\?.*)?", re.DOTALL)
_COLLECTION: Final = re.compile(r"/api/v1/namespaces/[^/?]{1,63}/pods(?:\?.*)?", re.DOTALL)
_ETCD_KEY: Final = re.compile(r"(?:/registry)?/pods/" + _NAME % "")
_CREATE_SPAN: Final = "Create etcd3"


class Sighting(NamedTuple):
    """What a span says of the Pod that it is about."""

    uid: str
    """"" where it does not say."""
    place: str
    """`namespace/name`; "" where it does not say."""
    at: int
    """When the span started, Unix nanoseconds."""
    action: str = ""
    """What an API request did to the Pod: `CREATE`, or a subresource such as `binding`, `status`, `eviction`."""
    audit_id: str = ""
    """Of the API request."""


def sighting_of(span: SpanView) -> Sighting | None:
    """Return which Pod a span is about; None for one that tells neither uid nor name nor an audit id."""
    return sighting_in(span.attributes, span.name, span.kind, span.start)


def sighting_in(attributes: Mapping[str, Value], name: str, kind: int, start: int) -> Sighting | None:
    """Return which Pod a span with these attributes (those of `READ_KEYS` suffice) is about."""
    uid = sound_uid(attributes.get(POD_UID))
    if uid:
        return Sighting(uid, _named(attributes), start)
    audit_id = _sound(attributes.get(AUDIT_ID), _LONGEST_UID)
    path = _first(attributes, _PATHS)
    if path and (kind == _SERVER_KIND or audit_id):
        if found := _PATH.fullmatch(path):
            place = sound_place(found[1], found[2])
            return Sighting("", place, start, found[3] or "", audit_id) if place else None
        if audit_id and _COLLECTION.fullmatch(path):
            return Sighting("", "", start, "", audit_id)
    key = _first(attributes, _ETCD_KEYS)
    if key and (found := _ETCD_KEY.fullmatch(key)):
        place = sound_place(found[1], found[2])
        return Sighting("", place, start, CREATE if name == _CREATE_SPAN else "", audit_id) if place else None
    return None


def _named(attributes: Mapping[str, Value]) -> str:
    return sound_place(_first(attributes, _NAMES), _first(attributes, (_POD_NAME,)))


def _first(attributes: Mapping[str, Value], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def sound_uid(uid: Value) -> str:
    """Return a uid that Kubernetes could have made; "" for any other."""
    return _sound(uid, _LONGEST_UID)


def sound_place(namespace: str, name: str) -> str:
    """Return `namespace/name` of a Pod; "" where one is missing or none that Kubernetes would allow."""
    return _sound(f"{namespace}/{name}", _LONGEST_PLACE) if namespace and name else ""


def _sound(text: Value, longest: int) -> str:
    """Return a text that Kubernetes could have made, so that what is remembered has a bound; "" for any other."""
    return text if isinstance(text, str) and len(text) <= longest and text.isascii() else ""
