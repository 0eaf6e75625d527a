"""From a configuration document to settings: which components, which pipelines, everything checked together."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from podtrail.component import Factory, Kind, registry
from podtrail.config import ConfigError, Document, Problem
from podtrail.config.collector_components import collector_component
from podtrail.config.config_folder import configured_in
from podtrail.config.ids import parse_id
from podtrail.config.nodes import ListNode, MapNode, ScalarNode, child, descend, place_of, plain
from podtrail.config.problem import Path, did_you_mean, in_order
from podtrail.config.telemetry import TelemetryConfig
from podtrail.config.validation import Validator
from podtrail.pipeline.loops import loops, overwritten
from podtrail.pipeline.storage_references import StorageReferences

_SECTIONS: Final[Mapping[str, Kind]] = {
    "receivers": "receiver",
    "processors": "processor",
    "exporters": "exporter",
    "extensions": "extension",
}
_TOP: Final = (*_SECTIONS, "service")
_LOOP: Final = "send to a backend; is OTEL_EXPORTER_OTLP_ENDPOINT meant for what sends to podtrail?"
_OTHER_SIGNALS: Final = frozenset({"metrics", "logs", "profiles"})


@dataclass(frozen=True, slots=True)
class ComponentSettings:
    """One configured component."""

    id: str
    """`type` or `type/name`, as the user wrote it."""
    factory: Factory
    config: Any
    """An instance of the factory's `Config`."""
    written: Any = field(default=None, compare=False)
    """As the user wrote it, references resolved."""


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """One pipeline: ids of its components, in the order of the configuration."""

    id: str
    receivers: tuple[str, ...]
    processors: tuple[str, ...]
    exporters: tuple[str, ...]
    durable: str | None = None
    """The extension that stores what arrives until it is decided and delivered; None: it is in memory only."""


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """podtrail's own metrics."""

    level: Literal["none", "basic", "normal", "detailed"] = "normal"
    address: tuple[str, int] | None = ("localhost", 8888)
    """Host and port of the metrics page, None when there is none."""


