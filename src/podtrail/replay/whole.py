"""A configuration of processors alone, as a whole one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from podtrail.config import Document
from podtrail.config.nodes import Entry, MapNode

_AROUND: Final[Mapping[str, object]] = {
    "receivers": {"otlp": {"protocols": {"grpc": None}}},
    "exporters": {"debug": None},
}


def whole(root: MapNode) -> MapNode:
    """Return the configuration with a pipeline of all its processors, in their order, if it has none itself."""
    processors = root.get("processors")
    if "service" in root.entries or not isinstance(processors, MapNode):
        return root
    pipeline = {"receivers": ["otlp"], "processors": list(processors.entries), "exporters": ["debug"]}
    around = Document.from_mapping({**_AROUND, "service": {"pipelines": {"traces": pipeline}}}).root
    entries = {key: Entry(root.position, entry.value) for key, entry in around.entries.items()}
    return replace(root, entries={**entries, **root.entries})
