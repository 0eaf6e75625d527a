"""SIGHUP: a right configuration is swapped in, a wrong one leaves everything as it is, and no span is lost."""

import copy
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult

from tests.service.toolbox import free_port, get, metrics, sampler, send, until


def keeping(config: dict[str, Any], sampler: dict[str, Any]) -> dict[str, Any]:
    changed = copy.deepcopy(config)
    changed["processors"]["tail_sampling"] = sampler
    return changed


def reload(process: Any, says: str) -> None:
    before = len(process.lines)
    process.tell(signal.SIGHUP)
    process.line(says, after=before)


def test_a_wrong_file_is_reported_and_the_old_configuration_runs_on(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], kept: Any
) -> None:
    process = start(otlp_to_file)
    port = process.port()
    send(port, traces=3)
    configure("processors: {tail_sampling: {decision_wait: soon}}\n")
    reload(process, r"SIGHUP: nothing changed.*config.yaml:1:\d+: processors::tail_sampling::decision_wait")
    assert send(port, traces=2) is SpanExportResult.SUCCESS
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert len(kept()) == 5


def test_a_file_that_is_gone_leaves_the_old_configuration_running(
    start: Any, otlp_to_file: dict[str, Any], tmp_path: Path
) -> None:
    process = start(otlp_to_file)
    port = process.port()
    (tmp_path / "config.yaml").unlink()
    reload(process, "SIGHUP: nothing changed.*config.yaml")
    assert send(port) is SpanExportResult.SUCCESS
    process.tell(signal.SIGTERM)
    assert process.end() == 0


def test_held_traces_keep_their_arrival_and_are_judged_by_the_new_policies(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], json_lines: Any, kept: Any
) -> None:
    process = start(otlp_to_file)
    send(process.port(), traces=6, spans=4)
    configure(keeping(otlp_to_file, sampler("1h", 0)))
    reload(process, "SIGHUP: reloaded")
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert [line["decision"] for line in json_lines("decisions.jsonl")] == ["not_sampled"] * 6
    assert kept() == {}
    assert process.line("stopped: file: 24 received = 24 sampled out")


def test_a_shorter_wait_counts_from_the_arrival_before_the_reload(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], json_lines: Any
) -> None:
    process = start(keeping(otlp_to_file, sampler("1s")))
    send(process.port(), traces=2)
    reload(process, "SIGHUP: reloaded")
    until(lambda: len(json_lines("decisions.jsonl")) == 2)
    for line in json_lines("decisions.jsonl"):
        assert int(line["decidedAtUnixNano"]) - int(line["arrivedAtUnixNano"]) == 1_000_000_000
    process.tell(signal.SIGTERM)
    assert process.end() == 0


def test_an_unchanged_receiver_keeps_its_port_and_serves_on(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], kept: Any
) -> None:
    port = free_port()
    otlp_to_file["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"] = f"127.0.0.1:{port}"
    process = start(otlp_to_file).ready()
    for at in range(5):
        assert send(port, traces=2) is SpanExportResult.SUCCESS
        configure(keeping(otlp_to_file, sampler(f"{at + 1}h")))
        reload(process, "SIGHUP: reloaded")
    assert send(port, traces=2) is SpanExportResult.SUCCESS
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert len(kept()) == 12


def test_a_receiver_moves_to_another_port(start: Any, configure: Any, otlp_to_file: dict[str, Any], kept: Any) -> None:
    process = start(otlp_to_file)
    old, new = process.port(), free_port()
    send(old, traces=1)
    moved = copy.deepcopy(otlp_to_file)
    moved["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"] = f"127.0.0.1:{new}"
    configure(moved)
    reload(process, f"listening on 127.0.0.1:{new}")
    assert send(new, traces=1) is SpanExportResult.SUCCESS
    assert send(old, traces=1, timeout=0.5) is SpanExportResult.FAILURE
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert len(kept()) == 2


