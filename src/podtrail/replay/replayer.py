"""Replay: a configuration's processors fed from a recording, in virtual time, by the chain that also runs live.

Receivers give way to the recording (every pipeline gets all of it), exporters to sinks. Nothing here reads a clock or
waits, so a week of traces takes as long as its decisions.
"""

import json
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

from podtrail.component import Context, Ledger, Processor
from podtrail.config import Document
from podtrail.otlp import (
    Batch,
    Intake,
    SpanView,
    Value,
    Verdict,
    read_request,
    resource_attributes,
    scope_attributes,
    scope_name,
    split,
)
from podtrail.otlp.decisions import decision_line
from podtrail.otlp.json import read_json_request
from podtrail.pipeline.chain import SLICE_SPANS, ProcessorChain
from podtrail.pipeline.host import Host, make_chain
from podtrail.pipeline.settings import Settings, read_settings
from podtrail.recording import Damage, OtherSignal, Record
from podtrail.recording.merging import merged
from podtrail.replay.flows import Flows
from podtrail.replay.whole import whole

Config = str | Path | Mapping[str, Any]
"""A configuration file's path, YAML text (it has a line break or a colon and space) or a mapping."""

Arrivals = Iterable[tuple[int, bytes | Mapping[str, Any]]]
"""Arrival in Unix nanoseconds with a serialized ExportTraceServiceRequest or an OTLP JSON mapping.

Spans with ids of zeros, which our receivers reject and others let pass, are handed to the processors here.
"""

Recording = str | Path | Sequence[str | Path] | Arrivals


class Scope(NamedTuple):
    """An instrumentation scope."""

    name: str
    attributes: Mapping[str, Value]


@dataclass(frozen=True)
class ExportedSpan:
    """A span as it reached an exporter."""

    raw: bytes
    resource_header: bytes
    scope_header: bytes

    @cached_property
    def span(self) -> SpanView:
        """The span itself."""
        return SpanView(self.raw)

    @property
    def resource(self) -> Mapping[str, Value]:
        """The attributes of its resource."""
        return resource_attributes(self.resource_header)

    @property
    def scope(self) -> Scope:
        """Its instrumentation scope."""
        return Scope(scope_name(self.scope_header), scope_attributes(self.scope_header))


@dataclass(frozen=True)
class Run:
    """What a replay did."""

    decisions: list[dict[str, Any]] = field(default_factory=list)
    """Every verdict in order, in the form of the decisions file."""
    exported: dict[str, list[ExportedSpan]] = field(default_factory=dict)
    """By exporter id, in order."""
    kept: dict[str, list[str]] = field(default_factory=dict)
    """Trace id to span ids, both in hex, in order of emission."""
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """`{name: {"label=value,…" sorted: value}}`."""
    verdicts: list[Verdict] = field(default_factory=list)
    """What `decisions` tells, with the spans that were decided on; `explained()` says why each policy voted so."""


Sink = Callable[[str, Batch], None]
"""Takes what leaves a pipeline: the pipeline's id and the batch."""


def _bare(processor: Processor, _context: Context) -> Processor:
    return processor


class Replayer:
    """Drives all pipelines of a configuration through recorded arrivals."""

    def __init__(
        self,
        settings: Settings,
        sink: Sink,
        gates: Collection[str] = (),
        seed: int = 0,
        around: Callable[[Processor, Context], Processor] = _bare,
    ) -> None:
        """Make the pipelines. `around` returns what takes a processor's place, as `Flows.around` does.

        Raises:
            StartError: a processor can't be made; it names which.
        """
        self.host = Host(gates=frozenset(gates), seed=seed)
        self.ledgers: Mapping[str, Ledger] = {pipeline.id: Ledger() for pipeline in settings.pipelines}
        """By pipeline."""
        self.chains: dict[str, ProcessorChain] = {
            pipeline.id: make_chain(pipeline, settings, self.host, self.ledgers[pipeline.id], around=around)
            for pipeline in settings.pipelines
        }
        self.now = 0
        self._sink = sink

    def add(self, arrival: int, intake: Intake) -> None:
        """Feed one recorded request. An arrival before the last one counts as simultaneous with it."""
        self.now = max(self.now, arrival)
        for pipeline, chain in self.chains.items():
            self._advance(pipeline, chain, self.now)
            while chain.blocked:
                due = chain.deadline()
                assert due is not None, "a processor without room must have a deadline"
                self._pass_deadline(pipeline, chain, due)
        batch = Batch(intake.groups, self.now)
        for pipeline, chain in self.chains.items():
            chain.add(batch, self.now)
            self._carry(pipeline, chain)

    def finish(self, until: int | None = None) -> None:
        """Let time pass to `until`, or until nothing waits any more, and shut the pipelines down there."""
        for pipeline, chain in self.chains.items():
            if until is not None:
                self._advance(pipeline, chain, until)
            while until is None and chain.held() and (due := chain.deadline()) is not None:
                self._pass_deadline(pipeline, chain, due)
            chain.drain(max(self.now, until or 0))
            self._carry(pipeline, chain)

    def _pass_deadline(self, pipeline: str, chain: ProcessorChain, due: int) -> None:
        self._advance(pipeline, chain, due)
        self.now = max(self.now, due)

    def _advance(self, pipeline: str, chain: ProcessorChain, now: int) -> None:
        while chain.advance(now, SLICE_SPANS):
            self._carry(pipeline, chain)
        self._carry(pipeline, chain)

    def _carry(self, pipeline: str, chain: ProcessorChain) -> None:
        while chain.outbox:
            self._sink(pipeline, chain.outbox.popleft())


