"""What kube-scheduler completes in a configuration: the default plugins, and values that 0 and nothing stand for."""

from dataclasses import fields, replace

from podtrail_scheduler.objects.durations import SECOND

from . import features as gates
from .args import (
    ARGS,
    DEFAULT_RESOURCES,
    DEFAULT_SHAPE,
    SYSTEM_DEFAULTING,
    DynamicResourcesArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    VolumeBindingArgs,
)
from .features import FeatureGates
from .types import (
    DEFAULT_SCHEDULER_NAME,
    ClientConnectionConfiguration,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
)

_DEFAULT_PLUGINS = (
    Plugin("SchedulingGates"),
    Plugin("PrioritySort"),
    Plugin("NodeName"),
    Plugin("NodeUnschedulable"),
    Plugin("TaintToleration", 3),
    Plugin("NodeAffinity", 2),
    Plugin("NodePorts"),
    Plugin("NodeResourcesFit", 1),
    Plugin("VolumeRestrictions"),
    Plugin("NodeVolumeLimits"),
    Plugin("VolumeBinding"),
    Plugin("VolumeZone"),
    Plugin("PodTopologySpread", 2),
    Plugin("InterPodAffinity", 2),
    Plugin("DynamicResources", 2),
    Plugin("DefaultPreemption"),
    Plugin("NodeResourcesBalancedAllocation", 1),
    Plugin("ImageLocality", 1),
    Plugin("DefaultBinder"),
    Plugin("NodeDeclaredFeatures"),
)
EXTENDER_TIMEOUT = 5 * SECOND
_GATED = {"DynamicResources": gates.DYNAMIC_RESOURCE_ALLOCATION, "NodeDeclaredFeatures": gates.NODE_DECLARED_FEATURES}


def default_plugins(features: FeatureGates) -> tuple[Plugin, ...]:
    """The plugins that are enabled at every extension point they serve, in order, with their weights."""
    return tuple(each for each in _DEFAULT_PLUGINS if each.name not in _GATED or features.enabled(_GATED[each.name]))


def complete(given: KubeSchedulerConfiguration, features: FeatureGates) -> KubeSchedulerConfiguration:
    """The configuration with every default; args must have been completed already (see `complete_args`)."""
    profiles = given.profiles or (KubeSchedulerProfile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    contention = given.enable_contention_profiling
    ignored = tuple(
        resource.name
        for extender in given.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    completed = tuple(_complete_profile(profile, features) for profile in profiles)
    return replace(
        given,
        profiles=tuple(_ignoring(ignored, profile) for profile in completed) if ignored else completed,
        extenders=tuple(
            replace(extender, http_timeout=extender.http_timeout or EXTENDER_TIMEOUT) for extender in given.extenders
        ),
        leader_election=_non_zero(given.leader_election),
        client_connection=replace(
            given.client_connection,
            content_type=given.client_connection.content_type or ClientConnectionConfiguration().content_type,
            qps=given.client_connection.qps or ClientConnectionConfiguration().qps,
            burst=given.client_connection.burst or ClientConnectionConfiguration().burst,
        ),
        enable_contention_profiling=given.enable_profiling if contention is None else contention,
    )


def complete_args(args: PluginArgs, features: FeatureGates, *, shaped: bool = False) -> PluginArgs:
    """Args with every default. `shaped`: VolumeBinding's `shape` was given, which is an error with the gate off."""
    match args:
        case NodeResourcesFitArgs(scoring_strategy=strategy):
            resources = _weighed(strategy.resources) or DEFAULT_RESOURCES
            return replace(args, scoring_strategy=replace(strategy, resources=resources))
        case NodeResourcesBalancedAllocationArgs():
            return replace(args, resources=_weighed(args.resources) or DEFAULT_RESOURCES)
        case PodTopologySpreadArgs():
            return replace(args, defaulting_type=args.defaulting_type or SYSTEM_DEFAULTING)
        case VolumeBindingArgs() if features.enabled(gates.STORAGE_CAPACITY_SCORING):
            return replace(args, shape=args.shape or DEFAULT_SHAPE)
        case VolumeBindingArgs() if not shaped:
            return replace(args, shape=())
    return args


def default_args(name: str, features: FeatureGates) -> PluginArgs | None:
    """The args of a plugin that has none in the document; None for a plugin without any, or not a default one."""
    if name not in ARGS:
        return None
    made = ARGS[name]()
    if isinstance(made, DynamicResourcesArgs):
        if not features.enabled(gates.DRA_SCHEDULER_FILTER_TIMEOUT):
            made = replace(made, filter_timeout=None)
        if not features.enabled(gates.DRA_DEVICE_BINDING_CONDITIONS):
            made = replace(made, binding_timeout=None)
    return complete_args(made, features)


def _non_zero(given: LeaderElectionConfiguration) -> LeaderElectionConfiguration:
    default = LeaderElectionConfiguration()
    return LeaderElectionConfiguration(
        given.leader_elect,
        *(getattr(given, each.name) or getattr(default, each.name) for each in fields(given)[1:]),
    )


def _complete_profile(given: KubeSchedulerProfile, features: FeatureGates) -> KubeSchedulerProfile:
    defaults = Plugins(multi_point=PluginSet(default_plugins(features)))
    plugins = Plugins(
        **{
            each.name: merge(getattr(defaults, each.name), getattr(given.plugins, each.name))
            for each in fields(Plugins)
        }
    )
    configured = {each.name for each in given.plugin_config}
    names = {plugin.name for each in fields(Plugins) for plugin in getattr(plugins, each.name).enabled}
    added = [
        PluginConfig(name, args)
        for name in sorted(names - configured)
        if (args := default_args(name, features)) is not None
    ]
    return replace(given, plugins=plugins, plugin_config=(*given.plugin_config, *added))


def _ignoring(resources: tuple[str, ...], given: KubeSchedulerProfile) -> KubeSchedulerProfile:
    """The profile whose NodeResourcesFit ignores what extenders look after alone."""
    return replace(
        given,
        plugin_config=tuple(
            replace(each, args=replace(each.args, ignored_resources=resources))
            if isinstance(each.args, NodeResourcesFitArgs)
            else each
            for each in given.plugin_config
        ),
    )


def merge(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Default plugins unless disabled, one that is enabled again in its place with its new weight, then the rest."""
    disabled = {each.name for each in (*custom.disabled, *default.disabled)}
    again = {each.name: index for index, each in enumerate(custom.enabled)}
    enabled: list[Plugin] = []
    replaced = set()
    for plugin in () if "*" in disabled else default.enabled:
        if plugin.name in disabled:
            continue
        if plugin.name in again:
            replaced.add(again[plugin.name])
            enabled.append(custom.enabled[again[plugin.name]])
        else:
            enabled.append(plugin)
    enabled += [plugin for index, plugin in enumerate(custom.enabled) if index not in replaced]
    return PluginSet(tuple(enabled), tuple(Plugin(each.name) for each in (*custom.disabled, *default.disabled)))


def _weighed(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    return tuple(each if each.weight else replace(each, weight=1) for each in resources)
