"""What kube-scheduler refuses in a completed configuration, with its words, paths and order."""

from collections.abc import Iterator, Sequence
from dataclasses import fields

from podtrail_instrumentation import TracingConfiguration, validate_tracing_configuration
from podtrail_instrumentation.steps import go_duration

from .args import PluginArgs
from .errors import RefusedField, duplicate, invalid, required
from .features import FeatureGates
from .names import is_extended_resource, label_key_errors
from .types import (
    API_VERSION,
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    Plugins,
    Tracing,
)
from .validation_args import validate_args
from .wire import key_of

_REMOVED = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
_NOT_CHECKED = ("multi_point", "placement_generate", "placement_score")
_CHECKED_LATER = "NodeResourcesFit"


def validate(configuration: KubeSchedulerConfiguration, features: FeatureGates) -> list[RefusedField]:
    """All errors, empty when it is good."""
    return list(_errors(configuration, features))


def _errors(configuration: KubeSchedulerConfiguration, features: FeatureGates) -> Iterator[RefusedField]:
    if configuration.client_connection.burst < 0:
        yield invalid("clientConnection.burst", configuration.client_connection.burst, "must be non-negative")
    yield from _leader_election(configuration.leader_election)
    if configuration.parallelism <= 0:
        yield invalid("parallelism", configuration.parallelism, "should be an integer value greater than zero")
    known: dict[str, int] = {}
    for index, profile in enumerate(configuration.profiles):
        yield from _profile(profile, f"profiles[{index}]", features)
        name = profile.scheduler_name or ""
        if name in known:
            yield duplicate(f"profiles[{index}].schedulerName", {})
        known[name] = index
    yield from _queue_sort(configuration.profiles)
    yield from _percentage(configuration.percentage_of_nodes_to_score, "percentageOfNodesToScore")
    initial, longest = configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds
    if initial <= 0:
        yield invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        yield invalid("podMaxBackoffSeconds", longest, "must be greater than or equal to PodInitialBackoffSeconds")
    yield from _extenders(configuration.extenders)
    if configuration.tracing is not None:
        yield from _tracing(configuration.tracing)


def _leader_election(given: LeaderElectionConfiguration) -> Iterator[RefusedField]:
    if not given.leader_elect:
        return
    for each in fields(given)[1:4]:
        value = getattr(given, each.name)
        if value <= 0:
            yield invalid(f"leaderElection.{key_of(each)}", go_duration(value), "must be greater than zero")
    if given.lease_duration <= given.renew_deadline:
        shown = go_duration(given.renew_deadline)
        yield invalid("leaderElection.leaseDuration", shown, "must be greater than `RenewDeadline`")
    if given.resource_lock != "leases":
        yield invalid("leaderElection.resourceLock", given.resource_lock, 'resourceLock value must be "leases"')


def _percentage(value: int | None, path: str) -> Iterator[RefusedField]:
    if value is not None and not 0 <= value <= 100:
        yield invalid(path, value, "not in valid range [0-100]")


def _profile(profile: KubeSchedulerProfile, path: str, features: FeatureGates) -> Iterator[RefusedField]:
    if not profile.scheduler_name:
        yield required(f"{path}.schedulerName")
    yield from _percentage(profile.percentage_of_nodes_to_score, f"{path}.percentageOfNodesToScore")
    for each in fields(Plugins):
        if each.name in _NOT_CHECKED:
            continue
        for index, plugin in enumerate(getattr(profile.plugins, each.name).enabled):
            if plugin.name in _REMOVED:
                yield _removed(f"{path}.plugins.{key_of(each)}.enabled[{index}]", plugin.name)
    seen = set()
    for index, config in enumerate(profile.plugin_config):
        here = f"{path}.pluginConfig[{index}]"
        if config.name in seen:
            yield duplicate(here, config.name)
        seen.add(config.name)
        if config.name in _REMOVED:
            yield _removed(here, config.name)
        elif isinstance(config.args, PluginArgs) and config.name != _CHECKED_LATER:
            yield from validate_args(config.args, f"{here}.args", features)


def _removed(path: str, name: str) -> RefusedField:
    return invalid(path, name, f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")')


def _queue_sort(profiles: Sequence[KubeSchedulerProfile]) -> Iterator[RefusedField]:
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        detail = "only one queue sort plugin can be enabled"
        yield invalid("profiles[0].plugins.queueSort.Enabled", len(first.enabled), detail)
    sorter = first.enabled[0].name if first.enabled else ""
    args = next((each.args for each in profiles[0].plugin_config if sorter and each.name == sorter), None)
    for index, profile in enumerate(profiles[1:], 1):
        if profile.plugins.queue_sort != first:
            shown = _as_go(profile)
            yield invalid(f"profiles[{index}].plugins.queueSort", shown, "must be the same for all profiles")
        for config in profile.plugin_config:
            if config.name == sorter and config.args != args:
                detail = "queueSort must be the same for all profiles"
                yield invalid(f"profiles[{index}].pluginConfig.args", config.args, detail)


def _as_go(profile: KubeSchedulerProfile) -> dict[str, object]:
    sets = profile.plugins.queue_sort
    return {
        "Enabled": [{"Name": each.name, "Weight": each.weight} for each in sets.enabled] or None,
        "Disabled": [{"Name": each.name, "Weight": each.weight} for each in sets.disabled] or None,
    }


def _extenders(extenders: Sequence[Extender]) -> Iterator[RefusedField]:
    managed = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
        for number, resource in enumerate(extender.managed_resources):
            here = f"{path}.managedResources[{number}].name"
            if errors := label_key_errors(resource.name):
                yield from (invalid(here, resource.name, each) for each in errors)
            elif not is_extended_resource(resource.name):
                yield invalid(here, resource.name, "is an invalid extended resource name")
            if resource.name in managed:
                yield invalid(here, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        yield invalid(
            "extenders", f"found {binders} extenders implementing bind", "only one extender can implement bind"
        )


def _tracing(tracing: Tracing) -> Iterator[RefusedField]:
    made = TracingConfiguration(endpoint=tracing.endpoint, sampling_rate_per_million=tracing.sampling_rate_per_million)
    yield from (invalid(each.path, each.value, each.detail) for each in validate_tracing_configuration(made))
