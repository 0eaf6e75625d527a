"""Spans of other components that belong to a Pod's story: the API server's binding, the kubelet's `syncPod`.

Neither needs to know of the scheduler. Names are those of Kubernetes: the API server's span of a request is called
`POST /api/v1/namespaces/{:namespace}/pods/{:name}/binding` and has the real path in `url.path` (older ones in
`http.target`), the kubelet's has `k8s.pod.uid`.
"""

import re
from typing import Final

from podtrail.otlp import SpanView

_SYNC_NAME: Final = "syncPod"
_BINDING_PATH: Final = re.compile(r"/api/v1/namespaces/([^/?]{1,253})/pods/([^/?]{1,253})/binding(?:\?.*)?", re.DOTALL)
_SERVER_KIND: Final = 2


def synced_pod(span: SpanView) -> str:
    """Return the uid of the Pod that a kubelet's `syncPod` span is about; "" for any other span."""
    uid = span.attributes.get("k8s.pod.uid") if span.name == _SYNC_NAME else None
    return uid if isinstance(uid, str) else ""


def bound_pod(span: SpanView) -> str:
    """Return `namespace/name` of the Pod that an API server's span binds; "" for any other span."""
    if span.kind != _SERVER_KIND:
        return ""
    attributes = span.attributes
    path = attributes.get("url.path") or attributes.get("http.target")
    found = _BINDING_PATH.fullmatch(path) if isinstance(path, str) else None
    return f"{found[1]}/{found[2]}" if found else ""
