"""Names of several clusters told apart: a Pod of one is another than that of the same name in the next.

Uids and ids of runtimes are unique beyond one cluster, names are not.
"""

from collections.abc import Mapping
from hashlib import blake2b

from podtrail.otlp import CLUSTER_NAME, Value


def cluster_of(resource: Mapping[str, Value]) -> str:
    """Return what stands for the cluster that a resource says it is of, 16 characters; "" where it does not say."""
    name = resource.get(CLUSTER_NAME)
    return blake2b(name.encode(), digest_size=8).hexdigest() if isinstance(name, str) and name else ""


def in_cluster(cluster: str, name: str) -> str:
    """Return a name (`namespace/name`, or that of a node) as that of a cluster; "" stays that."""
    return f"{cluster}:{name}" if cluster and name else name


def may_be_same(one: str, other: str) -> bool:
    """Say whether two names may be of one thing: who does not say its cluster may mean any."""
    if one == other:
        return True
    bare, other_bare = one.rpartition(":")[2], other.rpartition(":")[2]
    return bare == other_bare and (one == bare or other == other_bare)