def test_an_unchanged_exporter_goes_on_with_what_its_queue_holds(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], backend: Any
) -> None:
    otlp_to_file["exporters"] = {"otlp_grpc": {"endpoint": f"http://127.0.0.1:{backend.port}"}}
    otlp_to_file["service"]["pipelines"]["traces"] |= {"processors": [], "exporters": ["otlp_grpc"]}
    otlp_to_file["processors"] = {}
    backend.open.clear()
    process = start(otlp_to_file)
    send(process.port(), traces=5)
    backend.requests.get(timeout=120)
    changed = copy.deepcopy(otlp_to_file)
    changed["processors"] = {"tail_sampling": sampler("1h")}
    changed["service"]["pipelines"]["traces"]["processors"] = ["tail_sampling"]
    configure(changed)
    reload(process, "SIGHUP: reloaded")
    backend.open.set()
    send(process.port(), traces=5)
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert process.line("stopped: otlp_grpc: 30 received = 30 delivered")


def test_the_ledger_balances_when_an_exporter_joins_and_another_leaves(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], kept: Any
) -> None:
    process = start(otlp_to_file)
    send(process.port(), traces=4)
    changed = copy.deepcopy(otlp_to_file)
    changed["processors"] = {}
    changed["exporters"] = {"file/second": {"path": "second.jsonl"}, "debug": {}}
    changed["service"]["pipelines"]["traces"] |= {"processors": [], "exporters": ["file/second", "debug"]}
    configure(changed)
    reload(process, "SIGHUP: reloaded")
    before = len(process.lines)
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert "missing" not in "\n".join(process.lines[before:])
    assert len(kept()) == 4


def test_health_and_the_metrics_page_serve_through_a_reload(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], ) -> None:  # fmt: skip
    health, page = free_port(), free_port()
    otlp_to_file["extensions"] = {"health_check": {"endpoint": f"127.0.0.1:{health}"}}
    otlp_to_file["service"]["extensions"] = ["health_check"]
    otlp_to_file["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{page}"}}
    process = start(otlp_to_file)
    send(process.port(), traces=2, spans=3)
    configure(keeping(otlp_to_file, sampler("2h")))
    reload(process, "SIGHUP: reloaded")
    assert get(f"http://127.0.0.1:{health}/")[0] == 200
    told = metrics(page)
    assert told['podtrail_ledger_spans{exporter="file",term="received"}'] == 6
    assert told['podtrail_ledger_spans{exporter="file",term="in_memory"}'] == 6
    assert told['podtrail_ledger_spans{exporter="file",term="missing"}'] == 0


ON_MEMORY = "otelcol_processor_tail_sampling_sampling_traces_on_memory"


def gauges(told: dict[str, float]) -> dict[str, float]:
    """Return what is shown of queues' sizes and of traces in memory."""
    return {name: value for name, value in told.items() if name.startswith(("otelcol_exporter_queue_size", ON_MEMORY))}


def test_gauges_of_what_a_reload_removes_are_shown_no_more(
    start: Any,
    configure: Any,
    otlp_to_file: dict[str, Any],
) -> None:
    page = free_port()
    otlp_to_file["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{page}"}}
    process = start(otlp_to_file)
    send(process.port(), traces=2)
    size = 'otelcol_exporter_queue_size{{exporter="{}"}}'
    assert gauges(metrics(page)) == {size.format("file"): 0, ON_MEMORY: 2}
    changed = copy.deepcopy(otlp_to_file)
    changed["processors"] = {}
    changed["exporters"] = {"file/second": {"path": "second.jsonl"}}
    changed["service"]["pipelines"]["traces"] |= {"processors": [], "exporters": ["file/second"]}
    configure(changed)
    reload(process, "SIGHUP: reloaded")
    assert gauges(metrics(page)) == {size.format("file/second"): 0}
    configure(otlp_to_file)
    reload(process, "SIGHUP: reloaded")
    assert gauges(metrics(page)) == {size.format("file"): 0, ON_MEMORY: 0}


