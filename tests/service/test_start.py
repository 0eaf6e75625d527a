"""What `podtrail run` says when it can't start: what to mend, the right exit code, never a traceback."""

import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.service.toolbox import free_port


def failed(process: Any, code: int, *says: str) -> None:
    assert process.end() == code, process.log
    assert "Traceback" not in process.log
    assert process.out == ""
    for text in says:
        assert text in process.log


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_port_in_use_is_named(start: Any, otlp_to_file: dict[str, Any], occupied: int, protocol: str) -> None:
    otlp_to_file["receivers"]["otlp"]["protocols"] = {protocol: {"endpoint": f"127.0.0.1:{occupied}"}}
    key = f"receivers::otlp::protocols::{protocol}::endpoint"
    said = f"{key}: can't listen on 127.0.0.1:{occupied}: Address already in use"
    failed(start(otlp_to_file), 1, said, "another podtrail may run: end it, or move all ports here: --port-offset ")


def test_all_ports_in_use_are_named_at_once(start: Any, otlp_to_file: dict[str, Any], occupied: int) -> None:
    endpoint = f"127.0.0.1:{occupied}"
    otlp_to_file["service"]["telemetry"] = {"metrics": {"address": endpoint}}
    otlp_to_file["extensions"] = {
        "health_check": {"endpoint": endpoint},
        "viewer": {"endpoint": endpoint, "otlp_endpoint": "127.0.0.1:0"},
    }
    otlp_to_file["service"]["extensions"] = ["health_check", "viewer"]
    otlp_to_file["receivers"]["otlp"]["protocols"] = {"grpc": {"endpoint": endpoint}}
    keys = ("extensions::health_check::endpoint", "extensions::viewer::endpoint", "service::telemetry::metrics")
    said = [f"{key}: can't listen on {endpoint}: Address already in use" for key in keys]
    failed(start(otlp_to_file), 1, *said, "receivers::otlp::protocols::grpc::endpoint: can't listen on ")


def test_a_second_podtrail_in_the_same_folder_is_given_all_options_at_once(
    start: Any, otlp_to_file: dict[str, Any], tmp_path: Path
) -> None:
    otlp_to_file["extensions"] = {"file_storage": {"directory": "store", "create_directory": True}}
    otlp_to_file["service"]["extensions"] = ["file_storage"]
    first = start(otlp_to_file).ready()
    failed(
        start(otlp_to_file),
        1,
        "exporters::file::path: can't use kept.jsonl: another process writes to it",
        "exporters::file::decisions_path: can't use decisions.jsonl: another process writes to it",
        "extensions::file_storage::directory: can't use store: is in use by another process",
        'give this one files of its own: --set exporters::file::path="kept-2.jsonl" '
        '--set exporters::file::decisions_path="decisions-2.jsonl" --set extensions::file_storage::directory="store-2"',
    )
    otlp_to_file["exporters"]["file"] = {"path": "kept-2.jsonl"}
    otlp_to_file["extensions"]["file_storage"]["directory"] = "store-2"
    for process in (first, start(otlp_to_file).ready()):
        process.tell(signal.SIGTERM)
        assert process.end() == 0


def test_nothing_is_opened_while_a_port_is_in_use(
    start: Any, otlp_to_file: dict[str, Any], occupied: int, tmp_path: Path
) -> None:
    port = free_port()
    otlp_to_file["extensions"] = {"health_check": {"endpoint": f"127.0.0.1:{port}"}}
    otlp_to_file["service"]["extensions"] = ["health_check"]
    otlp_to_file["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"] = f"127.0.0.1:{occupied}"
    failed(start(otlp_to_file), 1, "in use")
    socket.create_server(("127.0.0.1", port)).close()
    assert not (tmp_path / "kept.jsonl").exists()


