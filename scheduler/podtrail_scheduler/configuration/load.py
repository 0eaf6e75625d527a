"""Reads a KubeSchedulerConfiguration as kube-scheduler does: strict decoding, defaults, then validation."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .args import ARGS, NodeResourcesFitArgs, PluginArgs
from .claimed_context import claimed_context
from .decoding import ConfigurationDecoder
from .defaults import complete, complete_args, default_args
from .document import Located, parse
from .errors import ConfigurationError, ConfigurationProblem, RefusedField, aggregate
from .features import SCHEDULER_TRACING, FeatureGates
from .types import API_VERSION, KIND, KubeSchedulerConfiguration, PluginConfig
from .validation import validate

_SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
_GROUP = API_VERSION.partition("/")[0]
_LARGEST = 4 << 20
"""Bytes of a configuration; a ConfigMap holds 1 MiB."""
_NO_MAPPING = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct "
    '{{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }}'
)

_NO_TEXT = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{} of type string"
)


@dataclass(frozen=True, slots=True)
class ConfigurationSource:
    """Where a configuration was written, to say where what is wrong with it stands."""

    file: str = ""
    document: Located | None = None
    context: Mapping[str, str] = field(default_factory=dict)
    """The trace context of who wrote it, if they say so (`claimed_context`)."""

    def problem(self, error: RefusedField) -> ConfigurationProblem:
        """The error at the place of its path, or of the innermost part of it that was written."""
        if self.document is None:
            return ConfigurationProblem(str(error), error.path)
        place = self.document.at(error.path)
        return ConfigurationProblem(str(error), error.path, place.line, place.column)

    def refuse(self, errors: Sequence[RefusedField], before: str = "") -> ConfigurationError:
        """The error to raise for these; `before` stands before what kube-scheduler would say."""
        return ConfigurationError(before + aggregate(errors), [self.problem(each) for each in errors], self.file)


def load(path: str, features: FeatureGates) -> tuple[KubeSchedulerConfiguration, ConfigurationSource]:
    """The decoded and completed configuration of a file, not yet validated (see `check`).

    Raises:
        ConfigurationError: the file can't be read or decoded.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueError(f"larger than {_LARGEST >> 20} MiB")
        text = content.decode("utf-8").replace("\r\n", "\n")
    except (OSError, ValueError) as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
        message = f"open {path}: {reason}"
        raise ConfigurationError(message, [ConfigurationProblem(message)], path) from error
    return read(text, path, features)


def read(text: str, file: str, features: FeatureGates) -> tuple[KubeSchedulerConfiguration, ConfigurationSource]:
    """The decoded and completed configuration of a document, not yet validated.

    Raises:
        ConfigurationError: a field is unknown, repeated or of the wrong type.
    """
    document, repeated = parse(text, file)
    _check_kind(document, text, file)
    decoder = ConfigurationDecoder(file)
    given = decoder.decode(KubeSchedulerConfiguration, document)
    strict = [(each.message, each) for each in decoder.unknown]
    if repeated:
        lines = [f"line {each.line}: key {json.dumps(each.key)} already set in map" for each in repeated]
        together = "\n  ".join(["yaml: unmarshal errors:", *lines])
        problems = [
            ConfigurationProblem(f"key {json.dumps(each.key)} already set in map", "", each.line, each.column)
            for each in repeated
        ]
        strict = [(together, problems[0]), *(("", each) for each in problems[1:]), *strict]
    profiles = []
    for index, profile in enumerate(given.profiles):
        configs = []
        for number, config in enumerate(profile.plugin_config):
            path = f"profiles[{index}].pluginConfig[{number}]"
            args, unknown = _args(config, document.at(path), path, file, features)
            configs.append(replace(config, args=args))
            strict += unknown
        profiles.append(replace(profile, plugin_config=tuple(configs)))
    if strict:
        message = "strict decoding error: " + ", ".join(text for text, _ in strict if text)
        raise ConfigurationError(message, [problem for _, problem in strict], file)
    return complete(replace(given, profiles=tuple(profiles)), features), ConfigurationSource(
        file, document, claimed_context(text)
    )


def check(configuration: KubeSchedulerConfiguration, features: FeatureGates, source: ConfigurationSource) -> list[str]:
    """Validates a configuration; returns warnings.

    Raises:
        ConfigurationError: with all that is wrong.
    """
    if errors := validate(configuration, features):
        raise source.refuse(errors)
    if configuration.tracing is not None and not features.enabled(SCHEDULER_TRACING):
        return [f"tracing is configured but has no effect: the feature gate {SCHEDULER_TRACING} is disabled"]
    return []


def default_configuration(features: FeatureGates) -> KubeSchedulerConfiguration:
    """The configuration without any file."""
    return complete(KubeSchedulerConfiguration(), features)


