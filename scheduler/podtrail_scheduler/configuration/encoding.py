"""A configuration as a document, with the fields that kube-scheduler writes (`--write-config-to`)."""

import base64
import dataclasses
from collections.abc import Mapping
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import yaml
from podtrail_instrumentation.steps import go_duration

from . import affinity, args, types
from .document import is_plain_text
from .wire import key_of

_EVERY = frozenset({"*"})
_ALWAYS: Mapping[type, frozenset[str]] = {
    types.KubeSchedulerConfiguration: frozenset(
        {"parallelism", "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds"}
        | {"enableProfiling", "enableContentionProfiling"}
    ),
    types.LeaderElectionConfiguration: _EVERY,
    types.ClientConnectionConfiguration: _EVERY,
    types.Plugin: _EVERY,
    types.Plugins: _EVERY,
    types.Extender: frozenset({"urlPrefix", "httpTimeout"}),
    types.ExtenderManagedResource: frozenset({"name"}),
    args.DefaultPreemptionArgs: _EVERY,
    args.InterPodAffinityArgs: _EVERY,
    args.ResourceSpec: frozenset({"name"}),
    args.UtilizationShapePoint: _EVERY,
    args.VolumeBindingArgs: frozenset({"bindTimeoutSeconds"}),
    args.DefaultConstraint: frozenset({"maxSkew", "topologyKey", "whenUnsatisfiable"}),
    args.DynamicResourcesArgs: _EVERY,
    affinity.NodeSelector: _EVERY,
}


class _GoDumper(yaml.SafeDumper):
    """Quotes what Go's YAML would not take for a text."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, None if is_plain_text(text) else '"')


_GoDumper.add_representer(str, _represent_text)


def encode(configuration: types.KubeSchedulerConfiguration) -> str:
    """The YAML that kube-scheduler writes: every default, args of enabled plugins by name."""
    document = {"apiVersion": types.API_VERSION, "kind": types.KIND, **_fields(configuration)}
    document["profiles"] = [_profile(profile) for profile in configuration.profiles]
    return yaml.dump(document, Dumper=_GoDumper, sort_keys=True, width=2**31)


def _profile(profile: types.KubeSchedulerProfile) -> dict[str, Any]:
    enabled = {
        plugin.name
        for each in dataclasses.fields(types.Plugins)
        for plugin in getattr(profile.plugins, each.name).enabled
    }
    configs = sorted((each for each in profile.plugin_config if each.name in enabled), key=lambda each: each.name)
    return {**_fields(profile), "pluginConfig": [{"name": each.name, "args": _args(each)} for each in configs]}


def _args(config: types.PluginConfig) -> Any:
    if not dataclasses.is_dataclass(config.args):
        return config.args
    return {"apiVersion": types.API_VERSION, "kind": f"{config.name}Args", **_fields(config.args)}


def _fields(given: Any) -> dict[str, Any]:
    always = _ALWAYS.get(type(given), frozenset())
    hints = get_type_hints(type(given), include_extras=True)
    written = {}
    for each in dataclasses.fields(given):
        key, value = key_of(each), getattr(given, each.name)
        hint = hints[each.name]
        pointer = NoneType in get_args(hint)
        if value or (value is not None and (pointer or always is _EVERY or key in always)):
            written[key] = _value(value, hint)
        elif always is _EVERY and value is None:
            written[key] = None
    return written


def _value(value: Any, hint: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return _fields(value)
    if isinstance(value, tuple):
        return [_value(each, None) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if _is_duration(hint):
        return go_duration(value)
    return value


def _is_duration(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return bool(get_args(hint)[1] == "duration")
    return any(_is_duration(each) for each in get_args(hint))
