"""The sampler decides as the Collector's did, also where a checkpoint moves it to another process on the way."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from podtrail.otlp.json import read_json_request
from podtrail.pipeline.settings import read_settings
from podtrail.replay.replayer import read_config
from tests.conformance.tail_sampling.test_recorded_decisions import MS, START, name_in, whole
from tests.pipeline.interrupted import Run, Told


def test_decides_as_recorded_when_interrupted_after_any_request(
    vector: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "config_error" in vector["expected"]:
        return
    for key, value in (vector.get("env") or {}).items():
        monkeypatch.setenv(key, value)
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
    uninterrupted = Told()
    run = Run(settings, uninterrupted, gates)
    run.feed(requests)
    run.replayer.finish(until)
    told = Told()
    run = Run(settings, told, gates)
    for request in requests:
        run.feed([request])
        state, now = run.taken(), run.replayer.now
        run = Run(settings, told, gates, now=now)
        run.restore(state)
    run.replayer.finish(until)
    assert told.out == uninterrupted.out
