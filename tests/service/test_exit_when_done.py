"""`podtrail run --exit-when-done`: ends by itself, and what it says, wrote and counted agree."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.service.toolbox import free_port, sampler

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


def config(receiver: str, settings: dict[str, Any], processors: dict[str, Any]) -> dict[str, Any]:
    return {
        "receivers": {receiver: settings},
        "processors": processors,
        "exporters": {"file": {"path": "kept.jsonl", "decisions_path": "decisions.jsonl"}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {
                "traces": {"receivers": [receiver], "processors": list(processors), "exporters": ["file"]},
            },
        },
    }


def workload() -> dict[str, Any]:
    return config(
        "scheduler",
        {"speed": 0, "workload": {"length": "2m", "seed": 7}},
        {"tail_sampling": sampler("100ms", 50), "link_stitching": {}, "batch": {}},
    )


def spans_of_recording() -> int:
    requests = map(json.loads, (RECORDINGS / "apiserver.otlp.jsonl").read_text().splitlines())
    return sum(len(s["spans"]) for r in requests for rs in r["resourceSpans"] for s in rs["scopeSpans"])


def test_a_workload_ends_by_itself_and_is_summed_up_on_stderr(start: Any) -> None:
    process = start(workload(), "--exit-when-done")
    assert process.end() == 0
    assert process.out == ""
    assert "podtrail: done in " in process.log
    assert "kept.jsonl, decisions.jsonl" in process.log
    assert "BALANCE" not in process.log
    assert "Traceback" not in process.log


def test_the_summary_as_json_balances_and_agrees_with_the_files(start: Any, kept: Any, json_lines: Any) -> None:
    process = start(workload(), "--exit-when-done", "--json")
    assert process.end() == 0
    summary = json.loads(process.out)
    (ledger,) = summary["ledgers"]
    assert summary["balanced"]
    assert ledger["difference"] == ledger["inMemory"] == ledger["inQueue"] == 0
    assert ledger["received"] + ledger["created"] == ledger["delivered"] + ledger["sampledOut"]
    assert ledger["delivered"] == sum(map(len, kept().values()))
    decisions = Counter(line["decision"] for line in json_lines("decisions.jsonl"))
    assert decisions.total() == summary["decided"]
    assert decisions["sampled"] == sum(summary["kept"].values())
    assert 0 < decisions["sampled"] < decisions.total()


def test_every_trace_has_one_verdict_and_only_sampled_ones_are_in_the_file(
    start: Any, kept: Any, json_lines: Any
) -> None:
    assert start(workload(), "--exit-when-done").end() == 0
    verdicts = {line["traceId"]: line["decision"] for line in json_lines("decisions.jsonl")}
    assert len(verdicts) == len(json_lines("decisions.jsonl"))
    assert set(kept()) == {trace for trace, decision in verdicts.items() if decision == "sampled"}


@pytest.mark.parametrize("name", ["apiserver.otlp.jsonl", "apiserver.otlp"])
def test_a_recording_is_read_to_its_end(start: Any, kept: Any, name: str) -> None:
    process = start(
        config("otlp_json_file", {"include": [str(RECORDINGS / name)]}, {"tail_sampling": sampler("1h")}),
        "--exit-when-done",
        "--json",
    )
    assert process.end() == 0
    (ledger,) = json.loads(process.out)["ledgers"]
    assert ledger["received"] == ledger["delivered"] == spans_of_recording()
    assert sum(map(len, kept().values())) == spans_of_recording()


def test_what_could_not_be_delivered_is_counted_and_makes_the_run_fail(
    start: Any,
) -> None:
    told = workload()
    told["exporters"] = {
        "otlp_grpc": {
            "endpoint": f"http://127.0.0.1:{free_port()}",
            "retry_on_failure": {"enabled": False},
        }
    }
    told["service"]["pipelines"]["traces"]["exporters"] = ["otlp_grpc"]
    process = start(told, "--exit-when-done", "--json")
    assert process.end() == 1
    (ledger,) = json.loads(process.out)["ledgers"]
    assert ledger["difference"] == 0
    assert ledger["delivered"] == 0
    assert ledger["dropped"].keys() == {"retries_exhausted"}
    assert "Traceback" not in process.log


def test_a_damaged_line_is_named_and_the_rest_is_read(start: Any, tmp_path: Path, kept: Any) -> None:
    lines = (RECORDINGS / "apiserver.otlp.jsonl").read_text().splitlines()
    (tmp_path / "damaged.jsonl").write_text("\n".join([lines[0], lines[1][:500], *lines[2:]]) + "\n")
    told = config("otlp_json_file", {"include": ["damaged.jsonl"]}, {"tail_sampling": sampler("1h")})
    process = start(told, "--exit-when-done", "--json")
    assert process.end() == 0
    assert process.line("damaged, read on behind it: .*damaged.jsonl.*2")
    assert json.loads(process.out)["balanced"]
    assert 0 < sum(map(len, kept().values())) < spans_of_recording()
