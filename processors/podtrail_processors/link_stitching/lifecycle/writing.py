"""Parts of a life as spans: a root `PodLifecycle`, its parts as its children, each linked to what it stands for."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from podtrail.otlp import (
    CLUSTER_NAME,
    Group,
    Link,
    Status,
    Value,
    encode_span,
    frame,
    resource_header,
    scope_header,
)
from podtrail.otlp.remembering import remembering
from podtrail_processors.link_stitching.lifecycle.ids import part_id_of, root_id_of, trace_id_of
from podtrail_processors.link_stitching.lifecycle.part import ATTEMPT, Part
from podtrail_processors.link_stitching.lifecycle.pod_lifecycle import PodLifecycle

NAME: Final = "PodLifecycle"
STATE: Final = "podtrail.lifecycle.state"
_SCOPE: Final = scope_header("podtrail.link_stitching")
_INTERNAL: Final = 1
_FAILED: Final = 2


class Known(Protocol):
    """What the processor knows of originals."""

    def number(self, original: bytes) -> int:
        """Return the number of an attempt; 0 when it is not known."""

    def creation(self, uid: str) -> Part | None:
        """Return the request that created a Pod as a part of its life; None where none is known for certain."""

    def binding(self, attempt: bytes) -> Part | None:
        """Return the request by which an attempt bound its Pod as a part of its life; None where none is known."""

    def moved(self, original: bytes) -> bool:
        """Say whether a span is moved into the life itself, so that nothing has to stand for it."""

    def outcome(self, original: bytes) -> Mapping[str, Value]:
        """Return the attributes that say whether a link to a span leads anywhere."""


def life_group(life: PodLifecycle, parts: Sequence[Part], known: Known, root: Part | None) -> Group:
    """Return spans of a Pod's life as a group; with `root`, which has its times and state, the root among them."""
    spans = [_span(life, part, known) for part in parts]
    if root is not None:
        spans.append(_root(life, root))
    return Group(_resource(life.cluster), _SCOPE, trace_id_of(life.uid), frame(spans), len(spans))


@remembering(128)
def _resource(cluster: str) -> bytes:
    """Return the resource of what is told of a cluster's Pods, which does not say one where their own spans don't."""
    return resource_header({"service.name": "podtrail", **({CLUSTER_NAME: cluster} if cluster else {})})


def _span(life: PodLifecycle, part: Part, known: Known) -> bytes:
    attributes = {**_identity(life), **part.attributes}
    if part.kind == ATTEMPT and (number := known.number(part.original)):
        attributes["podtrail.attempt.number"] = number
    link = Link(
        part.original[:16],
        part.original[16:],
        {"podtrail.link.type": "original", "podtrail.link.evidence": part.evidence, **known.outcome(part.original)},
    )
    return encode_span(
        trace_id=trace_id_of(life.uid),
        span_id=part_id_of(life.uid, part.kind, part.which),
        parent_span_id=root_id_of(life.uid),
        name=part.kind,
        kind=_INTERNAL,
        start=part.start,
        end=max(part.start, part.end),
        status=Status(_FAILED, part.error) if part.error else None,
        attributes=attributes,
        links=[link],
    )


def _root(life: PodLifecycle, root: Part) -> bytes:
    return encode_span(
        trace_id=trace_id_of(life.uid),
        span_id=root_id_of(life.uid),
        name=NAME,
        kind=_INTERNAL,
        start=root.start,
        end=root.end,
        status=Status(_FAILED, root.error) if root.error else None,
        attributes={**_identity(life), **root.attributes},
    )


def _identity(life: PodLifecycle) -> dict[str, Value]:
    names = {"k8s.namespace.name": life.namespace, "k8s.pod.name": life.name, "k8s.node.name": life.node}
    return {"k8s.pod.uid": life.uid, **{key: name for key, name in names.items() if name}}
