"""The Kubernetes objects that scheduling reads, with the API's field names in snake case.

Objects are immutable: a change is a new object, as it is in a watch. Resource amounts are integers, see `quantities`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class Taint:
    """What keeps Pods off a node unless they tolerate it."""

    key: str
    value: str = ""
    effect: str = NO_SCHEDULE


@dataclass(frozen=True, slots=True)
class Toleration:
    """Which taints a Pod bears; empty key with Exists is all, empty effect is every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether this toleration covers `taint`."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)


@dataclass(frozen=True, slots=True)
class NodeSelectorRequirement:
    """A condition on one label; operators In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` meet the condition; Gt and Lt compare integers and fail on anything else."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        if value is None or not value.lstrip("-").isdigit():
            return False
        bound = int(self.values[0])
        return int(value) > bound if self.operator == "Gt" else int(value) < bound


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Conditions that must all hold; a term without any matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether all conditions hold for a node with these labels."""
        return bool(self.match_expressions) and all(each.matches(labels) for each in self.match_expressions)


@dataclass(frozen=True, slots=True)
class PreferredSchedulingTerm:
    """A term that is worth `weight` (1 to 100) when it matches."""

    weight: int
    preference: NodeSelectorTerm


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """Which nodes a Pod wants: one of `required` must match (none: all nodes do), `preferred` ones score."""

    required: tuple[NodeSelectorTerm, ...] = ()
    preferred: tuple[PreferredSchedulingTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """Pods of the same namespace with these labels, within the same value of the node label `topology_key`."""

    match_labels: Mapping[str, str]
    topology_key: str = HOSTNAME

    def matches(self, owner: "Pod", other: "Pod") -> bool:
        """Whether `other` is one of the Pods that `owner`'s term speaks of."""
        return owner.namespace == other.namespace and self.match_labels.items() <= other.labels.items()


@dataclass(frozen=True, slots=True)
class Affinity:
    """Required node affinity, Pod affinity and Pod anti-affinity of a Pod."""

    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port that a Pod takes on its node."""

    port: int
    protocol: str = "TCP"


@dataclass(frozen=True, slots=True)
class Pod:
    """A Pod; times are unix nanoseconds."""

    name: str
    namespace: str = "default"
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    creation_timestamp: int = 0
    deletion_timestamp: int | None = None
    requests: Mapping[str, int] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    affinity: Affinity = Affinity()
    host_ports: tuple[HostPort, ...] = ()
    images: tuple[str, ...] = ()
    priority: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    scheduling_gates: tuple[str, ...] = ()
    node_name: str = ""
    nominated_node_name: str = ""

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    def named(self, name: str, uid: str) -> "Pod":
        """A Pod like this one under another name."""
        return replace(self, name=name, uid=uid)

    def on(self, node_name: str) -> "Pod":
        """This Pod as it is when it runs on that node."""
        return replace(self, node_name=node_name, nominated_node_name="")


@dataclass(frozen=True, slots=True)
class Node:
    """A node; `images` are the sizes in bytes of the images it has."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: Mapping[str, int] = field(default_factory=dict)
