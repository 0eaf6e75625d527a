"""The probabilistic sampler decides as the Collector's did, span by span."""

import gzip
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from podtrail.config import ConfigError
from podtrail.testing import Run, replay

START = 1_800_000_000_000_000_000
COUNTED = "otelcol_processor_probabilistic_sampler_count_traces_sampled"
VECTORS = sorted((Path(__file__).parent / "vectors").glob("*.json.gz"))

Vector = Mapping[str, Any]


@pytest.fixture(name="vector", params=VECTORS, ids=[path.name.removesuffix(".json.gz") for path in VECTORS])
def _vector(request: pytest.FixtureRequest) -> Vector:
    """Return a recorded vector."""
    vector: Vector = json.loads(gzip.decompress(request.param.read_bytes()))
    return vector


def run(vector: Vector) -> Run:
    """Replay a vector through its configuration."""
    lines = [f"  {line}" for line in vector["config"].splitlines()]
    around = [
        "receivers: {otlp: {protocols: {grpc: null}}}",
        "exporters: {debug: null}",
        "service: {pipelines: {traces: {receivers: [otlp], processors: [probabilistic_sampler], exporters: [debug]}}}",
        "processors:",
    ]
    recording = [(START, {"resourceSpans": batch["resourceSpans"]}) for batch in vector["batches"]]
    return replay("\n".join([*around, *lines]), recording)


def spans_of(vector: Vector) -> Sequence[Mapping[str, Any]]:
    """Return the spans that come in."""
    resources = [resource for batch in vector["batches"] for resource in batch["resourceSpans"]]
    return [span for resource in resources for scope in resource["scopeSpans"] for span in scope["spans"]]


def test_decides_as_recorded(vector: Vector) -> None:
    expected = vector["expected"]
    if "config_error" in expected:
        with pytest.raises(ConfigError):
            run(vector)
        return
    ran = run(vector)
    assert sorted(ran.kept) == sorted(expected["sampled"])
    for trace, spans in (expected.get("spans") or {}).items():
        assert sorted(ran.kept[trace]) == sorted(spans)


def test_trace_states_leave_as_recorded(vector: Vector) -> None:
    expected = vector["expected"]
    if "config_error" in expected:
        return
    came = {span["spanId"]: span.get("traceState", "") for span in spans_of(vector)}
    left = {span.span.span_id.hex(): span.span.trace_state for span in run(vector).exported["debug"]}
    changed = {span: state for span, state in left.items() if state != came[span]}
    assert changed == {span: state for span, state in expected.get("trace_state", {}).items() if span in came}


def test_counts_as_recorded(vector: Vector) -> None:
    expected = vector["expected"]
    if "config_error" in expected:
        return
    recorded = Counter(expected["metrics"]["probabilistic_sampler_count_traces_sampled"])
    assert Counter(run(vector).metrics[COUNTED]) == recorded