def test_gauges_tell_of_what_runs_after_a_configuration_could_not_start(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], occupied: int
) -> None:
    page = free_port()
    otlp_to_file["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{page}"}}
    process = start(otlp_to_file)
    send(process.port(), traces=2)
    taken = copy.deepcopy(otlp_to_file)
    taken["receivers"]["otlp"]["protocols"]["http"] = {"endpoint": f"127.0.0.1:{occupied}"}
    taken["exporters"]["file/second"] = {"path": "second.jsonl"}
    taken["service"]["pipelines"]["traces"]["exporters"].append("file/second")
    configure(taken)
    reload(process, "SIGHUP: the new configuration can't start")
    process.line("SIGHUP: the old configuration runs on")
    assert gauges(metrics(page)) == {'otelcol_exporter_queue_size{exporter="file"}': 0, ON_MEMORY: 2}


def test_a_configuration_that_cannot_start_falls_back_to_the_old_one(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], occupied: int, kept: Any
) -> None:
    port = free_port()
    otlp_to_file["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"] = f"127.0.0.1:{port}"
    process = start(otlp_to_file).ready()
    send(port, traces=3)
    taken = copy.deepcopy(otlp_to_file)
    taken["receivers"]["otlp"]["protocols"]["http"] = {"endpoint": f"127.0.0.1:{occupied}"}
    configure(taken)
    reload(process, f"SIGHUP: the new configuration can't start.*127.0.0.1:{occupied}.*in use")
    assert send(port, traces=2) is SpanExportResult.SUCCESS
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert len(kept()) == 5
    assert process.line("stopped: file: 15 received = 15 delivered")


def test_an_exhausted_source_is_not_read_a_second_time(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], kept: Any
) -> None:
    recording = Path(__file__).parents[1] / "data" / "recordings" / "apiserver.otlp.jsonl"
    otlp_to_file["receivers"]["otlp_json_file"] = {"include": [str(recording)]}
    otlp_to_file["service"]["pipelines"]["traces"]["receivers"].append("otlp_json_file")
    process = start(otlp_to_file)
    process.line("read .*apiserver")
    configure(keeping(otlp_to_file, sampler("2h")))
    reload(process, "SIGHUP: reloaded")
    assert send(process.port()) is SpanExportResult.SUCCESS
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert process.log.count("read /") == 1
    spans = [span for trace in kept().values() for span in trace]
    assert len(spans) == len(set(spans))


def test_settings_of_the_log_take_effect(start: Any, configure: Any, otlp_to_file: dict[str, Any]) -> None:
    process = start(otlp_to_file).ready()
    otlp_to_file["service"]["telemetry"]["logs"] = {"encoding": "console"}
    configure(otlp_to_file)
    reload(process, r"^[0-9:.]+ info +SIGHUP: reloaded")


def test_a_source_that_was_refused_goes_on_when_a_reload_lifts_the_limit(
    start: Any, configure: Any, otlp_to_file: dict[str, Any]
) -> None:
    recording = Path(__file__).parents[1] / "data" / "recordings" / "apiserver.otlp.jsonl"
    otlp_to_file["receivers"] = {"otlp_json_file": {"include": [str(recording)]}}
    otlp_to_file["processors"] = {"memory_limiter": {"check_interval": "1s", "limit_mib": 1}}
    traces = {"receivers": ["otlp_json_file"], "processors": ["memory_limiter"], "exporters": ["file"]}
    otlp_to_file["service"]["pipelines"]["traces"] = traces
    process = start(otlp_to_file, "--exit-when-done")
    process.line("refusing spans")
    otlp_to_file["processors"]["memory_limiter"]["limit_mib"] = 4096
    configure(otlp_to_file)
    reload(process, "SIGHUP: reloaded")
    assert process.end() == 0
    assert process.line("stopped: file: 180 received = 180 delivered")