def read_config(config: Config) -> Document:
    """Return the document of a configuration given as a path, as YAML text or as a mapping."""
    if isinstance(config, Mapping):
        return Document.from_mapping(config)
    return Document.from_text(str(config)) if _is_yaml(config) else Document.load([str(config)])


def _is_yaml(config: str | Path) -> bool:
    return isinstance(config, str) and ("\n" in config or ": " in config)


def replay_beside(folder: Path) -> Callable[..., Run]:
    """Return `replay` that looks for files in a folder first, then in the current one."""

    def there(path: str | Path) -> str | Path:
        return folder / path if (folder / path).exists() else path

    def replay_there(
        config: Config, recording: Recording, until: int | None = None, feature_gates: Collection[str] = ()
    ) -> Run:
        """As `replay`."""
        if not isinstance(config, Mapping) and not _is_yaml(config):
            config = there(config)
        if isinstance(recording, str | Path):
            recording = there(recording)
        else:
            items = [there(item) if isinstance(item, str | Path) else item for item in recording]
            recording = cast("Recording", items)
        return replay(config, recording, until, feature_gates)

    return replay_there


def read_records(paths: Iterable[str | Path], damaged: Callable[[Damage], None]) -> Iterator[Record]:
    """Yield the requests of recordings, merged in order of arrival; tell `damaged` what could not be read.

    Raises:
        OSError: a file can't be opened.
    """
    return merged(paths, damaged)


def _refuse(damage: Damage) -> None:
    if not isinstance(damage, OtherSignal):
        raise ValueError(str(damage))


def _arrivals(recording: Recording) -> Iterator[tuple[int, Intake]]:
    if isinstance(recording, str | Path):
        recording = [recording]
    paths: list[str | Path] = []
    for item in recording:
        if isinstance(item, str | Path):
            paths.append(item)
            continue
        arrival, request = item
        if isinstance(request, Mapping):
            yield arrival, read_json_request(json.dumps(request).encode(), zero_ids=True)
        else:
            yield arrival, read_request(request, zero_ids=True)
    for record in read_records(paths, _refuse):
        yield record.arrival, record.intake


def replay(config: Config, recording: Recording, until: int | None = None, feature_gates: Collection[str] = ()) -> Run:
    """Run a configuration's processors over a recording, in virtual time, and return what they did.

    A processor that loses spans without counting them in its ledger causes a warning (`warnings`).

    Args:
        config: a configuration, or its processors alone: a path, YAML text or a mapping.
        recording: a path, several, or an iterable of `(arrival, request)`.
        until: Unix nanoseconds at which the pipelines shut down; by default when everything is decided.
        feature_gates: ids of the gates that are on.

    Raises:
        podtrail.config.ConfigError: with the text that `podtrail validate` prints.
        podtrail.otlp.MalformedRequest: a request of the recording is none.
        ValueError: a recording is damaged; the text names the place.
    """
    document = read_config(config)
    settings = read_settings(replace(document, root=whole(document.root)), frozenset(feature_gates))
    run = Run(exported={id: [] for pipeline in settings.pipelines for id in pipeline.exporters})
    exporters = {pipeline.id: pipeline.exporters for pipeline in settings.pipelines}
    seen: dict[tuple[str, str], str] = {}

    def sink(pipeline: str, batch: Batch) -> None:
        run.verdicts.extend(batch.verdicts)
        run.decisions.extend(decision_line(verdict) for verdict in batch.verdicts)
        for group in batch.groups:
            trace = group.trace_id.hex()
            for raw in split(group.spans):
                span = ExportedSpan(raw, group.resource, group.scope)
                for exporter in exporters[pipeline]:
                    run.exported[exporter].append(span)
                # A span that leaves several pipelines is one span; one that leaves a pipeline twice is two.
                key = (trace, span.span.span_id.hex())
                if seen.setdefault(key, pipeline) == pipeline:
                    run.kept.setdefault(trace, []).append(key[1])

    flows = Flows("raise")
    replayer = Replayer(settings, sink, feature_gates, around=flows.around)
    for arrival, intake in _arrivals(recording):
        replayer.add(arrival, intake)
    replayer.finish(until)
    for fault in flows.faults():
        warnings.warn(fault, stacklevel=2)
    return Run(run.decisions, run.exported, run.kept, replayer.host.metrics.snapshot(), run.verdicts)
