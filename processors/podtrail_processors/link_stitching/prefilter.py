"""Tells groups that can't matter to stitching by a search through their bytes, before anything is decoded.

A mark that is there by chance costs a closer look; one that is not there means that there is nothing to look for.
"""

from typing import Final

from podtrail.otlp import ROOT_NAME
from podtrail.otlp.byte_search import LINK_MARK

ATTEMPT_MARK: Final = ROOT_NAME.encode()
_SYNC_MARK: Final = b"syncPod"
_BINDING_MARK: Final = b"/binding"
_STATUS_MARK: Final = b"/status"
_COMMON_END: Final = b"Pod"
CREATION_MARK: Final = b"Create etcd3"
"""The name of the only span of a creation's that names the Pod."""
_SCHEDULER_MARK: Final = b"scheduler"


def is_neighbour(spans: bytes) -> bool:
    """Say whether there may be a span of the kubelet or the API server among these that joins a Pod's story."""
    return _SYNC_MARK in spans or _BINDING_MARK in spans or (_STATUS_MARK in spans and _SCHEDULER_MARK in spans)


def is_marked(spans: bytes) -> bool:
    """Say whether there may be an attempt, a neighbour or a span with links among these."""
    if _COMMON_END in spans and (ATTEMPT_MARK in spans or _SYNC_MARK in spans):
        return True
    if _BINDING_MARK in spans or (_STATUS_MARK in spans and _SCHEDULER_MARK in spans):
        return True
    return LINK_MARK.search(spans) is not None
