"""A reverse proxy on the loopback that a client's kubeconfig leads through, so that each of its requests is traced.

It holds the user's credentials in memory and gives the client a temporary kubeconfig with none of them: a certificate
to know the proxy by and a token that is good for this run alone. Knows trace contexts, no spans.
"""

from .client_contexts import ClientContexts, in_cluster, read_contexts
from .request_trace import RequestTrace, ended_well
from .server import HOST, TracingProxy
from .written_objects import WrittenObject

__all__ = [
    "HOST",
    "ClientContexts",
    "RequestTrace",
    "TracingProxy",
    "WrittenObject",
    "ended_well",
    "in_cluster",
    "read_contexts",
]
