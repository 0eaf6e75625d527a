"""Telling what is of no concern by a search through its bytes, a group at a time.

A mark that is there by chance costs a closer look; one that is not there means that there is nothing to look for.
"""

import re
from typing import Final

from podtrail.otlp import ROOT_NAME, Link, append_links

ATTEMPT_MARK: Final = ROOT_NAME.encode()
_SYNC_MARK: Final = b"syncPod"
_BINDING_MARK: Final = b"/binding"
_COMMON_END: Final = b"Pod"

# How a link begins, learned from one: a byte, its length, then the trace id (which every encoder writes first).
_LINK: Final = append_links(b"", [Link(b"t" * 16, b"s" * 8, {})])
_LINK_MARK: Final = re.compile(re.escape(_LINK[:1]) + rb".{1,3}" + re.escape(_LINK[2:4]), re.DOTALL)


def is_neighbour(spans: bytes) -> bool:
    """Say whether there may be a span of the kubelet or the API server among these that joins a Pod's story."""
    return _SYNC_MARK in spans or _BINDING_MARK in spans


def is_marked(spans: bytes) -> bool:
    """Say whether there may be an attempt, a neighbour or a span with links among these."""
    if _COMMON_END in spans and (ATTEMPT_MARK in spans or _SYNC_MARK in spans):
        return True
    return _BINDING_MARK in spans or _LINK_MARK.search(spans) is not None
