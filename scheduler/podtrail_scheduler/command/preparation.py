"""From flags to what runs: the configuration read, completed and checked, plugins found, profiles resolved."""

import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from podtrail_scheduler.configuration.defaults import default_plugins
from podtrail_scheduler.configuration.errors import ConfigurationError, ConfigurationProblem
from podtrail_scheduler.configuration.expansion import ProfileConfiguration, resolve
from podtrail_scheduler.configuration.features import FeatureGates, parse_feature_gates
from podtrail_scheduler.configuration.load import ConfigurationSource, check, default_configuration, load
from podtrail_scheduler.configuration.types import KubeSchedulerConfiguration
from podtrail_scheduler.plugins.registry import Make, PluginNotFoundError, available, extension_points

from .options import Flags

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Preparation:
    """Everything that is decided before anything runs."""

    configuration: KubeSchedulerConfiguration
    profiles: tuple[ProfileConfiguration, ...]
    makers: Mapping[str, Make]
    features: FeatureGates


def prepare(flags: Flags) -> Preparation:
    """Raises ConfigurationError with everything that is wrong. Warnings are logged."""
    features = parse_feature_gates(flags.feature_gates)
    if flags.config is not None:
        configuration, source = load(flags.config, features)
    else:
        configuration, source = _from_flags(flags, features), ConfigurationSource()
    configuration = _elected(configuration, flags)
    for warning in check(configuration, features, source):
        _log.warning("%s", warning)
    makers = _makers(flags)
    serves = dict(extension_points(makers))
    for plugin in default_plugins(features):
        if plugin.name not in serves:
            _log.warning('default plugin "%s" does not exist here and is left out', plugin.name)
            serves[plugin.name] = frozenset()
    return Preparation(configuration, resolve(configuration, serves, features, source), makers, features)


def _from_flags(flags: Flags, features: FeatureGates) -> KubeSchedulerConfiguration:
    """Without a file: the defaults, and what flags say of the connection."""
    given = default_configuration(features)
    client = given.client_connection
    return replace(
        given,
        client_connection=replace(
            client,
            kubeconfig=flags.kubeconfig or "",
            qps=client.qps if flags.kube_api_qps is None else flags.kube_api_qps,
            burst=client.burst if flags.kube_api_burst is None else flags.kube_api_burst,
        ),
    )


def _elected(configuration: KubeSchedulerConfiguration, flags: Flags) -> KubeSchedulerConfiguration:
    """The flags of leader election go before the file."""
    given = {
        "leader_elect": flags.leader_elect,
        "lease_duration": flags.leader_elect_lease_duration,
        "renew_deadline": flags.leader_elect_renew_deadline,
        "retry_period": flags.leader_elect_retry_period,
        "resource_lock": flags.leader_elect_resource_lock,
        "resource_name": flags.leader_elect_resource_name,
        "resource_namespace": flags.leader_elect_resource_namespace,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    return replace(configuration, leader_election=replace(configuration.leader_election, **changes))  # type: ignore[arg-type]


def _makers(flags: Flags) -> dict[str, Make]:
    named = {}
    for text in flags.plugin:
        name, equals, reference = text.partition("=")
        if not equals or not name or ":" not in reference:
            message = f"--plugin {text}: NAME=MODULE:CLASS is wanted"
            raise ConfigurationError(message, [ConfigurationProblem(message)], "--plugin")
        named[name] = reference
    here = str(Path.cwd())
    if named and here not in sys.path:
        sys.path.append(here)  # last: a file here takes no installed module's place
    try:
        return available(named)
    except PluginNotFoundError as error:
        raise ConfigurationError(str(error), [ConfigurationProblem(str(error))], "--plugin") from error
