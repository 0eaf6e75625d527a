"""All plugins there are, the default profile, and profiles made from a configuration.

Plugins of others are found by the entry point group `podtrail_scheduler.plugins` (the entry point's name is the
plugin's) or named as `module:Class`; each is made with its handle and its args, as the default ones are.
"""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType

from podtrail_scheduler.configuration.defaults import default_plugins
from podtrail_scheduler.configuration.expansion import ProfileConfiguration
from podtrail_scheduler.configuration.features import FeatureGates
from podtrail_scheduler.framework.aside import is_raised_by_plugin
from podtrail_scheduler.framework.extension_points import Plugin
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.runtime.profile import Enabled, Profile

from .balanced_allocation import BalancedAllocation
from .default_binder import DefaultBinder
from .dynamic_resources import DynamicResources
from .image_locality import ImageLocality
from .node_affinity import NodeAffinity
from .node_declared_features import NodeDeclaredFeatures
from .node_name import NodeName
from .node_ports import NodePorts
from .node_resources_fit import NodeResourcesFit
from .node_unschedulable import NodeUnschedulable
from .node_volume_limits import NodeVolumeLimits
from .pod_affinity import InterPodAffinity
from .preemption import DefaultPreemption
from .priority_sort import PrioritySort
from .scheduling_gates import SchedulingGates
from .taint_toleration import TaintToleration
from .topology_spread import PodTopologySpread
from .volume_binding import VolumeBinding
from .volume_restrictions import VolumeRestrictions
from .volume_zone import VolumeZone

DEFAULT_SCHEDULER = "default-scheduler"
GROUP = "podtrail_scheduler.plugins"

Make = Callable[..., Plugin]
"""A plugin's class: called with a `Handle` and the plugin's args (None: none were given)."""

_OURS: Sequence[Make] = (
    BalancedAllocation,
    DefaultBinder,
    DefaultPreemption,
    DynamicResources,
    ImageLocality,
    InterPodAffinity,
    NodeAffinity,
    NodeDeclaredFeatures,
    NodeName,
    NodePorts,
    NodeResourcesFit,
    NodeUnschedulable,
    NodeVolumeLimits,
    PodTopologySpread,
    PrioritySort,
    SchedulingGates,
    TaintToleration,
    VolumeBinding,
    VolumeRestrictions,
    VolumeZone,
)
IN_TREE: Mapping[str, Make] = {make.name: make for make in _OURS}  # type: ignore[attr-defined]

_METHODS = {
    "pre_enqueue": "pre_enqueue",
    "queue_sort": "sort_key",
    "pre_filter": "pre_filter",
    "filter": "filter",
    "post_filter": "post_filter",
    "pre_score": "pre_score",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "pre_bind": "pre_bind",
    "bind": "bind",
    "post_bind": "post_bind",
}


_IDLE = {
    "NodeResourcesFit": ("pre_filter", "pre_score"),
    "NodeUnschedulable": ("pre_filter",),
    "TaintToleration": ("pre_filter", "pre_score"),
}
"""Points where kube-scheduler's plugins prepare what ours need not: a configuration may name them, nothing runs."""


class PluginNotFoundError(Exception):
    """A plugin that was named could not be imported; the text says which and why."""


def available(
    named: Mapping[str, str] | None = None, find: Callable[[str], ModuleType] = import_module
) -> dict[str, Make]:
    """Every plugin by name: the default ones, those of installed packages, and those `named` as `module:Class`.

    `find` imports the modules of those that are named.

    Raises:
        PluginNotFoundError: one that is named can't be imported.
    """
    found = dict(IN_TREE)
    for entry_point in entry_points(group=GROUP):
        found[entry_point.name] = _imported(entry_point.name, entry_point.value)
    for name, reference in (named or {}).items():
        found[name] = _imported(name, reference, find)
    return found


def extension_points(makers: Mapping[str, Make]) -> dict[str, frozenset[str]]:
    """Which extension points each plugin serves, by the methods its class has."""
    return {
        name: frozenset(point for point, method in _METHODS.items() if hasattr(make, method)).union(_IDLE.get(name, ()))
        for name, make in makers.items()
    }


def without_points(make: Make) -> str:
    """What is wrong with a plugin's class that serves no extension point, empty if it serves one."""
    if any(hasattr(make, method) for method in _METHODS.values()):
        return ""
    known = {method.replace("_", ""): method for method in _METHODS.values()}
    own = (name.replace("_", "").lower() for name in dir(make) if not name.startswith("_"))
    meant = sorted({known[close] for name in own for close in get_close_matches(name, known, 1, 0.8)})
    told = f"serves no extension point; the methods are {', '.join(_METHODS.values())}"
    return f"{told}; did you mean {' and '.join(meant)}?" if meant else told


def make_profile(
    handle: Handle,
    configuration: ProfileConfiguration,
    makers: Mapping[str, Make],
    others: Handle | None = None,
    additional: Sequence[Plugin] = (),
) -> Profile:
    """The profile of a configuration.

    Plugins that do not come with the scheduler are given the handle `others`, by default the same. `additional` plugins
    stand behind the configured ones at all points they serve, weight 1.

    Raises:
        ValueError: a plugin does not take its args, or calls itself otherwise.
    """
    enabled = []
    for name in configuration.plugins:
        where = f"profile {configuration.scheduler_name}: plugin {name!r}"
        try:
            own = handle if makers[name] is IN_TREE.get(name) else (others or handle).for_others()
            plugin = makers[name](own, configuration.args.get(name))
        except BaseException as raised:
            if not is_raised_by_plugin(raised):
                raise
            raise ValueError(f"{where} can't be made: {type(raised).__name__}: {raised}") from raised
        called = getattr(plugin, "name", None)
        if called != name:
            raise ValueError(f"{where} calls itself {called!r}")
        enabled.append(Enabled(plugin, configuration.weights.get(name, 1)))
    points = {
        point: [name for name in getattr(configuration.points, point) if hasattr(makers[name], method)]
        for point, method in _METHODS.items()
    }
    for plugin in additional:
        enabled.append(Enabled(plugin))
        for point, method in _METHODS.items():
            if hasattr(plugin, method):
                points[point].append(plugin.name)
    return Profile(configuration.scheduler_name, enabled, points, configuration.percentage_of_nodes_to_score)


def default_profile(handle: Handle, additional: Sequence[Plugin] = ()) -> Profile:
    """The profile `default-scheduler`, with `additional` plugins behind its own, weight 1."""
    enabled = [Enabled(IN_TREE[each.name](handle, None), each.weight or 1) for each in default_plugins(FeatureGates())]
    return Profile(DEFAULT_SCHEDULER, [*enabled, *map(Enabled, additional)])


def _imported(name: str, reference: str, find: Callable[[str], ModuleType] = import_module) -> Make:
    module, _, attribute = reference.partition(":")
    if not attribute or not all(part.isidentifier() for part in module.split(".")):
        raise PluginNotFoundError(f"plugin {name}: {reference!r} is no module:Class")
    try:
        found: Make = getattr(find(module), attribute)
    except (ImportError, AttributeError) as missing:
        raise PluginNotFoundError(f"plugin {name}: {reference}: {missing}") from missing
    except BaseException as raised:
        if not is_raised_by_plugin(raised):
            raise
        raise PluginNotFoundError(f"plugin {name}: {reference}: {type(raised).__name__}: {raised}") from raised
    if not callable(found):
        raise PluginNotFoundError(f"plugin {name}: {reference} is no class")
    return found
