"""Who a Pod is: by what it is found again, and how it is called where Pods of several clusters meet."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What is known of a Pod beside its attempts."""

    key: str
    """Its uid; its name with its cluster where its spans have none."""
    uid: str
    namespace: str
    name: str
    cluster: str = ""
    """`k8s.cluster.name` of the resource of its spans; "" where none says it."""
    gates: tuple[str, ...] = ()
    gated_since: int | None = None
    """Unix nanoseconds."""
    forgotten: int = 0
    """Attempts that were known and are no longer held."""
    life_trace_id: bytes = b""
    """Of the trace of its life, as `link_stitching` writes it; b"" where none was seen."""


class CalledPod(Protocol):
    """What a Pod is called by."""

    @property
    def key(self) -> str:
        """By what it is found."""

    @property
    def namespace(self) -> str:
        """Its namespace."""

    @property
    def name(self) -> str:
        """Its name; "" where its spans don't say it."""

    @property
    def cluster(self) -> str:
        """Its cluster; "" where its spans don't say it."""

    @property
    def several_clusters(self) -> bool:
        """Whether Pods of several clusters are known, so that a name alone may be that of several."""


def pod_title(pod: CalledPod) -> str:
    """Return how a Pod is called: `namespace/name`, with its cluster where there are several."""
    name = f"{pod.namespace}/{pod.name}" if pod.name else pod.key
    return f"{name} in cluster {pod.cluster}" if pod.several_clusters and pod.cluster else name


def in_cluster_of(cluster: str, key: str) -> str:
    """Return a key that is not unique beyond a cluster as one that is."""
    return f"{cluster}:{key}" if cluster else key