def test_reloads_under_load_lose_nothing_and_refuse_nobody_and_the_ledger_is_even_throughout(
    start: Any,
    configure: Any,
    otlp_to_file: dict[str, Any],
    occupied: int,
    kept: Any,
) -> None:
    page = free_port()
    otlp_to_file["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{page}"}}
    process = start(otlp_to_file)
    port = process.port()
    unusable = copy.deepcopy(otlp_to_file)
    unusable["extensions"] = {"health_check": {"endpoint": f"127.0.0.1:{occupied}"}}
    unusable["service"]["extensions"] = ["health_check"]
    plans = [
        (keeping(otlp_to_file, sampler("1s")), "SIGHUP: reloaded"),
        (unusable, "SIGHUP: the new configuration can't start"),
        (keeping(otlp_to_file, sampler("2h")), "SIGHUP: reloaded"),
        (otlp_to_file, "SIGHUP: reloaded"),
    ]
    done = threading.Event()

    def keep_sending() -> int:
        sent = 0
        while not done.is_set():
            assert send(port, traces=3, spans=2) is SpanExportResult.SUCCESS
            sent += 6
        return sent

    def keep_looking() -> list[float]:
        missing: list[float] = []
        while not done.is_set():
            missing.append(metrics(page)['podtrail_ledger_spans{exporter="file",term="missing"}'])
        return missing

    with ThreadPoolExecutor(3) as clients:
        sending = [clients.submit(keep_sending) for _ in range(2)]
        looking = clients.submit(keep_looking)
        try:
            for config, says in plans:
                configure(config)
                reload(process, says)
        finally:
            done.set()
        sent = sum(client.result() for client in sending)
    assert set(looking.result()) == {0.0}
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert process.line(f"stopped: file: {sent} received = {sent} delivered")
    assert sum(map(len, kept().values())) == sent


def test_what_a_removed_pipeline_has_queued_stays_in_the_book(
    start: Any,
    configure: Any,
    otlp_to_file: dict[str, Any],
    backend: Any,
) -> None:
    page = free_port()
    otlp_to_file["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{page}"}}
    otlp_to_file["receivers"]["otlp/b"] = {"protocols": {"http": {"endpoint": "127.0.0.1:0"}}}
    otlp_to_file["exporters"] = {"otlp_grpc": {"endpoint": f"http://127.0.0.1:{backend.port}"}}
    otlp_to_file["processors"] = {}
    pipelines = otlp_to_file["service"]["pipelines"] = {
        "traces/a": {"receivers": ["otlp"], "exporters": ["otlp_grpc"]},
        "traces/b": {"receivers": ["otlp/b"], "exporters": ["otlp_grpc"]},
    }
    backend.open.clear()
    process = start(otlp_to_file)
    send(process.port(), traces=10, spans=3)
    backend.requests.get(timeout=120)
    del pipelines["traces/a"]
    configure(otlp_to_file)
    reload(process, "SIGHUP: reloaded")
    told = metrics(page)
    assert told['podtrail_ledger_spans{exporter="otlp_grpc",term="in_queue"}'] == 30
    assert told['podtrail_ledger_spans{exporter="otlp_grpc",term="missing"}'] == 0
    backend.open.set()
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert process.line("stopped: otlp_grpc: 30 received = 30 delivered")


def test_a_file_goes_on_when_the_settings_of_its_exporter_change(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], occupied: int, kept: Any
) -> None:
    del otlp_to_file["exporters"]["file"]["decisions_path"]
    process = start(otlp_to_file)
    port = process.port()
    send(port, traces=2)
    changed = copy.deepcopy(otlp_to_file)
    changed["exporters"]["file"]["decisions_path"] = "decisions.jsonl"
    changed["processors"]["tail_sampling"]["decision_wait"] = "1s"
    configure(changed)
    reload(process, "SIGHUP: reloaded")
    send(port, traces=2)
    unusable = copy.deepcopy(otlp_to_file)
    unusable["extensions"] = {"health_check": {"endpoint": f"127.0.0.1:{occupied}"}}
    unusable["service"]["extensions"] = ["health_check"]
    configure(unusable)
    reload(process, "SIGHUP: the new configuration can't start")
    send(port, traces=2)
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert len(kept()) == 6
    assert process.line("stopped: file: 18 received = 18 delivered")


