"""Which plugins run where: the plugin sets of a profile, expanded for the extension points that each plugin serves.

The order at a point (kube-scheduler's `expandMultiPointPlugins`): plugins named for the point that `multiPoint` has,
too, in the point's order; then the others of `multiPoint`; then the others named for the point.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from .args import NodeResourcesFitArgs, PluginArgs
from .errors import ConfigurationError, ConfigurationProblem
from .features import FeatureGates
from .load import ConfigurationSource
from .types import KubeSchedulerConfiguration, KubeSchedulerProfile, Plugin, Plugins, PluginSet
from .validation_args import validate_args
from .wire import key_of

EXTENSION_POINTS = (
    "pre_filter",
    "filter",
    "post_filter",
    "reserve",
    "pre_score",
    "score",
    "pre_bind",
    "bind",
    "post_bind",
    "permit",
    "pre_enqueue",
    "queue_sort",
)
_KEYS = {each.name: key_of(each) for each in fields(Plugins)}
_MAX_SCORE = 100
_LARGEST_TOTAL = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ExtensionPoints:
    """The names of the plugins at each extension point, in the order of their calls."""

    pre_enqueue: tuple[str, ...] = ()
    queue_sort: tuple[str, ...] = ()
    pre_filter: tuple[str, ...] = ()
    filter: tuple[str, ...] = ()
    post_filter: tuple[str, ...] = ()
    pre_score: tuple[str, ...] = ()
    score: tuple[str, ...] = ()
    reserve: tuple[str, ...] = ()
    permit: tuple[str, ...] = ()
    pre_bind: tuple[str, ...] = ()
    bind: tuple[str, ...] = ()
    post_bind: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every plugin that runs anywhere, once."""
        return tuple(dict.fromkeys(name for each in fields(self) for name in getattr(self, each.name)))


@dataclass(frozen=True, slots=True)
class ProfileConfiguration:
    """What a profile is built from: plugins at their points, weights of those that score, args of each plugin.

    `plugins` are all that are enabled, in the order in which they are to be made. `args` are dataclasses of `args` for
    the default plugins and the document's mapping for others; a plugin without any is not in it.
    """

    scheduler_name: str
    percentage_of_nodes_to_score: int
    plugins: tuple[str, ...]
    points: ExtensionPoints
    weights: Mapping[str, int]
    args: Mapping[str, PluginArgs | Mapping[str, Any]]


def resolve(
    configuration: KubeSchedulerConfiguration,
    serves: Mapping[str, Collection[str]],
    features: FeatureGates,
    source: ConfigurationSource,
) -> tuple[ProfileConfiguration, ...]:
    """The profiles; `serves` has every plugin there is and the extension points (as in `EXTENSION_POINTS`) it serves.

    A plugin that serves none is known and left out.

    Raises:
        ConfigurationError: with what kube-scheduler says when it makes its profiles.
    """
    return tuple(
        _resolve(profile, index, configuration, serves, features, source)
        for index, profile in enumerate(configuration.profiles)
    )


def _resolve(
    profile: KubeSchedulerProfile,
    index: int,
    configuration: KubeSchedulerConfiguration,
    serves: Mapping[str, Collection[str]],
    features: FeatureGates,
    source: ConfigurationSource,
) -> ProfileConfiguration:
    name = profile.scheduler_name or ""
    before = f"initializing profiles: creating profile for scheduler name {name}: "
    needed = _needed(profile.plugins)
    args = {config.name: config.args for config in profile.plugin_config if config.args is not None}
    fit = args.get("NodeResourcesFit")
    errors = validate_args(fit, "", features) if isinstance(fit, NodeResourcesFitArgs) else []
    if errors and "NodeResourcesFit" in needed:
        raise _refused_fit(profile, index, before, errors, source)
    try:
        own = {point: _own(point, profile.plugins, serves) for point in EXTENSION_POINTS}
        points = {point: tuple(_expand(point, names, profile.plugins, serves)) for point, names in own.items()}
        _check_points(points, name)
        weights = _weights(profile.plugins, serves)
    except _Refused as refused:
        path = f"profiles[{index}].plugins" + (f".{refused.path}" if refused.path else "")
        place = source.document.at(path) if source.document else None
        line, column = (place.line, place.column) if place else (0, 0)
        problem = ConfigurationProblem(str(refused), path, line, column, refused.remedy)
        raise ConfigurationError(before + str(refused), [problem], source.file) from None
    percentage = profile.percentage_of_nodes_to_score
    return ProfileConfiguration(
        scheduler_name=name,
        percentage_of_nodes_to_score=(configuration.percentage_of_nodes_to_score if percentage is None else percentage),
        plugins=tuple(each for each in needed if serves[each]),
        points=ExtensionPoints(**points),
        weights=weights,
        args={name: each for name, each in args.items() if name in needed},
    )


