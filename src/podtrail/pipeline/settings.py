"""From a configuration document to settings: which components, which pipelines, everything checked together."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from podtrail.component import Factory, registry
from podtrail.config import ConfigError, Document, Problem
from podtrail.config.config_folder import configured_in
from podtrail.config.ids import parse_id
from podtrail.config.nodes import MapNode, ScalarNode, child, descend, place_of, plain
from podtrail.config.problem import Path, did_you_mean, in_order
from podtrail.config.redaction import remember
from podtrail.config.telemetry import TelemetryConfig
from podtrail.config.validation import Validator
from podtrail.pipeline.authenticator_references import check_authenticators
from podtrail.pipeline.begun_anew import HINT, LastingPipeline, begun_anew
from podtrail.pipeline.component_lists import ComponentLists
from podtrail.pipeline.component_types import SECTIONS, find_type, left_out
from podtrail.pipeline.exactly_once import ExactlyOnceReferences, WiredPipeline
from podtrail.pipeline.loops import loops, overwritten
from podtrail.pipeline.partitioned_sources import PartitionedSources
from podtrail.pipeline.storage_references import StorageReferences
from podtrail.pipeline.telemetry_settings import TelemetrySettings, telemetry_settings

_TOP: Final = (*SECTIONS, "service")
_SERVICE: Final = ("extensions", "pipelines", "telemetry")
_LISTS: Final = ("receivers", "processors", "exporters")
PIPELINE_KEYS: Final[Mapping[str, tuple[str, str]]] = {
    "receivers": ("list of ids", "Who feeds it; a receiver may feed several pipelines."),
    "processors": ("list of ids", "What is done with spans on their way, in this order; each pipeline has its own."),
    "exporters": ("list of ids", "Who gets what leaves it, each of them all of it."),
    "durable": (
        "id",
        "A `file_storage` extension under `service::extensions`: arrivals are on disk before they are acknowledged.",
    ),
}
"""The keys of a pipeline: what stands there, and what it means."""
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
    partitioned: bool = False
    """Whether a partitioned receiver feeds it, where what arrived can be read again until it is decided and delivered.
    """

    @property
    def outlives(self) -> bool:
        """Whether what is in it is not lost with the process."""
        return self.partitioned or self.durable is not None


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
    from_files: frozenset[str] = frozenset()
    """Single values that came from `${file:…}`, which may be secrets."""

    @property
    def sections(self) -> Mapping[str, Mapping[str, ComponentSettings]]:
        """The components by section and id."""
        return {
            "receivers": self.receivers,
            "processors": self.processors,
            "exporters": self.exporters,
            "extensions": self.extensions,
        }


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
        self._from_files = document.from_files
        self._check = Validator(document.root, gates)
        self._lists = ComponentLists(self._check, document.root)
        self._left_out: set[str] = set()
        """Ids of extensions of the Collector's that are accepted and have no use."""

    def settings(self) -> Settings:
        for key in self._root.entries:
            if key == "connectors" and not self._is_empty(key):
                self._check.problem(
                    (key,),
                    "the Collector has connectors, podtrail has none",
                    "remove them and the pipelines that they feed; a Collector can have them: in front of podtrail for "
                    "all spans, behind for those kept",
                )
            elif key not in (*_TOP, "connectors"):
                hint = "it stands under service" if key in _SERVICE else did_you_mean(key, _TOP, "keys here")
                self._check.problem((key,), f"unknown key {key!r}", hint)
        sections = {section: self._components(section) for section in SECTIONS}
        service, pipelines = self._service(sections)
        if not {"receivers", "exporters"} & set(self._idle):
            self._refuse_overwriting(sections, pipelines)
            self._refuse_loops(sections, pipelines)
            lasting = [LastingPipeline(p.id, p.receivers, p.exporters, p.durable) for p in pipelines]
            for path, message in begun_anew(lasting, sections["receivers"], sections["exporters"]):
                self._check.warn(path, message, HINT)
        used = {
            "receivers": {id for pipeline in pipelines for id in pipeline.receivers},
            "exporters": {id for pipeline in pipelines for id in pipeline.exporters},
            "extensions": set(service.extensions),
        }
        check_authenticators(self._check, sections, used, service.extensions)
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
            from_files=self._from_files,
        )

    def _is_empty(self, key: str) -> bool:
        node = child(self._root, key)
        return isinstance(node, ScalarNode | MapNode) and not (
            node.entries if isinstance(node, MapNode) else node.value
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
            if left_out(self._check, section, text):
                self._left_out.add(text)
                found[text] = None
            else:
                found[text] = self._component(section, text)
        return found

    def _component(self, section: str, text: str) -> ComponentSettings | None:
        path = (section, text)
        factory = find_type(self._check, section, text)
        if factory is None:
            return None
        before = len(self._check.problems)
        written = descend(self._root, path)
        as_written = None if written is None else plain(written)
        remember(as_written, factory.Config)
        config = self._check.read(factory.Config, path)
        if section in self._idle:
            self._check.warnings += self._check.problems[before:]
            del self._check.problems[before:]
        if config is None:
            return None
        return ComponentSettings(text, factory, config, as_written)

    def _service(
        self, sections: Mapping[str, Mapping[str, Any]]
    ) -> tuple[ServiceSettings, tuple[PipelineSettings, ...]]:
        if child(self._root, "service") is None:
            self._check.problem(("service",), "is required", "service::pipelines::traces says what runs")
            return ServiceSettings(), ()
        node = self._map(("service",))
        for key in node.entries if node is not None else ():
            if key not in _SERVICE:
                below = key in TelemetryConfig.model_fields
                hint = "it stands under telemetry" if below else did_you_mean(key, _SERVICE, "keys here")
                self._check.problem(("service", key), f"unknown key {key!r}", hint)
        path = ("service", "extensions")
        listed = self._lists.read(path, "extension", path, sections["extensions"])
        extensions = tuple(id for id in listed if id not in self._left_out)
        telemetry = self._check.read(TelemetryConfig, ("service", "telemetry")) or TelemetryConfig()
        return ServiceSettings(extensions, telemetry_settings(telemetry)), self._pipelines(
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
        ExactlyOnceReferences(self._check, self._root, sections).look_at(
            [WiredPipeline(pipeline.id, pipeline.receivers, pipeline.exporters) for pipeline in pipelines]
        )
        storages.refuse_two_logs([(p.id, p.receivers, p.durable) for p in pipelines if p.durable is not None])
        storages.check_queues({id for pipeline in pipelines for id in pipeline.exporters})
        storages.check_receivers({id for pipeline in pipelines for id in pipeline.receivers})
        storages.refuse_shared_folders()
        if not self._check.problems:
            storages.warn_of_unused()
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
        for key in node.entries if node is not None else ():
            if key not in PIPELINE_KEYS:
                hint = did_you_mean(key, tuple(PIPELINE_KEYS), "keys here")
                self._check.problem((*path, key), f"unknown key {key!r}", hint)
        lists = {name: self._lists.read((*path, name), SECTIONS[name], path, sections[name]) for name in _LISTS}
        for name in ("receivers", "exporters"):
            if not lists[name] and not self._lists.given(path, name):
                self._check.problem(path, f"must have at least one {SECTIONS[name]}", f"list its {name}")
        durable = storages.of_pipeline((*path, "durable"), lists["processors"])
        partitioned = PartitionedSources(self._check, self._root, sections).feed(
            path, lists["receivers"], lists["processors"], durable
        )
        return PipelineSettings(text, **lists, durable=durable, partitioned=partitioned)

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
            for unused in components.keys() - used[section] - (self._left_out if section == "extensions" else set()):
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