@dataclass(frozen=True, slots=True)
class LogsSettings:
    """podtrail's own log."""

    level: Literal["debug", "info", "warn", "error"] = "info"
    encoding: Literal["console", "json"] | None = None
    """None: console on a terminal, else json."""


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """What podtrail says about itself."""

    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    logs: LogsSettings = field(default_factory=LogsSettings)
    resource: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What runs beside the pipelines."""

    extensions: tuple[str, ...] = ()
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)


@dataclass(frozen=True, slots=True)
class Settings:
    """A configuration that is right as a whole. Components that nothing uses are in the maps but in no pipeline."""

    receivers: Mapping[str, ComponentSettings]
    processors: Mapping[str, ComponentSettings]
    exporters: Mapping[str, ComponentSettings]
    extensions: Mapping[str, ComponentSettings]
    pipelines: tuple[PipelineSettings, ...]
    service: ServiceSettings
    gates: frozenset[str] = frozenset()
    warnings: tuple[Problem, ...] = ()
    """What is legal but hardly meant."""


def read_settings(document: Document, gates: frozenset[str] = frozenset(), idle: Collection[str] = ()) -> Settings:
    """Check a document as a whole; import the modules of the configured components and no others.

    `idle` are sections whose components will not be started: what is wrong with their settings is a warning.

    Raises:
        ConfigError: with every problem of the document.
    """
    with configured_in(document.folders):
        return _Reading(document, gates, idle).settings()


class _Reading:
    """One pass over a document; problems gather in the validator."""

    def __init__(self, document: Document, gates: frozenset[str], idle: Collection[str]) -> None:
        self._gates = gates
        self._idle = idle
        self._root = document.root
        self._unset = document.warnings
        self._check = Validator(document.root, gates)

    def settings(self) -> Settings:
        for key in self._root.entries:
            if key == "connectors":
                self._check.problem(
                    (key,),
                    "the Collector has connectors, podtrail has none",
                    "remove them and the pipelines that they feed; a Collector can have them: in front of podtrail for "
                    "all spans, behind for those kept",
                )
            elif key not in _TOP:
                self._check.problem((key,), f"unknown key {key!r}", did_you_mean(key, _TOP, "keys here"))
        sections = {section: self._components(section) for section in _SECTIONS}
        service, pipelines = self._service(sections)
        if not {"receivers", "exporters"} & set(self._idle):
            self._refuse_overwriting(sections, pipelines)
            self._refuse_loops(sections, pipelines)
        storages = StorageReferences(self._check, self._root, sections, service.extensions)
        storages.check_queues({id for pipeline in pipelines for id in pipeline.exporters})
        storages.check_receivers({id for pipeline in pipelines for id in pipeline.receivers})
        if self._check.problems:
            raise ConfigError(self._check.problems, (*self._unset, *self._check.warnings))
        self._warn_of_unused(sections, service, pipelines)
        ready = {name: {i: c for i, c in section.items() if c is not None} for name, section in sections.items()}
        return Settings(
            receivers=ready["receivers"],
            processors=ready["processors"],
            exporters=ready["exporters"],
            extensions=ready["extensions"],
            pipelines=pipelines,
            service=service,
            gates=self._gates,
            warnings=in_order((*self._unset, *self._check.warnings)),
        )

    def _map(self, path: Path) -> MapNode | None:
        """Return the map at a path; None when there is none, which is a problem unless nothing is there."""
        node = descend(self._root, path)
        if node is None or isinstance(node, MapNode):
            return node
        if not (isinstance(node, ScalarNode) and node.value is None):
            self._check.problem(path, "must be a map", value=True)
        return None

    def _components(self, section: str) -> dict[str, ComponentSettings | None]:
        """Return the components of a section; None stands for one that is wrong, so that references to it are not."""
        found: dict[str, ComponentSettings | None] = {}
        node = self._map((section,))
        for text in node.entries if node is not None else ():
            found[text] = self._component(section, text)
        return found

    def _component(self, section: str, text: str) -> ComponentSettings | None:
        path = (section, text)
        kind = _SECTIONS[section]
        try:
            type_name = parse_id(text).type
        except ValueError as error:
            self._check.problem(path, str(error))
            return None
        factory = registry.find(kind, type_name)
        if factory is None and (known := collector_component(kind, type_name)) is not None:
            self._check.problem(path, known.message, known.hint)
            return None
        if factory is None:
            hint = did_you_mean(type_name, registry.types(kind), f"{section} there are")
            section_of = next((of for of, other in _SECTIONS.items() if type_name in registry.types(other)), None)
            if section_of is not None:
                hint = f"{type_name} belongs under {section_of}"
            elif registry.broken():
                hint += "; those of other distributions can't all be used: podtrail components says why"
            self._check.problem(path, f"unknown {kind} type {type_name!r}", hint)
            return None
        before = len(self._check.problems)
        config = self._check.read(factory.Config, path)
        if section in self._idle:
            self._check.warnings += self._check.problems[before:]
            del self._check.problems[before:]
        if config is None:
            return None
        written = descend(self._root, path)
        return ComponentSettings(text, factory, config, None if written is None else plain(written))

    def _service(
        self, sections: Mapping[str, Mapping[str, Any]]
    ) -> tuple[ServiceSettings, tuple[PipelineSettings, ...]]:
        known = ("extensions", "pipelines", "telemetry")
        if child(self._root, "service") is None:
            self._check.problem(("service",), "is required", "service::pipelines::traces says what runs")
            return ServiceSettings(), ()
        node = self._map(("service",))
        for key in node.entries if node is not None else ():
            if key not in known:
                self._check.problem(("service", key), f"unknown key {key!r}", did_you_mean(key, known, "keys here"))
        path = ("service", "extensions")
        extensions = self._references(path, "extension", path, sections["extensions"])
        telemetry = self._check.read(TelemetryConfig, ("service", "telemetry")) or TelemetryConfig()
        return ServiceSettings(extensions, _telemetry(telemetry)), self._pipelines(
            sections, StorageReferences(self._check, self._root, sections, extensions)
        )

    def _pipelines(
        self, sections: Mapping[str, Mapping[str, Any]], storages: StorageReferences
    ) -> tuple[PipelineSettings, ...]:
        above = ("service", "pipelines")
        node = self._map(above)
        if node is None or not node.entries:
            self._check.problem(above, "must have at least one pipeline", "add service::pipelines::traces")
            return ()
        found = (self._pipeline((*above, text), text, sections, storages) for text in node.entries)
        pipelines = tuple(pipeline for pipeline in found if pipeline is not None)
        storages.refuse_two_logs([(p.id, p.receivers, p.durable) for p in pipelines if p.durable is not None])
        return pipelines

    def _pipeline(
        self, path: Path, text: str, sections: Mapping[str, Mapping[str, Any]], storages: StorageReferences
    ) -> PipelineSettings | None:
        try:
            signal = parse_id(text).type
        except ValueError as error:
            self._check.problem(path, str(error))
            return None
        if signal in _OTHER_SIGNALS:
            self._check.problem(
                path, f"podtrail handles traces only, not {signal}", "remove this pipeline, let a Collector have it"
            )
            return None
        if signal != "traces":
            self._check.problem(path, f"unknown signal {signal!r}", "a pipeline is called traces or traces/name")
            return None
        node = self._map(path)
        known = ("receivers", "processors", "exporters")
        keys = (*known, "durable")
        for key in node.entries if node is not None else ():
            if key not in keys:
                self._check.problem((*path, key), f"unknown key {key!r}", did_you_mean(key, keys, "keys here"))
        lists = {name: self._references((*path, name), _SECTIONS[name], path, sections[name]) for name in known}
        for name in ("receivers", "exporters"):
            if not lists[name] and not self._given(path, name):
                self._check.problem(path, f"must have at least one {_SECTIONS[name]}", f"list its {name}")
        durable = storages.of_pipeline((*path, "durable"), lists["processors"])
        return PipelineSettings(text, **lists, durable=durable)

    def _given(self, path: Path, name: str) -> bool:
        """Tell whether something stands in a list, right or wrong."""
        node = descend(self._root, (*path, name))
        if isinstance(node, ListNode):
            return bool(node.items)
        return not (node is None or (isinstance(node, ScalarNode) and node.value is None))

    def _references(self, path: Path, kind: str, shown: Path, configured: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the ids in a list of references, each checked; reports name `shown`, as the Collector does."""
        node = descend(self._root, path)
        if node is None or (isinstance(node, ScalarNode) and node.value is None):
            return ()
        if not isinstance(node, ListNode):
            self._check.problem(path, "must be a list of ids", "write for example [otlp, batch]", value=True)
            return ()
        found: list[str] = []
        for at, item in enumerate(node.items):
            text = item.value if isinstance(item, ScalarNode) else None
            if not isinstance(text, str):
                self._check.problem((*path, at), "must be an id", "write type or type/name", value=True)
            elif text in found:
                self._check.problem((*path, at), f'references {kind} "{text}" more than once', "keep one", shown=shown)
            else:
                found.append(text)
                if text not in configured and descend(self._root, ("connectors", text)) is None:
                    hint = did_you_mean(text, tuple(configured), f"{kind}s configured")
                    message = f'references {kind} "{text}" which is not configured'
                    self._check.problem((*path, at), message, hint or f"configure it under {kind}s", shown=shown)
        return tuple(found)

    def _refuse_overwriting(
        self, sections: Mapping[str, Mapping[str, Any]], pipelines: tuple[PipelineSettings, ...]
    ) -> None:
        readers = _configs(sections["receivers"], {id for pipeline in pipelines for id in pipeline.receivers})
        writers = _configs(sections["exporters"], {id for pipeline in pipelines for id in pipeline.exporters})
        for path, message in overwritten(readers, writers):
            self._check.problem(path, message, "write to another file", value=True)

    def _refuse_loops(self, sections: Mapping[str, Mapping[str, Any]], pipelines: tuple[PipelineSettings, ...]) -> None:
        for pipeline in pipelines:
            receivers = _configs(sections["receivers"], pipeline.receivers)
            for loop in loops(receivers, _configs(sections["exporters"], pipeline.exporters)):
                place = place_of(self._root, loop.receiver, value=True)
                listener = f"receiver {loop.receiver[1]!r} of its own pipeline listens on {loop.endpoint} ({place})"
                self._check.problem(loop.exporter, f"would send back to podtrail: {listener}", _LOOP, value=True)

    def _warn_of_unused(
        self,
        sections: Mapping[str, Mapping[str, Any]],
        service: ServiceSettings,
        pipelines: tuple[PipelineSettings, ...],
    ) -> None:
        used = {
            "receivers": {i for pipeline in pipelines for i in pipeline.receivers},
            "processors": {i for pipeline in pipelines for i in pipeline.processors},
            "exporters": {i for pipeline in pipelines for i in pipeline.exporters},
            "extensions": set(service.extensions),
        }
        for section, components in sections.items():
            where = "service::extensions" if section == "extensions" else "a pipeline"
            for unused in components.keys() - used[section]:
                self._check.warn((section, unused), "is configured but not used", f"list it in {where}, or remove it")


def written_processor(id: str, written: Any, gates: frozenset[str]) -> ComponentSettings:
    """Return the settings of a processor as they once were written.

    Raises:
        ConfigError: they can't be read (any more).
    """
    document = Document.from_mapping({"processors": {id: written}})
    check = Validator(document.root, gates)
    factory = registry.find("processor", parse_id(id).type)
    if factory is None:
        check.problem(("processors", id), "there is no such processor")
        raise ConfigError(check.problems)
    config = check.read(factory.Config, ("processors", id))
    if config is None:
        raise ConfigError(check.problems)
    return ComponentSettings(id, factory, config, written)


def _configs(section: Mapping[str, ComponentSettings | None], ids: Collection[str]) -> dict[str, Any]:
    """Return the configurations of those of a section's components that are right and among `ids`."""
    return {id: found.config for id, found in section.items() if id in ids and found is not None}


def _telemetry(config: TelemetryConfig) -> TelemetrySettings:
    return TelemetrySettings(
        MetricsSettings(config.metrics.level, config.metrics.endpoint),
        LogsSettings(config.logs.level, config.logs.encoding),
        {key: value for key, value in config.resource.items() if value is not None},
    )