class _Refused(Exception):
    def __init__(self, message: str, path: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.remedy = remedy


def _refused_fit(
    profile: KubeSchedulerProfile, index: int, before: str, errors: list[Any], source: ConfigurationSource
) -> ConfigurationError:
    place = next(number for number, each in enumerate(profile.plugin_config) if each.name == "NodeResourcesFit")
    path = f"profiles[{index}].pluginConfig[{place}].args"
    refused = source.refuse(errors, f'{before}initializing plugin "NodeResourcesFit": ')
    located = [source.problem(replace(each, path=f"{path}.{each.path}")) for each in errors]
    return ConfigurationError(refused.message, located, source.file)


def _needed(plugins: Plugins) -> tuple[str, ...]:
    sets = [plugins.multi_point, *(getattr(plugins, point) for point in EXTENSION_POINTS)]
    return tuple(dict.fromkeys(plugin.name for each in sets for plugin in each.enabled))


def _own(point: str, plugins: Plugins, serves: Mapping[str, Collection[str]]) -> list[str]:
    key = _KEYS[point]
    names: list[str] = []
    for index, plugin in enumerate(getattr(plugins, point).enabled):
        path = f"{key}.enabled[{index}]"
        _check_exists(plugin, point, path, serves)
        if point not in serves[plugin.name]:
            raise _Refused(f'plugin "{plugin.name}" does not extend {_kind(point)} plugin', path)
        if plugin.name in names:
            raise _Refused(f'plugin "{plugin.name}" already registered as "{_kind(point)}"', path)
        names.append(plugin.name)
    return names


def _expand(point: str, own: list[str], plugins: Plugins, serves: Mapping[str, Collection[str]]) -> Iterator[str]:
    sets: PluginSet = getattr(plugins, point)
    disabled = {each.name for each in sets.disabled}
    if "*" in disabled:
        yield from own
        return
    everywhere: list[str] = []
    again = set()
    for plugin in plugins.multi_point.enabled:
        _check_exists(plugin, point, "multiPoint", serves)
        if point not in serves[plugin.name] or plugin.name in disabled:
            continue
        if plugin.name in own:
            again.add(plugin.name)
            continue
        if plugin.name in everywhere:
            raise _Refused(f'plugin "{plugin.name}" already registered as "{_kind(point)}"', "multiPoint")
        everywhere.append(plugin.name)
    yield from (name for name in own if name in again)
    yield from everywhere
    yield from (name for name in own if name not in again)


def _kind(point: str) -> str:
    return _KEYS[point][0].upper() + _KEYS[point][1:] + "Plugin"


def _check_exists(plugin: Plugin, point: str, path: str, serves: Mapping[str, Collection[str]]) -> None:
    if plugin.name in serves:
        return
    remedy = (
        f"install a package with the entry point podtrail_scheduler.plugins, or --plugin {plugin.name}=MODULE:CLASS"
    )
    raise _Refused(f'{_kind(point)} "{plugin.name}" does not exist', path, remedy)


def _check_points(points: Mapping[str, tuple[str, ...]], name: str) -> None:
    if (sorters := len(points["queue_sort"])) != 1:
        message = f'only one queue sort plugin required for profile with scheduler name "{name}", but got {sorters}'
        raise _Refused(message)
    if not points["bind"]:
        raise _Refused(f'at least one bind plugin is needed for profile with scheduler name "{name}"')


def _weights(plugins: Plugins, serves: Mapping[str, Collection[str]]) -> dict[str, int]:
    weights: dict[str, int] = {}
    for plugin in (*plugins.score.enabled, *plugins.multi_point.enabled):
        if "score" in serves[plugin.name] and plugin.name not in weights:
            weights[plugin.name] = plugin.weight or 1
            if sum(weights.values()) * _MAX_SCORE > _LARGEST_TOTAL:
                raise _Refused("score plugins: total score of Score plugins could overflow")
    return weights
