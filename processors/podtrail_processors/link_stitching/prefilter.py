"""Tells groups that can't matter to stitching by a search through their bytes, before anything is decoded.

A mark that is there by chance costs a closer look; one that is not there means that there is nothing to look for.
"""

import re
from typing import Final

from podtrail.otlp import ROOT_NAME
from podtrail.otlp.byte_search import LINK_MARK
from podtrail.otlp.native import has
from podtrail.pod_identity import CLUE_MARK

ATTEMPT_MARK: Final = ROOT_NAME.encode()
_SYNC_MARK: Final = b"sync"
_POD_PATH: Final = b"/pods/"
_EVENT_PATH: Final = b"/events"
_ID_END: Final = b".id"
_COMMON_END: Final = b"Pod"
CREATION_MARK: Final = b"Create etcd3"
"""The name of the only span of a creation's that names the Pod."""
COLLECTION_MARK: Final = re.compile(
    rb"/(?:pods|token|deployments|replicasets|statefulsets|daemonsets|jobs|cronjobs|(?:replication)?controllers)(?![a-z])"
)
"""In paths and keys of Pods, what they are made for, and tokens for them."""
POST_MARK: Final = b"POST"


def is_marked(spans: bytes) -> bool:
    """Say whether there may be an attempt, a span that tells of a Pod or one with links among these."""
    if has(spans, _COMMON_END) and (has(spans, ATTEMPT_MARK) or has(spans, _SYNC_MARK)):
        return True
    if has(spans, _POD_PATH) or has(spans, _EVENT_PATH):
        return True
    if has(spans, _ID_END) and CLUE_MARK.search(spans):
        return True
    if (has(spans, CREATION_MARK) or has(spans, POST_MARK)) and COLLECTION_MARK.search(spans):
        return True
    return LINK_MARK.search(spans) is not None


def may_link(spans: bytes) -> bool:
    """Say whether there may be a span with links, or an attempt, among these."""
    return LINK_MARK.search(spans) is not None or has(spans, ATTEMPT_MARK)
