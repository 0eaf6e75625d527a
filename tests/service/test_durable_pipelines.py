"""`durable: file_storage`: what was acknowledged is decided and delivered, whenever the process ends."""

import copy
import json
import signal
import socket
import urllib.request
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult

from podtrail.durable.state import PipelineStates
from podtrail.pipeline.checkpoint.encoding import unpack
from podtrail.storage.disk import SystemDisk
from podtrail.storage.states import save_state, saved_states
from tests.service.test_reload import keeping, reload
from tests.service.toolbox import PATIENCE, free_port, metrics, sampler, send, until

Config = dict[str, Any]


@pytest.fixture
def durable(otlp_to_file: Config) -> Config:
    """The configuration of `otlp_to_file`, with HTTP besides, its pipeline durable and its file continued."""
    otlp_to_file["receivers"]["otlp"]["protocols"]["http"] = {"endpoint": "127.0.0.1:0"}
    otlp_to_file["exporters"]["file"]["append"] = True
    otlp_to_file["extensions"] = {"file_storage": {"directory": "store", "create_directory": True}}
    otlp_to_file["service"]["extensions"] = ["file_storage"]
    otlp_to_file["service"]["pipelines"]["traces"]["durable"] = "file_storage"
    return otlp_to_file


def kill(process: Any) -> None:
    process.tell(signal.SIGKILL)
    process.end()


def stop(process: Any) -> None:
    process.tell(signal.SIGTERM)
    assert process.end() == 0


def fleeting(config: Config) -> Config:
    changed = copy.deepcopy(config)
    del changed["service"]["pipelines"]["traces"]["durable"]
    return changed


@pytest.fixture
def decide(start: Any, configure: Any) -> Any:
    """Return a function that starts podtrail and has it decide and deliver everything: it is durable no more."""

    def run(config: Config) -> Any:
        process = start(config).ready()
        configure(fleeting(config))
        reload(process, "SIGHUP: reloaded")
        stop(process)
        return process

    return run


def test_undecided_traces_outlive_a_killed_process(
    start: Any, durable: Config, kept: Any, json_lines: Any, decide: Any
) -> None:
    for _ in range(3):
        process = start(durable)
        assert send(process.port(), traces=5) is SpanExportResult.SUCCESS
        kill(process)
    process = decide(durable)
    assert process.line(r"recovered 45 spans that came since 20\d\d-")
    assert process.line("stopped: file: 45 received = 45 delivered")
    assert all(len(spans) == len(set(spans)) == 3 for spans in kept().values())
    assert len(json_lines("decisions.jsonl")) == 15


def test_what_was_delivered_is_not_delivered_again(
    start: Any,
    durable: Config,
    kept: Any,
) -> None:
    def complete(traces: int) -> bool:
        return sum(len(spans) == 3 for spans in kept().values()) == traces

    config = keeping(durable, sampler("1s"))
    for part in range(1, 4):
        process = start(config)
        send(process.port(), traces=4)
        until(partial(complete, 4 * part))
        for number in (1, 2):  # the second is on disk behind the note of all that was delivered before the first came
            assert post(process.port("http"), request(10 * part + number)) == 200
        kill(process)
    process = start(config)
    until(lambda: len(kept()) == 18)
    stop(process)
    assert [len(spans) for spans in kept().values() if len(spans) > 2] == [3] * 12


def test_a_start_without_a_checkpoint_says_what_is_no_longer_remembered(
    start: Any, durable: Config, kept: Any, tmp_path: Path
) -> None:
    page = free_port()
    durable["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{page}"}}
    config = keeping(durable, sampler("1s"))
    missing = 'otelcol_extension_file_storage_missing_checkpoints{extension="file_storage"}'

    def lose_checkpoint() -> None:
        for state in (tmp_path / "store/pipelines").glob("*.state"):
            state.unlink()

    process = start(config)
    send(process.port(), traces=4)
    until(lambda: len(kept()) == 4)
    kill(process)
    lose_checkpoint()
    process = start(config).ready()  # all of the log is there
    assert metrics(page)[missing] == 0
    assert not any("there is no checkpoint" in line for line in process.lines)
    send(process.port(), traces=2)
    kill(process)
    lose_checkpoint()
    min((tmp_path / "store/pipelines").glob("*.otlp")).unlink()  # as it is once a checkpoint has made room
    process = start(config).ready()
    process.line(r"there is no checkpoint, .*what was decided before 20\d\d-\S+Z is not remembered")
    assert metrics(page)[missing] == 1
    stop(process)


