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
    past_gates: tuple[str, ...] = ()
    """The gates that held it last, once they are gone."""
    gated_until: int | None = None
    """When its gates were seen to be gone, Unix nanoseconds; None while they hold it, or where that is unknown."""
    held_by: str = ""
    """What keeps the scheduler from trying it beside its gates."""
    condition: str = ""
    """Reason of its condition `PodScheduled` while that is False; "" where no watch shows one."""
    condition_message: str = ""
    created: int | None = None
    """When it was created, or came to the scheduler, Unix nanoseconds; None where that is unknown."""
    scheduler: str = ""
    """The scheduler that it asks for; "" where that is unknown."""
    bound: bool = False
    """Whether a watch or the scheduler's log shows that it has a node."""
    bound_at: int | None = None
    """When that was seen, Unix nanoseconds; None where it had a node before anything was seen of it."""
    node: str = ""
    """That node."""
    deleted: int | None = None
    """When it was deleted, Unix nanoseconds; None while it exists, as far as is known."""
    follows: int | None = None
    """When the Pod that had its name before was deleted, if it has no uid; its attempts are not this one's."""
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
