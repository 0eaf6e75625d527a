"""A checked configuration with the plugins that its profiles run: what a scheduler is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from podtrail_scheduler.configuration.defaults import default_plugins
from podtrail_scheduler.configuration.expansion import ProfileConfiguration, resolve
from podtrail_scheduler.configuration.features import FeatureGates
from podtrail_scheduler.configuration.load import ConfigurationSource, check
from podtrail_scheduler.configuration.types import KubeSchedulerConfiguration

from .registry import Make, extension_points


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything that is decided before anything runs."""

    configuration: KubeSchedulerConfiguration
    profiles: tuple[ProfileConfiguration, ...]
    makers: Mapping[str, Make]
    """The plugins' classes, by name."""
    features: FeatureGates
    context: Mapping[str, str] = field(default_factory=dict)
    """The trace context of who wrote the configuration."""


def select(
    configuration: KubeSchedulerConfiguration,
    source: ConfigurationSource,
    features: FeatureGates,
    find: Callable[[], Mapping[str, Make]],
    warn: Callable[[str], None],
) -> Selection:
    """Check a configuration and resolve its profiles.

    Args:
        configuration: As `configuration.load` read and completed it.
        source: Where it was written.
        features: The feature gates.
        find: Gives the plugins there are (`registry.available`); asked once the configuration is known to be right.
        warn: Told of what is legal but hardly meant.

    Raises:
        ConfigurationError: With everything that is wrong.
    """
    for warning in check(configuration, features, source):
        warn(warning)
    makers = find()
    serves = dict(extension_points(makers))
    for plugin in default_plugins(features):
        if plugin.name not in serves:
            warn(f'default plugin "{plugin.name}" does not exist here and is left out')
            serves[plugin.name] = frozenset()
    return Selection(configuration, resolve(configuration, serves, features, source), makers, features, source.context)
