"""The args of the default plugins (kubescheduler.config.k8s.io/v1), with upstream's names and defaults.

A plugin takes its dataclass as it is here: decoded, defaulted and validated. Defaults that depend on a feature gate
are those of the gates' own defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CPU = "cpu"
MEMORY = "memory"

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    """How many nodes preemption tries: the larger of a percentage (0 to 100) of all and an absolute number."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    """What a required term of a running Pod counts as in scores (0 to 100), and whether its preferred ones count."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """A node affinity that holds for every Pod of the profile on top of its own; the API's JSON of `NodeAffinity`."""

    added_affinity: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource that counts in a score, with its weight (1 to 100)."""

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class UtilizationShapePoint:
    """A point of a scoring function: `score` (0 to 10) at `utilization` (percent)."""

    utilization: int
    score: int


DEFAULT_RESOURCES = (ResourceSpec(CPU), ResourceSpec(MEMORY))


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatioParam:
    """The scoring function of the strategy RequestedToCapacityRatio; utilization rises from point to point."""

    shape: tuple[UtilizationShapePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """How NodeResourcesFit scores; `type` is LeastAllocated, MostAllocated or RequestedToCapacityRatio."""

    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    """Resources and groups of resources (the part before the slash) that Filter ignores, and how Score counts."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    """The resources whose use is to be balanced; every weight is 1."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


@dataclass(frozen=True, slots=True)
class DefaultConstraint:
    """A topology spread constraint for Pods that have none; its selector is made from the Pod's owners.

    Policies that were not given are empty: kube-scheduler then reads Honor for affinity and Ignore for taints.
    """

    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    min_domains: int | None = None
    node_affinity_policy: str = ""
    node_taints_policy: str = ""
    match_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    """The default constraints: Kubernetes' own (`System`) or the listed ones (`List`)."""

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """How long PreBind waits for volumes (seconds, 0 does not wait); `shape` needs the gate StorageCapacityScoring."""

    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """Limits in nanoseconds: of Filter a node (0: none) and of PreBind's wait for device conditions; None: gate off."""

    filter_timeout: int | None = 10_000_000_000
    binding_timeout: int | None = 600_000_000_000


PluginArgs = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)