@pytest.mark.parametrize("section", ["all", "metrics"])
def test_a_checkpoint_that_can_not_be_read_costs_no_span(
    start: Any, durable: Config, kept: Any, tmp_path: Path, section: str
) -> None:
    durable["processors"]["scheduling_metrics"] = None
    durable["service"]["pipelines"]["traces"]["processors"].insert(0, "scheduling_metrics")
    page = free_port()
    durable["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{page}"}}
    config = keeping(durable, sampler("2s"))
    process = start(config)
    send(process.port(), traces=4)
    stop(process)
    folder = tmp_path / "store/pipelines"
    ((segment, data),) = saved_states(folder, SystemDisk())
    state = PipelineStates.read(data)
    (id,) = state.chains
    if section == "all":
        changed = b"podtrail checkpoint 1\n" + bytes(8) + b"\x80\x05N."
    else:
        whole = state.chain(id)
        size = int.from_bytes(whole[22:26], "little")
        _, ((*_, of_chain, _), *_) = unpack(whole[30 : 30 + size])
        at = 30 + size + of_chain  # where the first processor's section begins
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    save_state(folder, SystemDisk(), segment, replace(state, chains={id: changed}).prepared()())
    process = start(config).ready()
    if section == "all":
        process.line("a checkpoint can't be used, what the log still has is replayed .*podtrail 0.1")
    else:
        process.line("a part of a checkpoint can't be used, .*scheduling_metrics: it is damaged")
    assert metrics(page)['otelcol_extension_file_storage_unreadable_entries{extension="file_storage"}'] == 1
    until(lambda: len(kept()) == 4)
    stop(process)


def silent_backend(config: Config, port: int, timeout: str) -> Config:
    changed = copy.deepcopy(config)
    changed["processors"], changed["service"]["pipelines"]["traces"]["processors"] = {}, []
    changed["exporters"] = {"otlp_grpc": {"endpoint": f"http://127.0.0.1:{port}", "timeout": timeout}}
    changed["service"]["pipelines"]["traces"]["exporters"] = ["otlp_grpc"]
    return changed


def test_a_stop_waits_for_no_backend_that_is_down(start: Any, durable: Config) -> None:
    process = start(silent_backend(durable, free_port(), "1s"))
    send(process.port(), traces=6)
    process.line("cannot deliver, trying again")
    stop(process)
    assert "waiting at most" not in process.log  # as for a queue in memory
    assert process.line("0 undecided spans and 18 to be delivered stay in the store")
    assert process.line("stopped: otlp_grpc: 18 received = 18 in queue")


def test_a_second_signal_costs_nothing_that_is_in_the_store(
    start: Any, durable: Config, black_hole: int, backend: Any
) -> None:
    process = start(silent_backend(durable, black_hole, "1h"))
    send(process.port(), traces=6)
    process.tell(signal.SIGTERM)
    process.line("SIGTERM: stopping")
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert process.line("stopped at once, nothing is lost")
    process = start(silent_backend(durable, backend.port, "5s"))
    assert backend.spans(at_least=18) == 18
    stop(process)


def test_the_policies_of_the_new_configuration_judge_what_the_old_one_held(
    start: Any, durable: Config, kept: Any, decide: Any
) -> None:
    process = start(durable)
    send(process.port(), traces=6)
    kill(process)
    process = decide(keeping(durable, sampler("1h", 0)))
    assert kept() == {}
    assert process.line("stopped: file: 18 received = 18 sampled out")