def _args(
    config: PluginConfig, entry: Located, path: str, file: str, features: FeatureGates
) -> tuple[PluginArgs | dict[str, object] | None, list[tuple[str, ConfigurationProblem]]]:
    given = entry.value.get("args") if isinstance(entry.value, dict) else None
    if config.name not in ARGS or given is None or given.value is None:
        default = default_args(config.name, features)
        return (default, []) if default is not None else (given.plain if given else None, [])
    before = f"decoding .{path}: "
    inside = f"decoding args for plugin {config.name}: "
    if message := _wrong_kind(config.name, given, inside):
        problem = ConfigurationProblem(before + message, f"{path}.args", given.line, given.column)
        raise ConfigurationError(before + message, [problem], file)
    decoder = ConfigurationDecoder(file, f"{path}.args")
    try:
        args = decoder.decode(ARGS[config.name], given)
    except ConfigurationError as error:
        raise ConfigurationError(before + inside + error.message, error.problems, file) from error
    shaped = isinstance(given.value, dict) and bool((shape := given.value.get("shape")) and shape.value)
    default = default_args(config.name, features)
    assert default is not None
    args = complete_args(_as_given(args, default, given), features, shaped=shaped)
    strict = [(each.message, each) for each in decoder.unknown]
    if strict:
        unknown = ", ".join(text for text, _ in strict)
        message = f"{before}strict decoding error: {inside}strict decoding error: {unknown}"
        strict = [(message, strict[0][1]), *(("", each) for _, each in strict[1:])]
    return args, strict


def _as_given(args: PluginArgs, default: PluginArgs, given: Located) -> PluginArgs:
    """Timeouts that were not given are unset when their gate is off; a strategy without a type has none."""
    names = {"filter_timeout": "filterTimeout", "binding_timeout": "bindingTimeout"}
    unset = {
        name: getattr(default, name)
        for name, key in names.items()
        if hasattr(default, name) and isinstance(given.value, dict) and key not in given.value
    }
    strategy = given.value.get("scoringStrategy") if isinstance(given.value, dict) else None
    if isinstance(args, NodeResourcesFitArgs) and strategy is not None and isinstance(strategy.value, dict):
        kind = strategy.value.get("type")
        if kind is None or kind.value is None:
            return replace(args, scoring_strategy=replace(args.scoring_strategy, type=""))
    return replace(args, **unset) if unset else args


def _wrong_kind(name: str, given: Located, inside: str) -> str:
    """What is wrong with the kind and version of a plugin's args; "" if nothing is."""
    if not isinstance(given.value, dict):
        return inside + _NO_MAPPING.format(given.kind)
    version, kind = (_text_of(given, key) for key in ("apiVersion", "kind"))
    for key, text in (("apiVersion", version), ("kind", kind)):
        if isinstance(text, Located):
            return inside + _NO_TEXT.format(text.kind, key)
    wanted = f"{name}Args"
    kind = kind or wanted
    if isinstance(version, str) and version.count("/") > 1:
        return f"{inside}unexpected GroupVersion string: {version}"
    known = [f"{each}Args" for each in ARGS]
    if version not in ("", f"{_GROUP}/", API_VERSION) or kind not in known:
        version = API_VERSION if version in ("", f"{_GROUP}/") else version
        return f"{inside}no kind {json.dumps(kind)} is registered for version {json.dumps(version)} {_SCHEME}"
    if kind != wanted:
        return f"args for plugin {name} were not of type {wanted}.{_GROUP}, got {kind}.{_GROUP}"
    return ""


def _text_of(given: Located, key: str) -> str | Located:
    """The text of a key, "" if there is none; what it has instead if that is no text."""
    found = given.value.get(key) if isinstance(given.value, dict) else None
    if found is None or found.value is None:
        return ""
    return found.value if isinstance(found.value, str) else found


def _check_kind(document: Located, text: str, file: str) -> None:
    message, remedy = "", f"apiVersion: {API_VERSION} and kind: {KIND} are wanted"
    if document.value is None:
        message = f"Object 'Kind' is missing in '{text}'"
    elif not isinstance(document.value, dict):
        message = _NO_MAPPING.format(document.kind)
    else:
        kind = (document.value.get("kind") or document).plain
        version = (document.value.get("apiVersion") or document).plain
        if not isinstance(kind, str) or not kind:
            message = f"Object 'Kind' is missing in '{text}'"
        elif not isinstance(version, str) or not version:
            message = f"Object 'apiVersion' is missing in '{text}'"
        elif (version, kind) != (API_VERSION, KIND):
            message = f"no kind {json.dumps(kind)} is registered for version {json.dumps(version)} {_SCHEME}"
    if message:
        raise ConfigurationError(
            message, [ConfigurationProblem(message, "", document.line, document.column, remedy)], file
        )
