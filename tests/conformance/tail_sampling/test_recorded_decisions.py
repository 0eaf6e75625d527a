"""The sampler decides as the Collector's did, case by case, also where a checkpoint moves it to another process.

`vectors/` holds the applicable answers, as recorded (README.md there); `inventory.json` names every recorded vector
with what it needs beyond the sampler's means, nothing for those that are here.
"""

import gzip
import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from podtrail.config import ConfigError, Document
from podtrail.config.feature_gates import KNOWN_GATES
from podtrail.otlp import SpanView, resource_attributes, scope_attributes, scope_name, split
from podtrail.otlp.json import read_json_request
from podtrail.pipeline.settings import read_settings
from podtrail.replay.replayer import Replayer, read_config
from podtrail.testing import ExportedSpan, Run, replay
from tests.pipeline import interrupted
from tests.sizes import large

START = 1_800_000_000_000_000_000
MS = 1_000_000
RECORD_POLICY = "processor.tailsamplingprocessor.recordpolicy"
PREFIX = "otelcol_processor_"
OURS_ALONE = {"tail_sampling_sampling_traces_on_memory", "tail_sampling_traces_decided_early"}

VECTORS = sorted((Path(__file__).parent / "vectors").glob("*.json.gz"))

Vector = Mapping[str, Any]


def read_vector(path: Path) -> Vector:
    """Return a recorded vector."""
    vector: Vector = json.loads(gzip.decompress(path.read_bytes()))
    return vector


@pytest.fixture(params=VECTORS, ids=lambda path: path.name.removesuffix(".json.gz"))
def vector(request: pytest.FixtureRequest) -> Vector:
    """Return a recorded vector."""
    return read_vector(request.param)


def run(vector: Vector, settings: object = None, gates: Collection[str] = ()) -> Run:
    """Replay a vector through its configuration, or through other settings for its component."""
    name = name_in(vector)
    processors = {name: settings} if settings is not None else vector["config"]
    recording = [(START + b["at_ms"] * MS, {"resourceSpans": b["resourceSpans"]}) for b in vector["batches"]]
    until = START + vector["shutdown_ms"] * MS
    on = [*gates, *(vector.get("feature_gates") or ())]
    return replay(whole(name, processors), recording, until=until, feature_gates=on)


def name_in(vector: Vector) -> str:
    """Return what a vector's component is called."""
    name = re.match(r"\S+(?=:)", vector["config"])
    assert name is not None
    return name[0]


def whole(name: str, processors: object) -> Any:
    """Put a pipeline around a processor that is given as YAML text or as a mapping."""
    around = {
        "receivers": {"otlp": {"protocols": {"grpc": None}}},
        "exporters": {"debug": None},
        "service": {"pipelines": {"traces": {"receivers": ["otlp"], "processors": [name], "exporters": ["debug"]}}},
    }
    if not isinstance(processors, str):
        return {**around, "processors": processors}
    lines = [f"  {line}" for line in processors.splitlines()]
    service = (
        "receivers: {otlp: {protocols: {grpc: null}}}\nexporters: {debug: null}\n"
        f"service: {{pipelines: {{traces: {{receivers: [otlp], processors: ['{name}'], exporters: [debug]}}}}}}"
    )
    return "\n".join([service, "processors:", *lines])