def test_a_pipeline_that_is_gone_is_decided_and_delivered_to_its_exporters_that_are_left(
    start: Any, durable: Config, kept: Any
) -> None:
    process = start(durable)
    send(process.port(), traces=6)
    kill(process)
    changed = copy.deepcopy(durable)
    pipelines = changed["service"]["pipelines"]
    pipelines["traces/other"] = pipelines.pop("traces")
    pipelines["traces/another"] = pipelines["traces/other"]  # it may have been renamed to either
    process = start(changed)
    assert process.line("decides 18 spans early")
    until(lambda: len(kept()) == 6)
    stop(process)


def test_spans_and_decisions_that_wait_for_an_exporter_are_in_the_checkpoint(
    start: Any, durable: Config, kept: Any, json_lines: Any, tmp_path: Path
) -> None:
    config = keeping(durable, sampler("1s"))
    for name in ("kept.jsonl", "decisions.jsonl"):
        (tmp_path / name).symlink_to("/dev/full")
    process = start(config)
    send(process.port(), traces=6)
    process.line("cannot deliver")
    stop(process)
    for name in ("kept.jsonl", "decisions.jsonl"):
        (tmp_path / name).unlink()
    process = start(config)
    until(lambda: len(kept()) == 6)
    stop(process)
    told = json_lines("decisions.jsonl")
    assert [(line["decision"], line["policy"], line["spans"]) for line in told] == [("sampled", "share", 3)] * 6
    assert process.line("stopped: file: 18 received = 18 delivered")


def test_what_is_owed_to_an_exporter_that_is_gone_is_told(
    start: Any,
    durable: Config,
    kept: Any,
) -> None:
    config = keeping(durable, sampler("1s"))
    config["exporters"]["otlp_grpc"] = {"endpoint": f"http://127.0.0.1:{free_port()}"}
    config["service"]["pipelines"]["traces"]["exporters"] = ["file", "otlp_grpc"]
    process = start(config)
    send(process.port(), traces=6)
    until(lambda: len(kept()) == 6)
    stop(process)
    process = start(keeping(durable, sampler("1s"))).ready()
    assert process.line("18 spans are for exporters, or from receivers, that are no longer configured")
    stop(process)
    assert Counter(len(spans) for spans in kept().values()) == {3: 6}


def request(number: int) -> bytes:
    span = {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "a", "kind": 1}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def post(port: int, body: bytes) -> int:
    url = f"http://127.0.0.1:{port}/v1/traces"
    asked = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        status: int = answer.status
        return status


def test_the_same_request_to_two_receivers_is_taken_by_both(
    start: Any, durable: Config, kept: Any, decide: Any, tmp_path: Path
) -> None:
    durable["receivers"] = {
        name: {"protocols": {"http": {"endpoint": "127.0.0.1:0"}}} for name in ("otlp/one", "otlp/two")
    }
    pipelines = durable["service"]["pipelines"]
    pipelines["traces"]["receivers"] = ["otlp/one"]
    durable["exporters"]["file/two"] = {"path": "two.jsonl", "append": True}
    pipelines["traces/two"] = pipelines["traces"] | {"receivers": ["otlp/two"], "exporters": ["file/two"]}
    process = start(durable)
    for receiver in ("one", "two"):
        port = process.line(rf'listening on [^ ]*:(\d+) .*"otlp/{receiver}"')[1]
        assert post(int(port), request(1)) == 200
    stop(process)
    assert process.line("2 undecided spans")


def test_what_a_pipeline_that_was_renamed_owes_outlives_further_ends(
    start: Any,
    durable: Config,
    backend: Any,
) -> None:
    config = keeping(durable, sampler("1s"))
    retry = {"initial_interval": "10ms", "max_interval": "50ms"}
    config["exporters"] = {"otlp_grpc": {"endpoint": f"http://127.0.0.1:{backend.port}", "retry_on_failure": retry}}
    pipelines = config["service"]["pipelines"]
    pipelines["traces"]["exporters"] = ["otlp_grpc"]
    backend.open.clear()
    process = start(config)
    send(process.port(), traces=6)
    backend.requests.get(timeout=PATIENCE)
    kill(process)
    pipelines["traces/new"] = pipelines.pop("traces")
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = start(config).ready()
        assert process.line("recovered 18 spans")
        process.tell(number)
        process.end()
    while not backend.requests.empty():
        backend.requests.get()
    backend.open.set()
    process = start(config)
    assert backend.spans(18) == 18
    stop(process)