def test_a_stop_while_no_configuration_can_start_delivers_what_is_held(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], backend: Any, tmp_path: Path
) -> None:
    included = tmp_path / "in.jsonl"
    included.touch()
    config = otlp_to_file
    config["receivers"]["otlp_json_file"] = {"include": [included.name]}
    config["exporters"] = {"otlp_grpc": {"endpoint": f"http://127.0.0.1:{backend.port}"}}
    config["service"]["pipelines"]["traces"].update(receivers=["otlp", "otlp_json_file"], exporters=["otlp_grpc"])
    process = start(config)
    send(process.port(), traces=4)
    included.unlink()
    config["receivers"]["otlp_json_file"]["include"] = ["gone.jsonl"]
    configure(config)
    reload(process, "SIGHUP: the old configuration can't start either, senders wait meanwhile: .*in.jsonl")
    process.tell(signal.SIGTERM)
    assert process.end() == 1
    assert backend.spans(12) == 12
    assert process.line("stopped: otlp_grpc: 12 received = 12 delivered")


COUNTS_SAMPLERS = """
import gc, sys, threading, time
from podtrail.__main__ import main
from podtrail_processors.tail_sampling.processor import TailSampling
def let_all_grow_old():  # as a busy podtrail's collections of what is young do
    while True:
        gc.collect(1)
        time.sleep(0.01)
threading.Thread(target=let_all_grow_old, daemon=True).start()
try:
    main()
finally:
    gc.unfreeze()
    print("samplers", sum(isinstance(known, TailSampling) for known in gc.get_objects()), file=sys.stderr)
"""


def test_what_reloads_have_replaced_does_not_pile_up_in_memory(start: Any, otlp_to_file: dict[str, Any]) -> None:
    process = start(otlp_to_file, program=(sys.executable, "-c", COUNTS_SAMPLERS))
    for _ in range(6):
        send(process.port(), traces=2)
        reload(process, "SIGHUP: reloaded")
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert int(process.line(r"samplers (\d+)")[1]) <= 3  # that which runs, and those that led to it


@pytest.mark.parametrize("renamed", ["pipeline", "sampler", "both"])
def test_a_renamed_pipeline_or_sampler_goes_on_with_what_is_undecided(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], json_lines: Any, kept: Any, renamed: str
) -> None:
    process = start(otlp_to_file)
    send(process.port(), traces=5)
    changed = copy.deepcopy(otlp_to_file)
    traces = changed["service"]["pipelines"]["traces"]
    if renamed != "pipeline":
        changed["processors"] = {"tail_sampling/renamed": changed["processors"]["tail_sampling"]}
        traces["processors"] = ["tail_sampling/renamed"]
    if renamed != "sampler":
        changed["service"]["pipelines"] = {"traces/renamed": traces}
    configure(changed)
    reload(process, "SIGHUP: reloaded")
    assert json_lines("decisions.jsonl") == []
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert len(kept()) == 5
    assert process.line("stopped: file: 15 received = 15 delivered")


def test_what_no_processor_takes_over_is_decided_early_and_said(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], json_lines: Any, kept: Any
) -> None:
    process = start(otlp_to_file)
    send(process.port(), traces=5)
    changed = copy.deepcopy(otlp_to_file)
    one = changed["processors"].pop("tail_sampling")
    changed["processors"] = {"tail_sampling/a": one, "tail_sampling/b": one}
    changed["service"]["pipelines"]["traces"]["processors"] = ["tail_sampling/a", "tail_sampling/b"]
    configure(changed)
    reload(process, "tail_sampling.*decides 15 spans early|decides 15 spans early")
    until(lambda: len(kept()) == 5)
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert process.line("stopped: file: 15 received = 15 delivered")