@pytest.fixture
def expected(vector: Vector, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """Return what the Collector did, with the environment it did it in."""
    for key, value in (vector.get("env") or {}).items():
        monkeypatch.setenv(key, value)
    answer: Mapping[str, Any] = vector["expected"]
    return answer


def test_decides_and_sends_on_as_recorded(vector: Vector, expected: Mapping[str, Any]) -> None:
    if "config_error" in expected:
        with pytest.raises(ConfigError):
            run(vector)
        return
    ran = run(vector)
    assert sorted(ran.kept) == sorted(expected["sampled"])
    for trace, spans in (expected.get("spans") or {}).items():
        assert sorted(ran.kept[trace]) == sorted(spans)
    assert counters(ran) == expected["metrics"]
    left = ran.exported["debug"]
    came = {span["spanId"]: span.get("traceState", "") for span in spans_of(vector)}
    states = {span.span.span_id.hex(): span.span.trace_state for span in left}
    changed = {span: state for span, state in states.items() if state != came[span]}
    assert changed == (expected.get("trace_state") or {})
    for trace, resource_spans in (expected.get("output") or {}).items():
        groups = read_json_request(json.dumps({"resourceSpans": resource_spans}).encode()).groups
        recorded = [content(group.resource, group.scope, raw) for group in groups for raw in split(group.spans)]
        ours = [span for span in left if span.span.trace_id.hex() == trace]
        assert [content(span.resource_header, span.scope_header, span.raw) for span in ours] == recorded
    if expected.get("attributes") is not None:
        assert attributes_added(vector, left) == expected["attributes"]
    for policy, sampled in (expected.get("by_policy") or {}).items():
        (settings,) = Document.from_text(vector["config"]).plain().values()
        settings["policies"] = [one for one in settings["policies"] if one["name"] == policy]
        assert sorted(run(vector, settings).kept) == sorted(sampled), policy


def test_decides_as_recorded_when_interrupted(vector: Vector, expected: Mapping[str, Any]) -> None:
    if "config_error" in expected:
        return
    gates = frozenset(vector.get("feature_gates") or ())
    settings = read_settings(read_config(whole(name_in(vector), vector["config"])), gates)
    requests = [
        (
            START + batch["at_ms"] * MS,
            read_json_request(json.dumps({"resourceSpans": batch["resourceSpans"]}).encode(), zero_ids=True),
        )
        for batch in vector["batches"]
    ]
    until = START + vector["shutdown_ms"] * MS
    uninterrupted = interrupted.Told()
    replayer = Replayer(settings, uninterrupted.take, gates)
    for arrival, intake in requests:
        replayer.add(arrival, intake)
    replayer.finish(until)
    told = interrupted.Told()
    ran = interrupted.Run(settings, told, gates)
    for number, request in enumerate(requests, 1):
        ran.feed([request])
        if number % large(-(-len(requests) // 2), 1) == 0:
            state, now = ran.taken(), ran.replayer.now
            ran = interrupted.Run(settings, told, gates, now=now)
            ran.restore(state)
    ran.replayer.finish(until)
    assert told.out == uninterrupted.out


def attributes_added(vector: Vector, left: Sequence[ExportedSpan]) -> Mapping[str, Mapping[str, Any]]:
    """Return what the gate adds to the scopes of spans that leave without it, by span id."""
    without = {span.span.span_id: span.scope.attributes for span in left}
    added = {}
    for exported in run(vector, gates=[RECORD_POLICY]).exported["debug"]:
        attributes = exported.scope.attributes
        if attributes != without[exported.span.span_id]:
            ours = {key: value for key, value in attributes.items() if key.startswith("tailsampling.")}
            added[exported.span.span_id.hex()] = ours
    return added


def test_the_inventory_tells_what_is_here() -> None:
    inventory = json.loads(Path(__file__).with_name("inventory.json").read_text(encoding="utf-8"))
    here = {path.name.removesuffix(".json.gz") for path in VECTORS}
    assert here == {name for name, missing in inventory.items() if not missing}
    needed = {gate for path in VECTORS for gate in read_vector(path).get("feature_gates") or ()}
    assert needed <= KNOWN_GATES.keys()


def spans_of(vector: Vector) -> Sequence[Mapping[str, Any]]:
    """Return the spans that come in."""
    resources = [resource for batch in vector["batches"] for resource in batch["resourceSpans"]]
    return [span for resource in resources for scope in resource["scopeSpans"] for span in scope["spans"]]


def content(resource: bytes, scope: bytes, raw: bytes) -> tuple[object, ...]:
    """Return what a span says, however it is written. Schema URLs, which the Collector loses, are left out."""
    span = SpanView(raw)
    around = (dict(resource_attributes(resource)), scope_name(scope), dict(scope_attributes(scope)))
    about = (span.span_id, span.parent_span_id, span.name, span.kind, span.start, span.end, span.status)
    return (*around, *about, span.trace_state, span.flags, dict(span.attributes), span.events, span.links)


def counters(ran: Run) -> Mapping[str, Mapping[str, float]]:
    """Return the sampler's counters that are not zero, as they were recorded."""
    found = {name.removeprefix(PREFIX): dict(values) for name, values in ran.metrics.items() if any(values.values())}
    return {
        name: values
        for name, values in found.items()
        if name.startswith("tail_sampling_") and not name.endswith("_sum") and name not in OURS_ALONE
    }
