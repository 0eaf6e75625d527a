"""What kube-scheduler refuses in the args of its plugins, with its words and paths."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podtrail_instrumentation.steps import go_duration

from podtrail_scheduler.objects.durations import SECOND

from . import features as gates
from .args import (
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    DefaultConstraint,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from .errors import RefusedField, duplicate, forbidden, invalid, required, unsupported
from .features import FeatureGates
from .names import label_key_errors
from .validation_selectors import node_selector_errors, preferred_terms_errors

_STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")


def validate_args(args: PluginArgs, path: str, features: FeatureGates) -> list[RefusedField]:
    """All errors of completed args at `path`."""
    match args:
        case DefaultPreemptionArgs():
            return list(_default_preemption(args, path))
        case DynamicResourcesArgs():
            return list(_dynamic_resources(args, path, features))
        case InterPodAffinityArgs(hard_pod_affinity_weight=weight):
            wrong = not 0 <= weight <= 100
            return [invalid(f"{path}.hardPodAffinityWeight", weight, "not in valid range [0, 100]")] if wrong else []
        case NodeAffinityArgs():
            return list(_node_affinity(args.added_affinity or {}, f"{path}.addedAffinity"))
        case NodeResourcesBalancedAllocationArgs():
            return list(_balanced_allocation(args, path))
        case NodeResourcesFitArgs():
            return list(_node_resources_fit(args, path))
        case PodTopologySpreadArgs():
            return list(_pod_topology_spread(args, path))
        case VolumeBindingArgs():
            return list(_volume_binding(args, path, features))


def _default_preemption(args: DefaultPreemptionArgs, path: str) -> Iterator[RefusedField]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path, absolute_path = f"{path}.minCandidateNodesPercentage", f"{path}.minCandidateNodesAbsolute"
    if not 0 <= percentage <= 100:
        yield invalid(percentage_path, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        yield invalid(absolute_path, absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        both = "cannot be zero at the same time as "
        yield invalid(percentage_path, percentage, both + "minCandidateNodesAbsolute")
        yield invalid(absolute_path, absolute, both + "minCandidateNodesPercentage")


def _dynamic_resources(args: DynamicResourcesArgs, path: str, features: FeatureGates) -> Iterator[RefusedField]:
    filtering, binding = args.filter_timeout, args.binding_timeout
    if not features.enabled(gates.DRA_SCHEDULER_FILTER_TIMEOUT):
        if filtering is not None:
            yield forbidden(f"{path}.filterTimeout", "DRASchedulingFilterTimeout feature gate is disabled")
    elif filtering is not None and filtering < 0:
        yield invalid(f"{path}.filterTimeout", go_duration(filtering), "must be zero or positive")
    if not features.enabled(gates.DRA_DEVICE_BINDING_CONDITIONS):
        if binding is not None:
            off = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            yield forbidden(f"{path}.bindingTimeout", off)
    elif binding is not None and binding < SECOND:
        yield invalid(f"{path}.bindingTimeout", go_duration(binding), "must be at least 1 second")


def _node_affinity(affinity: Mapping[str, Any], path: str) -> Iterator[RefusedField]:
    if (selector := affinity.get("requiredDuringSchedulingIgnoredDuringExecution")) is not None:
        yield from node_selector_errors(selector, f"{path}.requiredDuringSchedulingIgnoredDuringExecution")
    terms = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    yield from preferred_terms_errors(terms, f"{path}.preferredDuringSchedulingIgnoredDuringExecution")


def _balanced_allocation(args: NodeResourcesBalancedAllocationArgs, path: str) -> Iterator[RefusedField]:
    seen = set()
    for index, resource in enumerate(args.resources):
        here = f"{path}.resources[{index}]"
        if resource.name in seen:
            yield duplicate(f"{here}.name", resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid(f"{here}.weight", resource.weight, "must be 1")


def _node_resources_fit(args: NodeResourcesFitArgs, path: str) -> Iterator[RefusedField]:
    prefix = f"{path}." if path else ""
    for index, name in enumerate(args.ignored_resources):
        here = f"{prefix}ignoredResources[{index}]"
        yield from (invalid(here, name, each) for each in label_key_errors(name))
    for index, group in enumerate(args.ignored_resource_groups):
        here = f"{prefix}ignoredResourceGroups[{index}]"
        if "/" in group:
            yield invalid(here, group, "resource group name can't contain '/'")
        yield from (invalid(here, group, each) for each in label_key_errors(group))
    strategy, here = args.scoring_strategy, f"{prefix}scoringStrategy"
    if strategy.type not in _STRATEGIES:
        yield unsupported(f"{here}.type", strategy.type, _STRATEGIES)
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield invalid(f"{here}.resources[{index}].weight", resource.weight, detail)
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type != REQUESTED_TO_CAPACITY_RATIO:
        if ratio is not None:
            yield forbidden(f"{here}.requestedToCapacityRatio", "must be nil when type is not RequestedToCapacityRatio")
    elif ratio is None:
        yield required(f"{here}.requestedToCapacityRatio", "must be specified when type is RequestedToCapacityRatio")
    else:
        yield from _shape(ratio.shape, f"{here}.requestedToCapacityRatio.shape")


def _pod_topology_spread(args: PodTopologySpreadArgs, path: str) -> Iterator[RefusedField]:
    kind, constraints = args.defaulting_type, args.default_constraints
    if kind not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        yield unsupported(f"{path}.defaultingType", kind, (SYSTEM_DEFAULTING, LIST_DEFAULTING))
    elif kind == SYSTEM_DEFAULTING and constraints:
        yield invalid(f"{path}.defaultingType", kind, "when .defaultConstraints are not empty")
    seen = set()
    for index, constraint in enumerate(constraints):
        here = f"{path}.defaultConstraints[{index}]"
        yield from _constraint(constraint, here)
        what = (constraint.topology_key, constraint.when_unsatisfiable)
        if what in seen:
            yield duplicate(here, f"{{{constraint.topology_key}, {constraint.when_unsatisfiable}}}")
        seen.add(what)


def _constraint(constraint: DefaultConstraint, path: str) -> Iterator[RefusedField]:
    if constraint.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    key, action = constraint.topology_key, constraint.when_unsatisfiable
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from (invalid(f"{path}.topologyKey", key, each) for each in label_key_errors(key))
    if not action:
        yield required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif action not in _UNSATISFIABLE:
        yield unsupported(f"{path}.whenUnsatisfiable", action, _UNSATISFIABLE)
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        yield forbidden(f"{path}.labelSelector", detail)


def _volume_binding(args: VolumeBindingArgs, path: str, features: FeatureGates) -> Iterator[RefusedField]:
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_seconds, detail)
    if features.enabled(gates.STORAGE_CAPACITY_SCORING):
        yield from _shape(args.shape, f"{path}.shape")
    elif args.shape:
        points = [{"Utilization": each.utilization, "Score": each.score} for each in args.shape]
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        yield invalid(f"{path}.shape", points, detail)


def _shape(shape: Sequence[UtilizationShapePoint], path: str) -> Iterator[RefusedField]:
    if not shape:
        yield required(path, "at least one point must be specified")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            detail = "values must be sorted in increasing order"
            yield invalid(f"{path}[{index}].utilization", shape[index].utilization, detail)
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield invalid(f"{path}[{index}].utilization", point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= 10:
            yield invalid(f"{path}[{index}].score", point.score, "not in valid range [0, 10]")
