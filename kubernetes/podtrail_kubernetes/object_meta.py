"""The identity of an object of the API, from its JSON: namespace and name, uid, resource version."""

from collections.abc import Mapping
from typing import Any, NamedTuple

Object = Mapping[str, Any]


class NamespacedName(NamedTuple):
    """Where it is found; the namespace of what has none is empty."""

    namespace: str
    name: str


class ObjectVersion(NamedTuple):
    """Which one it is, and as of when."""

    uid: str
    resource_version: str


def metadata_of(each: object) -> Mapping[str, Any]:
    """The metadata of an object, empty for what is none."""
    metadata = each.get("metadata") if isinstance(each, Mapping) else None
    return metadata if isinstance(metadata, Mapping) else {}


def key_of(each: Object) -> NamespacedName:
    """The key of an object."""
    metadata = metadata_of(each)
    return NamespacedName(metadata.get("namespace", ""), metadata.get("name", ""))


def is_identified(each: object) -> bool:
    """Whether it says in words who it is; what does not is nothing that can be followed."""
    metadata = metadata_of(each)
    told = [metadata.get(name) for name in ("name", "uid", "resourceVersion")]
    return all(isinstance(one, str) and one for one in told) and isinstance(metadata.get("namespace", ""), str)


def version_of(each: Object) -> ObjectVersion:
    """The identity of an object."""
    metadata = metadata_of(each)
    return ObjectVersion(metadata.get("uid", ""), metadata.get("resourceVersion", ""))


def skeleton(key: NamespacedName, identity: ObjectVersion) -> Object:
    """An object of which no more is known."""
    metadata = {"name": key.name, "uid": identity.uid, "resourceVersion": identity.resource_version}
    return {"metadata": metadata | {"namespace": key.namespace} if key.namespace else metadata}