def test_a_file_that_cannot_be_written_is_named(start: Any, otlp_to_file: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    for path in (str(tmp_path), "plain/kept.jsonl", "/proc/nothing/kept.jsonl"):
        otlp_to_file["exporters"]["file"] = {"path": path}
        failed(start(otlp_to_file), 1, "exporters::file", path)


def test_a_fifo_that_nobody_reads_keeps_podtrail_neither_from_starting_nor_from_ending(
    start: Any, otlp_to_file: dict[str, Any], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo.jsonl")
    otlp_to_file["exporters"]["file"] = {"path": "fifo.jsonl"}
    process = start(otlp_to_file).ready()
    assert process.line("nobody reads the FIFO fifo.jsonl yet")
    process.tell(signal.SIGTERM)
    assert process.end() == 0


def test_a_recording_that_is_not_there_is_named(start: Any, otlp_to_file: dict[str, Any], tmp_path: Path) -> None:
    otlp_to_file["service"]["pipelines"]["traces"]["receivers"] = ["otlp_json_file"]
    for path, says in {"gone.jsonl": "there is no file gone.jsonl", str(tmp_path): "is a directory"}.items():
        otlp_to_file["receivers"] = {"otlp_json_file": {"include": [path]}}
        failed(start(otlp_to_file), 1, says)


@pytest.mark.parametrize(
    ("text", "says"),
    {
        "": "empty",
        "\x00\x01": "config.yaml",
        "receivers: [": "config.yaml:2:1",
        "just words": "config.yaml:1",
        "recievers: {}": "receivers",
        "service: {pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}": "not configured",
    }.items(),
)
def test_a_configuration_that_is_none_is_reported(start: Any, text: str, says: str) -> None:
    failed(start(text), 2, says)


def test_a_configuration_that_cannot_be_read_is_named(start: Any, otlp_to_file: dict[str, Any], tmp_path: Path) -> None:
    failed(start(otlp_to_file, "--config", "gone.yaml"), 2, "gone.yaml")
    failed(start(otlp_to_file, "--config", str(tmp_path)), 2, str(tmp_path), "directory")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xfa")
    failed(start(otlp_to_file, "--config", "bytes.yaml"), 2, "bytes.yaml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_configuration_without_permission_is_named(start: Any, otlp_to_file: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").touch(mode=0)
    failed(start(otlp_to_file, "--config", "secret.yaml"), 2, "secret.yaml", "permission")


def test_every_mistake_is_in_one_report(start: Any, otlp_to_file: dict[str, Any]) -> None:
    otlp_to_file["processors"]["tail_sampling"]["decision_wait"] = "soon"
    otlp_to_file["exporters"]["file"]["pth"] = "x"
    otlp_to_file["service"]["pipelines"]["traces"]["processors"].append("batch")
    process = start(otlp_to_file)
    failed(process, 2, "decision_wait", "pth", 'processor "batch" which is not configured')


@pytest.mark.slow
def test_ctrl_c_at_any_moment_of_the_start_ends_it_without_a_traceback(
    start: Any, otlp_to_file: dict[str, Any]
) -> None:
    for at in range(0, 360, 60):
        process = start(otlp_to_file, program=(sys.executable, "-m", "podtrail"))
        threading.Event().wait(at / 1000)  # the moments themselves, nothing is waited for
        process.tell(signal.SIGINT)
        assert process.end() in {0, 1, -signal.SIGINT}
        # What the interpreter says before it has come to our code is its own affair.
        if "podtrail/cli" in process.log or "podtrail/service" in process.log or "asyncio" in process.log:
            assert "Traceback" not in process.log, f"after {at} ms"
        process.close()


def test_a_recording_is_not_written_over_by_the_run_that_reads_it(
    start: Any, otlp_to_file: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "kept.jsonl").write_text("precious\n")
    (tmp_path / "link.jsonl").symlink_to("kept.jsonl")
    otlp_to_file["service"]["pipelines"]["traces"]["receivers"] = ["otlp_json_file"]
    for pattern in ("kept.jsonl", "*.jsonl", "link.jsonl", str(tmp_path / "kept.jsonl")):
        otlp_to_file["receivers"] = {"otlp_json_file": {"include": [pattern]}}
        failed(start(otlp_to_file), 2, "exporters::file::path", "writes to kept.jsonl, which receiver", "another file")
    assert (tmp_path / "kept.jsonl").read_text() == "precious\n"