def test_what_was_undecided_when_its_exporter_was_renamed_goes_to_the_new_one_or_is_told(
    start: Any, durable: Config, tmp_path: Path
) -> None:
    config = keeping(durable, sampler("1s"))
    process = start(config)
    send(process.port(), traces=6)
    kill(process)
    config["exporters"]["file/new"] = config["exporters"].pop("file") | {"path": "new.jsonl"}
    config["service"]["pipelines"]["traces"]["exporters"] = ["file/new"]
    process = start(config)
    until(lambda: (tmp_path / "new.jsonl").exists() or "no longer configured" in process.log)
    stop(process)


def test_a_reload_does_not_go_on_in_a_folder_that_holds_something(
    start: Any, configure: Any, durable: Config, kept: Any, decide: Any
) -> None:
    process = start(durable)
    send(process.port(), traces=6)
    kill(process)
    process = start(fleeting(durable))
    send(process.port(), traces=2)
    configure(durable)
    reload(process, "going back: .*holds what an earlier podtrail has left")
    send(process.port(), traces=3)
    stop(process)
    assert len(kept()) == 5
    decide(durable)
    assert len(kept()) == 11


def elsewhere(config: Config) -> Config:
    changed = copy.deepcopy(config)
    changed["extensions"]["file_storage"]["directory"] = "elsewhere"
    return changed


def in_another_storage(config: Config) -> Config:
    changed = copy.deepcopy(config)
    changed["extensions"]["file_storage/other"] = {"directory": "elsewhere", "create_directory": True}
    changed["service"]["extensions"] = ["file_storage", "file_storage/other"]
    changed["service"]["pipelines"]["traces"]["durable"] = "file_storage/other"
    return changed


@pytest.mark.parametrize(
    ("moved", "key"),
    [(elsewhere, "extensions::file_storage::directory"), (in_another_storage, "service::pipelines::traces::durable")],
)
def test_a_reload_leaves_what_is_on_disk_where_it_is(
    moved: Any, key: str, start: Any, configure: Any, durable: Config, kept: Any, decide: Any, tmp_path: Path
) -> None:
    process = start(durable)
    send(process.port(), traces=6)
    configure(moved(durable))
    reload(process, "nothing changed, the new configuration can't be used")
    assert process.line(
        rf"{key}: what is kept in file_storage \({tmp_path}/store\) can't go on in .*{tmp_path}/elsewhere"
    )
    assert not (tmp_path / "elsewhere").exists()
    kill(process)
    decide(durable)
    assert len(kept()) == 6


