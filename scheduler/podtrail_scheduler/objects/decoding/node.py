"""Makes a `Node` of the JSON of a v1 Node."""

from collections.abc import Mapping

from podtrail_scheduler.objects.node import Node, Taint
from podtrail_scheduler.objects.quantities import PODS, amount, is_counted

from .reading import Json, flag, items, labels, part, quantities, text, texts, whole


def decode_node(node: Json) -> Node:
    """A Node of the API's JSON.

    Raises:
        ValueError: with the path of what scheduling needs and cannot read.
    """
    metadata = part(node, "metadata")
    spec = part(node, "spec")
    status = part(node, "status")
    allocatable = quantities(status, "allocatable", "status")
    return Node(
        name=text(metadata, "name", "metadata"),
        labels=labels(metadata, "labels", "metadata"),
        allocatable={
            name: amount(name, each) for name, each in allocatable.items() if name == PODS or is_counted(name)
        },
        taints=items(spec, "taints", _taint, "spec"),
        unschedulable=flag(spec, "unschedulable", "spec"),
        images=_images(status),
        annotations=labels(metadata, "annotations", "metadata"),
        uid=text(metadata, "uid", "metadata"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        conditions=items(status, "conditions", _condition, "status"),
        declared_features=frozenset(texts(status, "declaredFeatures", "status")),
    )


def _taint(each: Json) -> Taint:
    return Taint(text(each, "key"), text(each, "value"), text(each, "effect"))


def _condition(each: Json) -> tuple[str, str]:
    return text(each, "type"), text(each, "status")


def _images(status: Json) -> Mapping[str, int]:
    """By each of their names; of two images of one name the first counts."""
    return {name: size for names, size in reversed(items(status, "images", _image, "status")) for name in names}


def _image(each: Json) -> tuple[tuple[str, ...], int]:
    return texts(each, "names"), whole(each, "sizeBytes") or 0
