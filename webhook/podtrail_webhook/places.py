"""Where the annotations of a Pod stand in an object: its own, or those of the template that Pods are made from."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from podtrail_webhook.review import AdmissionRequest, PatchOperation, RefusedReview

_TEMPLATE: Final = ("spec", "template")
_PLACES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): (),
    ("", "ReplicationController"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    ("batch", "Job"): _TEMPLATE,
}


class AnnotatedPlace(NamedTuple):
    """One `metadata` and the annotations in it."""

    path: str
    """A JSON Pointer (RFC 6901) to the metadata."""
    has_metadata: bool
    has_annotations: bool
    annotations: Mapping[str, str]

    def patch(self, changes: Mapping[str, str | None]) -> list[PatchOperation]:
        """The operations (RFC 6902) that set annotations, and remove those that are None here and stand there."""
        set_to = {name: value for name, value in changes.items() if value is not None}
        if not self.has_annotations:
            if not set_to:
                return []
            if not self.has_metadata:
                return [{"op": "add", "path": self.path, "value": {"annotations": set_to}}]
            return [{"op": "add", "path": f"{self.path}/annotations", "value": set_to}]
        gone = [name for name, value in changes.items() if value is None and name in self.annotations]
        return [
            *({"op": "remove", "path": self._pointer(name)} for name in gone),
            *({"op": "add", "path": self._pointer(name), "value": value} for name, value in set_to.items()),
        ]

    def _pointer(self, name: str) -> str:
        return f"{self.path}/annotations/{name.replace('~', '~0').replace('/', '~1')}"


def place_of(request: AdmissionRequest) -> AnnotatedPlace | None:
    """Where the object of a request has the annotations of its Pods; None where it has none.

    Raises:
        RefusedReview: the object is not shaped as its kind is.
    """
    way = _PLACES.get((request.group, request.kind))
    if way is None or request.subresource:
        return None
    holder, path = request.object, ""
    for step in way:
        path += f"/{step}"
        holder = _inner(holder, step, path)
    path += "/metadata"
    metadata = _inner(holder, "metadata", path)
    annotations = _inner(metadata, "annotations", f"{path}/annotations")
    for name, value in annotations.items():
        if not isinstance(value, str):
            raise RefusedReview(400, "malformed", f"request.object{path}/annotations: {name[:80]!r} is no string")
    return AnnotatedPlace(
        path, holder.get("metadata") is not None, metadata.get("annotations") is not None, annotations
    )


def is_controlled(request: AdmissionRequest) -> bool:
    """Whether a controller owns the object.

    Raises:
        RefusedReview: the object is not shaped as objects are.
    """
    owners = _inner(request.object, "metadata", "/metadata").get("ownerReferences") or []
    if not isinstance(owners, list):
        raise RefusedReview(400, "malformed", "request.object/metadata/ownerReferences is no list")
    return any(isinstance(owner, dict) and owner.get("controller") is True for owner in owners)


def resource_kind(request: AdmissionRequest) -> str:
    """The kind as a label of metrics: one of those that are known here, else `other`."""
    return request.kind if (request.group, request.kind) in _PLACES else "other"


def _inner(value: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    inner = value.get(name)
    if inner is None:
        return {}
    if not isinstance(inner, dict):
        raise RefusedReview(400, "malformed", f"request.object{path} is no object")
    return inner