def test_a_reload_that_would_make_it_durable_and_fails_leaves_nothing_that_is_delivered_again(
    start: Any, configure: Any, durable: Config, kept: Any, decide: Any, tmp_path: Path
) -> None:
    process = start(fleeting(durable))
    send(process.port(), traces=6)
    changed = copy.deepcopy(durable)
    changed["service"]["pipelines"]["traces"]["receivers"] = ["otlp", "otlp/taken"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
        changed["receivers"]["otlp/taken"] = {"protocols": {"grpc": {"endpoint": endpoint}}}
        configure(changed)
        reload(process, "going back: .*can't listen on")
    assert not [*(tmp_path / "store" / "pipelines").iterdir()]
    said = len(process.lines)
    configure(durable)
    process.tell(signal.SIGHUP)
    assert process.line("SIGHUP: reloaded", after=said)
    kill(process)
    decide(durable)
    assert Counter(len(spans) for spans in kept().values()) == {3: 6}


def without_storage(config: Config) -> Config:
    changed = fleeting(config)
    del changed["extensions"], changed["service"]["extensions"]
    return changed


@pytest.mark.parametrize(("ended", "runs_on"), [(fleeting, False), (without_storage, True)])
def test_a_reload_that_would_end_it_and_fails_costs_nothing_of_what_is_undecided_and_owed(
    ended: Any, runs_on: bool, start: Any, configure: Any, durable: Config, backend: Any, tmp_path: Path
) -> None:
    included = tmp_path / "in.jsonl"
    included.touch()
    config = keeping(durable, sampler("1s"))
    config["receivers"]["otlp_json_file"] = {"include": [included.name]}
    config["exporters"] = {"otlp_grpc": {"endpoint": f"http://127.0.0.1:{free_port()}"}}
    config["service"]["pipelines"]["traces"].update(receivers=["otlp", "otlp_json_file"], exporters=["otlp_grpc"])
    process = start(config)
    send(process.port(), traces=6)
    process.line("cannot deliver")
    configure(keeping(config, sampler("1h")))
    reload(process, "SIGHUP: reloaded")
    send(process.port(), traces=4)
    changed = ended(keeping(config, sampler("1h")))
    changed["receivers"]["otlp_json_file"]["include"] = ["gone.jsonl"]
    included.unlink()
    configure(changed)
    reload(process, "the old configuration can't start either")
    if runs_on:
        included.touch()
        process.line("the old configuration runs on")
    kill(process)
    included.touch()
    config["exporters"]["otlp_grpc"]["endpoint"] = f"http://127.0.0.1:{backend.port}"
    process = start(config)
    assert backend.spans(18) == 18
    stop(process)
    assert process.line("stopped: otlp_grpc: 30 received = 18 delivered [+] 12 kept for the next start")


def test_a_reload_that_ends_it_leaves_nothing_that_is_delivered_again(
    start: Any, configure: Any, durable: Config, tmp_path: Path
) -> None:
    process = start(durable)
    send(process.port(), traces=2)
    configure(without_storage(durable))
    reload(process, "SIGHUP: reloaded")
    assert not [*(tmp_path / "store" / "pipelines").iterdir()]
    kill(process)
    process = start(durable)
    assert process.line("nothing to recover")


def test_a_reload_that_changes_the_storage_keeps_what_is_in_memory(
    start: Any, configure: Any, durable: Config, kept: Any, decide: Any
) -> None:
    process = start(durable)
    send(process.port(), traces=2)
    synced = copy.deepcopy(durable)
    synced["extensions"]["file_storage"]["fsync"] = True
    configure(synced)
    reload(process, "SIGHUP: reloaded")
    send(process.port(), traces=3)
    kill(process)
    decide(synced)
    assert Counter(len(spans) for spans in kept().values()) == {3: 5}


def test_a_reload_can_end_it_and_begin_it_again(
    start: Any, configure: Any, durable: Config, kept: Any, decide: Any, tmp_path: Path
) -> None:
    process = start(durable)
    send(process.port(), traces=2)
    configure(fleeting(durable))
    reload(process, "SIGHUP: reloaded")
    assert not [*(tmp_path / "store" / "pipelines").iterdir()]
    assert "nothing uses" not in process.log
    configure(durable)
    reload(process, "SIGHUP: reloaded")
    send(process.port(), traces=3)
    kill(process)
    decide(durable)
    assert Counter(len(spans) for spans in kept().values()) == {3: 5}


def test_a_store_that_no_pipeline_is_durable_by_any_more_is_named_with_what_brings_it_back(
    start: Any, durable: Config, tmp_path: Path
) -> None:
    process = start(durable)
    send(process.port(), traces=2)
    stop(process)
    process = start(fleeting(durable))
    folder = tmp_path / "store" / "pipelines"
    assert process.line(
        rf"{folder.relative_to(tmp_path)} holds [0-9]+ bytes that nothing uses: whose it was is not configured or not "
        "stored any more. To have them sent, restart podtrail with durable: file_storage in the pipeline that had it; "
        "if they are not wanted, remove the folder"
    )


def test_who_exits_when_done_decides_all(start: Any, durable: Config, kept: Any, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(request(number) for number in range(1, 8)) + b"\n")
    durable["receivers"] = {"otlp_json_file": {"include": ["in.jsonl"]}}
    durable["service"]["pipelines"]["traces"]["receivers"] = ["otlp_json_file"]
    process = start(durable, "--exit-when-done")
    assert process.end() == 0
    assert len(kept()) == 7
