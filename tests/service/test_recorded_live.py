"""A pipeline that records beside one that samples: the replay of the recording decides as the live run did."""

import signal
from pathlib import Path
from typing import Any

from podtrail.recording import Record, read_recording
from podtrail.testing import replay
from tests.service.toolbox import sampler, send, until


def test_the_replay_of_what_a_live_run_recorded_gives_its_decisions(
    start: Any, json_lines: Any, tmp_path: Path
) -> None:
    sampling = {"receivers": ["otlp"], "processors": ["tail_sampling", "link_stitching"], "exporters": ["file"]}
    config: dict[str, Any] = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
        "processors": {"tail_sampling": sampler("50ms", 40), "link_stitching": {}},
        "exporters": {
            "file": {"path": "kept.jsonl", "decisions_path": "decisions.jsonl"},
            "recording": {"path": "came.otlp.zst"},
        },
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {
                "traces": sampling,
                "traces/recording": {"receivers": ["otlp"], "exporters": ["recording"]},
            },
        },
    }
    process = start(config)
    for traces in (1, 7, 2, 30):
        send(process.port(), traces)
    until(lambda: len(json_lines("decisions.jsonl")) == 40)
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    records = [record for record in read_recording(tmp_path / "came.otlp.zst") if isinstance(record, Record)]
    assert [sum(group.span_count for group in record.intake.groups) for record in records] == [3, 21, 6, 90]
    config["service"]["pipelines"] = {"traces": sampling}
    replayed = replay(config, tmp_path / "came.otlp.zst")
    assert replayed.decisions == json_lines("decisions.jsonl")
    assert {"sampled", "not_sampled"} == {decision["decision"] for decision in replayed.decisions}
