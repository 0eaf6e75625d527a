"""From flags to what runs: the configuration read, completed and checked, plugins found, profiles resolved."""

import logging
import sys
from dataclasses import replace
from pathlib import Path

from podtrail_scheduler.configuration.errors import ConfigurationError, ConfigurationProblem
from podtrail_scheduler.configuration.features import FeatureGates, parse_feature_gates
from podtrail_scheduler.configuration.load import ConfigurationSource, default_configuration, load
from podtrail_scheduler.configuration.types import KubeSchedulerConfiguration
from podtrail_scheduler.plugins.registry import Make, PluginNotFoundError, available
from podtrail_scheduler.plugins.selection import Selection, select

from .options import Flags

_log = logging.getLogger(__name__)


def prepare(flags: Flags) -> Selection:
    """The configuration of the flags with its plugins; warnings are logged.

    Raises:
        ConfigurationError: with everything that is wrong.
    """
    features = parse_feature_gates(flags.feature_gates)
    if flags.config is not None:
        configuration, source = load(flags.config, features)
    else:
        configuration, source = _from_flags(flags, features), ConfigurationSource()
    configuration = _elected(configuration, flags)
    return select(configuration, source, features, lambda: _makers(flags), _warn)


def _warn(text: str) -> None:
    _log.warning("%s", text)


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
