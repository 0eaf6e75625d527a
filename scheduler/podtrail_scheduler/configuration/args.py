# ruff: noqa: RUF009 - `described` makes the field that a dataclass wants there
"""The args of the default plugins (kubescheduler.config.k8s.io/v1), with upstream's names and defaults.

A plugin takes its dataclass as it is here: decoded, defaulted and validated. Defaults that depend on a feature gate
are those when it is on, as it is unless configured otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from podtrail_scheduler.objects.durations import MINUTE, SECOND

from .affinity import LabelSelector, NodeAffinity
from .wire import Int32, Int64, Nanoseconds, described

CPU = "cpu"
MEMORY = "memory"

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    """How many nodes preemption tries: the larger of a percentage of all and an absolute number."""

    min_candidate_nodes_percentage: Int32 = described(10, "Percentage of the nodes, 0 to 100.")
    min_candidate_nodes_absolute: Int32 = described(100, "Number of nodes.")


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    """What terms of running Pods count in scores."""

    hard_pod_affinity_weight: Int32 = described(1, "Weight of a required term of a running Pod, 0 to 100.")
    ignore_preferred_terms_of_existing_pods: bool = described(
        False, "Preferred terms of running Pods only count for Pods that have Pod affinity themselves."
    )


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """A node affinity for every Pod of the profile on top of its own."""

    added_affinity: Annotated[Mapping[str, Any], NodeAffinity] | None = described(
        None, "The API's `NodeAffinity`; handed on as the JSON it is."
    )


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource that counts in a score."""

    name: str = described("", "Name of the resource.")
    weight: Int64 = described(1, "1 to 100; 0 is 1.")


@dataclass(frozen=True, slots=True)
class UtilizationShapePoint:
    """A point of a scoring function."""

    utilization: Int32 = described(0, "Percent.")
    score: Int32 = described(0, "0 to 10.")


DEFAULT_RESOURCES = (ResourceSpec(CPU), ResourceSpec(MEMORY))
DEFAULT_SHAPE = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))

ScoringStrategyType = Annotated[str, "v1.ScoringStrategyType"]
Defaulting = Annotated[str, "v1.PodTopologySpreadConstraintsDefaulting"]
UnsatisfiableConstraintAction = Annotated[str, "v1.UnsatisfiableConstraintAction"]
NodeInclusionPolicy = Annotated[str, "v1.NodeInclusionPolicy"]


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatioParam:
    """The scoring function of the strategy RequestedToCapacityRatio."""

    shape: tuple[UtilizationShapePoint, ...] = described((), "Points; utilization rises from one to the next.")


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """How NodeResourcesFit scores."""

    type: ScoringStrategyType = described(
        LEAST_ALLOCATED, "`LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`."
    )
    resources: tuple[ResourceSpec, ...] = described(DEFAULT_RESOURCES, "What counts.")
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = described(
        None, "With the type `RequestedToCapacityRatio` only."
    )


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    """What Filter ignores and how Score counts."""

    ignored_resources: tuple[str, ...] = described((), "Resources that Filter ignores.")
    ignored_resource_groups: tuple[str, ...] = described(
        (), "Resources whose part before the slash is one of these are ignored, too."
    )
    scoring_strategy: ScoringStrategy = described(ScoringStrategy(), "How Score counts.")


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    """The resources whose use is to be balanced."""

    resources: tuple[ResourceSpec, ...] = described(DEFAULT_RESOURCES, "What counts; every weight is 1.")


@dataclass(frozen=True, slots=True)
class DefaultConstraint:
    """A topology spread constraint for Pods that have none; its selector is made from the Pod's owners."""

    max_skew: Int32 = described(0, "How far the numbers of Pods of two domains may be apart.")
    topology_key: str = described("", "Node label whose values are the domains.")
    when_unsatisfiable: UnsatisfiableConstraintAction = described("", "`DoNotSchedule` or `ScheduleAnyway`.")
    label_selector: Annotated[Mapping[str, Any], LabelSelector] | None = described(None, "Must be unset.")
    min_domains: Int32 | None = described(None, "Fewer domains than this count as if one were empty.")
    node_affinity_policy: NodeInclusionPolicy = described("", "`Honor` (unset) or `Ignore`.")
    node_taints_policy: NodeInclusionPolicy = described("", "`Honor` or `Ignore` (unset).")
    match_label_keys: tuple[str, ...] = described((), "Pod labels whose values are added to the selector.")


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    """The constraints of Pods that have none."""

    default_constraints: tuple[DefaultConstraint, ...] = described((), "With the type `List`.")
    defaulting_type: Defaulting = described(
        SYSTEM_DEFAULTING, "`System` for Kubernetes' own constraints, `List` for the listed ones."
    )


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """How long PreBind waits for volumes, and how nodes are scored by their storage."""

    bind_timeout_seconds: Int64 = described(600, "Longest wait in PreBind; 0 does not wait.")
    shape: tuple[UtilizationShapePoint, ...] = described(
        DEFAULT_SHAPE, "The scoring function; needs the gate `StorageCapacityScoring`."
    )


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """Limits of the search for devices and of the wait for them; None when the gate is off."""

    filter_timeout: Nanoseconds | None = described(
        10 * SECOND, "Of Filter for a node; 0: none. Needs the gate `DRASchedulerFilterTimeout`."
    )
    binding_timeout: Nanoseconds | None = described(
        10 * MINUTE, "Of PreBind's wait for device conditions. Needs the gate `DRADeviceBindingConditions`."
    )


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

ARGS: Mapping[str, type[PluginArgs]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
