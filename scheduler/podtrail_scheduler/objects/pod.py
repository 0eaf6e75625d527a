"""Pods and what of their specification scheduling reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from .immutable import Immutable, frozen
from .labels import LabelSelector, NodeSelector, NodeSelectorTerm
from .node import HOSTNAME, Toleration


class ContainerRequests(NamedTuple):
    """What a container asks for; `early` is an init container that ends before the Pod runs."""

    name: str
    requests: Mapping[str, int]
    early: bool = False


class RequestMapping(NamedTuple):
    """Which request of a claim is for which resource of which container."""

    container: str
    resource: str
    request: str


class ExtendedClaim(NamedTuple):
    """The claim that a scheduler made for extended resources of a Pod."""

    name: str
    mappings: tuple[RequestMapping, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """The controller of an object."""

    kind: str
    name: str
    uid: str = ""
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class PreferredSchedulingTerm:
    """A term that is worth `weight` (1 to 100) when it matches."""

    weight: int
    preference: NodeSelectorTerm


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """Which nodes a Pod wants: `required` must match (None: all nodes do), `preferred` ones score."""

    required: NodeSelector | None = None
    preferred: tuple[PreferredSchedulingTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """Pods selected by labels and namespace, within the same value of the node label `topology_key`.

    The API server has merged matchLabelKeys and mismatchLabelKeys into the selector. Neither `namespaces` nor
    `namespace_selector`: the namespace of the Pod that has the term.
    """

    label_selector: LabelSelector | None
    topology_key: str = HOSTNAME
    namespaces: frozenset[str] = frozenset()
    namespace_selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class WeightedPodAffinityTerm:
    """A term that is worth `weight` (1 to 100) for each Pod that matches."""

    weight: int
    term: PodAffinityTerm


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """Terms of Pod affinity or of Pod anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = ()
    preferred: tuple[WeightedPodAffinityTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class Affinity:
    """Node affinity, Pod affinity and Pod anti-affinity of a Pod."""

    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: PodAffinity = PodAffinity()
    pod_anti_affinity: PodAffinity = PodAffinity()


@dataclass(frozen=True, slots=True)
class TopologySpreadConstraint:
    """How evenly the selected Pods are to be spread over the values of a node label."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port that a Pod takes on its node; the empty address is every address."""

    port: int
    protocol: str = "TCP"
    host_ip: str = ""


@dataclass(frozen=True, slots=True)
class Volume(Immutable):
    """A volume of a Pod that matters to scheduling: exactly one of the sources is given.

    `kind` and `source` are for the inline volumes that VolumeRestrictions and the limits of nodes look at
    (`gcePersistentDisk`, `awsElasticBlockStore`, `iscsi`, `rbd`, `azureDisk`, `cinder`, `csi` …): the API's object.
    """

    name: str
    claim_name: str = ""
    ephemeral: bool = False
    """A generic ephemeral volume, whose claim is called `<pod>-<volume>`."""
    read_only: bool = False
    kind: str = ""
    source: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PodResourceClaim:
    """A claim for devices: by name, or made for the Pod from a template (its name is then in the Pod's status)."""

    name: str
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


@dataclass(frozen=True)
class Pod(Immutable):
    """A Pod; times are unix nanoseconds, amounts in the units of `quantities`.

    `requests` is what the Pod counts as: the sum of its containers or the largest init container, sidecars and
    overhead included, Pod-level resources where given. `nonzero_requests` is (cpu in thousandths, memory in bytes) with
    the defaults of containers that ask for nothing, what nodes are scored by (None: as `requests`, defaults where 0).
    """

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
    """Of init containers and containers, in that order."""
    priority: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    scheduling_gates: tuple[str, ...] = ()
    node_name: str = ""
    nominated_node_name: str = ""
    scheduler_name: str = "default-scheduler"
    resource_version: str = ""
    owner: OwnerReference | None = None
    nonzero_requests: tuple[int, int] | None = None
    topology_spread: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    claim_statuses: Mapping[str, str] = field(default_factory=dict)
    """Names of the claims made from templates, by the Pod's own name for them (`status.resourceClaimStatuses`)."""
    phase: str = "Pending"
    start_time: int = 0
    termination_grace_period: int = 30
    """`spec.terminationGracePeriodSeconds`, in seconds."""
    conditions: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    """Status, reason and message by type."""
    host_network: bool = False
    required_node_features: frozenset[str] = frozenset()
    """What a node must have in `status.declaredFeatures`."""
    container_requests: Mapping[str, int] | None = None
    """Of a Pod with Pod-level resources: what NodeResourcesFit scores it by, which leaves those out (as upstream)."""

    containers: tuple[ContainerRequests, ...] = ()
    """Init containers, then containers, of a Pod that asks for resources which devices may stand for."""
    extended_claim: ExtendedClaim | None = None
    """The claim that was made for these (`status.extendedResourceClaimStatus`)."""

    @cached_property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def terminated(self) -> bool:
        """Whether it has run to its end: it takes no room any more."""
        return self.phase in ("Succeeded", "Failed")

    def named(self, name: str, uid: str) -> "Pod":
        """A Pod like this one under another name."""
        return self.changed(name=name, uid=uid)

    def changed(self, **changes: Any) -> "Pod":
        """This Pod with other values of these fields (`dataclasses.replace`, at a fraction of its cost)."""
        copy = object.__new__(Pod)
        copy.__dict__.update(self.__dict__, **changes)
        for name, value in changes.items():
            if type(value) is dict:
                copy.__dict__[name] = frozen(value)
        if "name" in changes or "namespace" in changes:
            copy.__dict__.pop("key", None)
        return copy

    def on(self, node_name: str) -> "Pod":
        """This Pod as it is when it runs on that node."""
        return self.changed(node_name=node_name, nominated_node_name="")
