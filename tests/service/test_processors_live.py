"""The plain processors and a policy in Python in a running `podtrail`, with the SDK as the client."""

import signal
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace.export import SpanExportResult

from tests.service.toolbox import free_port, metrics, send

SLOW = """
import time

def slow(trace):
    end = time.perf_counter() + 0.003
    while time.perf_counter() < end:
        pass
    return trace.root.name
"""


def test_attempts_are_counted_spans_filtered_attributes_set_and_what_is_left_is_kept(
    start: Any, otlp_to_file: dict[str, Any], kept: Any, tmp_path: Path
) -> None:
    page = free_port()
    otlp_to_file["processors"] |= {
        "scheduling_metrics": {},
        "filter": {"traces": {"span": ['name == "Filter"']}},
        "attributes": {"actions": [{"key": "cluster", "value": "test", "action": "insert"}]},
    }
    pipeline = otlp_to_file["service"]["pipelines"]["traces"]
    pipeline["processors"] = ["scheduling_metrics", "filter", "attributes", "tail_sampling"]
    otlp_to_file["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{page}"}}
    process = start(otlp_to_file)
    assert send(process.port(), traces=4, spans=3) is SpanExportResult.SUCCESS
    told = metrics(page)
    assert told['podtrail_scheduling_attempts_total{profile="",result=""}'] == 4
    assert told['podtrail_scheduling_attempt_duration_seconds_count{profile="",result=""}'] == 4
    assert told['otelcol_processor_filter_spans_filtered{filter="filter"}'] == 8
    assert told['podtrail_ledger_spans{exporter="file",term="missing"}'] == 0
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert [len(spans) for spans in kept().values()] == [1] * 4
    assert '"cluster"' in (tmp_path / "kept.jsonl").read_text(encoding="utf-8")


def test_a_python_policy_that_is_too_slow_is_switched_off_and_the_others_go_on(
    start: Any, otlp_to_file: dict[str, Any], json_lines: Any, tmp_path: Path
) -> None:
    (tmp_path / "theirs.py").write_text(SLOW, encoding="utf-8")
    slow = {"policy": "theirs:slow", "budget": "1ms", "overdraft": "10ms"}
    otlp_to_file["processors"]["tail_sampling"] = {
        "decision_wait": "1h",
        "policies": [
            {"name": "slow", "type": "python", "python": slow},
            {"name": "all", "type": "always_sample"},
        ],
    }
    process = start(otlp_to_file, PYTHONPATH=str(tmp_path))
    assert send(process.port(), traces=20, spans=1) is SpanExportResult.SUCCESS
    process.tell(signal.SIGTERM)
    process.line("policy slow is SWITCHED OFF until the configuration is loaded anew: theirs:slow")
    assert process.end() == 0
    policies = [decision["policy"] for decision in json_lines("decisions.jsonl")]
    assert len(policies) == 20
    assert policies == sorted(policies, reverse=True)
    assert set(policies) == {"slow", "all"}
