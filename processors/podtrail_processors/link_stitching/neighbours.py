"""Spans of other components that belong to a Pod's story: the API server's binding, the kubelet's `syncPod`.

Neither needs to know of the scheduler; which Pod they are about is read as everywhere (`pod_identity`).
"""

from typing import Final

from podtrail.otlp import SpanView
from podtrail_processors.pod_identity import Sighting, sighting_of

_SYNC_NAME: Final = "syncPod"
_BINDING: Final = "binding"
_SERVER_KIND: Final = 2


def synced_pod(span: SpanView) -> str:
    """Return the uid of the Pod that a kubelet's `syncPod` span is about; "" for any other span."""
    sighting = sighting_of(span) if span.name == _SYNC_NAME else None
    return sighting.uid if sighting else ""


def binding_of(span: SpanView) -> Sighting | None:
    """Return where and when an API server's span binds a Pod; None for any other span."""
    sighting = sighting_of(span) if span.kind == _SERVER_KIND else None
    return sighting if sighting and sighting.action == _BINDING else None
