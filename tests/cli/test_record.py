"""`podtrail record` as a process that a real client sends to, and as it reads files."""

import json
import signal
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import CliRunner, Result
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podtrail.cli import main
from podtrail.otlp import write_request
from podtrail.recording import Record, RecordingWriter, read_recording
from tests.free_ports import free_ports
from tests.service.conftest import PODTRAIL, Process

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "apiserver.otlp"
PATIENCE = 600.0
ZIPKIN = [{"traceId": "a", "id": "1", "timestamp": 1_700_000_000_000_000, "duration": 5, "name": "n"}]


def request(spans: int = 1, *, size: int = 0) -> bytes:
    made = ExportTraceServiceRequest()
    scope = made.resource_spans.add().scope_spans.add()
    for at in range(spans):
        scope.spans.add(
            trace_id=bytes(15) + b"\1", span_id=(at + 1).to_bytes(8, "big"), name="a" + "x" * size,
            start_time_unix_nano=1, end_time_unix_nano=2,
        )  # fmt: skip
    return made.SerializeToString()


def read(path: Path) -> list[Record]:
    found = list(read_recording(path))
    assert all(isinstance(item, Record) for item in found), list(map(str, found))
    return [item for item in found if isinstance(item, Record)]


def send(port: int, raw: bytes) -> None:
    """Send over gRPC once somebody listens there; returns when it is acknowledged."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call: Any = channel.unary_unary(EXPORT)
        call(raw, timeout=PATIENCE, wait_for_ready=True)


Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts `podtrail record`."""
    running: list[Process] = []

    def record(*arguments: object) -> Process:
        running.append(Process([str(PODTRAIL)], ["record", *map(str, arguments)], Path.cwd(), {}))
        return running[-1]

    yield record
    for process in running:
        process.close()


@pytest.fixture
def ports() -> list[int]:
    """Two ports that stay free."""
    return free_ports(2)


def test_what_comes_over_grpc_and_http_is_in_the_file_when_ctrl_c_ends_it(
    start: Start, ports: list[int], tmp_path: Path
) -> None:
    to = tmp_path / "r.otlp.zst"
    grpc_port, http_port = ports
    process = start("--from", f"127.0.0.1:{grpc_port}", "--from", f"http://127.0.0.1:{http_port}", "--to", to)
    send(grpc_port, request(2))
    post = urllib.request.Request(
        f"http://127.0.0.1:{http_port}/v1/traces", request(3), {"Content-Type": "application/x-protobuf"}
    )
    with urllib.request.urlopen(post, timeout=PATIENCE):
        process.tell(signal.SIGINT)
    assert process.end() == 0, process.log
    assert f"{to}: 2 requests, 5 spans in " in process.out
    first, second = read(to)
    assert [write_request(record.intake.groups) for record in (first, second)] == [request(2), request(3)]
    assert 0 < first.arrival < second.arrival
    assert first.timed


def test_a_limit_ends_it_with_the_request_that_reaches_it(start: Start, ports: list[int], tmp_path: Path) -> None:
    process = start("--from", f"grpc://127.0.0.1:{ports[0]}", "--to", tmp_path / "r.jsonl", "--limit", 4)
    send(ports[0], request(3))
    send(ports[0], request(3))
    assert process.end() == 0, process.log
    assert "2 requests, 6 spans" in process.out
    assert "6 spans of --limit 4 came: stopping" in process.log
    assert "SIGTERM" not in process.log


def test_a_size_ends_it(start: Start, ports: list[int], tmp_path: Path) -> None:
    process = start("--from", f"127.0.0.1:{ports[0]}", "--to", tmp_path / "r.otlp", "--max-size", "10KiB")
    send(ports[0], request(size=20_000))
    assert process.end() == 0, process.log
    assert (tmp_path / "r.otlp").stat().st_size > 10_000
    assert "of --max-size 10.0 KiB: stopping" in process.log


def test_time_ends_it_and_a_recording_of_nothing_is_a_failure(start: Start, ports: list[int], tmp_path: Path) -> None:
    process = start("--from", f"127.0.0.1:{ports[0]}", "--to", tmp_path / "r.otlp", "--for", "10ms")
    assert process.end() == 1
    assert process.log.endswith("podtrail: nothing came")
    assert "--for 10ms is over: stopping" in process.log
    assert "SIGTERM" not in process.log


def test_a_recording_is_continued_when_that_is_asked_for(start: Start, ports: list[int], tmp_path: Path) -> None:
    to = tmp_path / "r.jsonl"
    with RecordingWriter(to) as writer:
        writer.write(read(RECORDING)[0].intake.groups, 5)
    half = to.read_bytes()
    to.write_bytes(half + half[:100])
    process = start("--from", f"127.0.0.1:{ports[0]}", "--to", to, "--append", "--limit", 1)
    send(ports[0], request())
    assert process.end() == 0
    assert len(read(to)) == 2


def test_a_port_in_use_is_named(start: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        process = start("--from", f"127.0.0.1:{port}", "--to", tmp_path / "r.otlp")
        assert process.end() == 1
    assert f"127.0.0.1:{port}: Address already in use; take a free port: --from grpc://127.0.0.1:0" in process.log
    assert "Traceback" not in process.log


def record(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["record", *map(str, arguments)])


def test_files_of_other_programs_become_a_recording(tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text(json.dumps(ZIPKIN), encoding="utf-8")
    done = record("--from", RECORDING, "--from", tmp_path / "traces.json", "--to", tmp_path / "r.otlp.gz")
    assert done.exit_code == 0, done.output
    assert "11 requests, 181 spans" in done.output
    assert len(read(tmp_path / "r.otlp.gz")) == 11


def test_what_was_recorded_and_is_recorded_again_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    record("--from", RECORDING, "--to", tmp_path / "a.otlp")
    record("--from", tmp_path / "a.otlp", "--to", tmp_path / "b.jsonl")
    record("--from", tmp_path / "b.jsonl", "--to", tmp_path / "c.otlp")
    assert RECORDING.read_bytes() == (tmp_path / "a.otlp").read_bytes() == (tmp_path / "c.otlp").read_bytes()


def test_strict_ends_at_the_first_damage_and_leaves_no_file(tmp_path: Path) -> None:
    lines = (RECORDING.parent / "apiserver.otlp.jsonl").read_bytes().splitlines(keepends=True)
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(b"".join([*lines[:2], lines[2][:90] + b"\n", *lines[3:]]))
    done = record("--from", damaged, "--to", tmp_path / "r.otlp", "--strict")
    assert done.exit_code == 1
    assert f"podtrail: {damaged}:3: not JSON" in done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged.jsonl"]
    lenient = record("--from", damaged, "--to", tmp_path / "r.otlp")
    assert lenient.exit_code == 0
    assert f"skipped {damaged}:3" in lenient.output
    assert "9 requests" in lenient.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "r.txt"], "ends in .jsonl or .otlp"),
        (["--to", "there.otlp"], "--append continues it, --overwrite begins it anew"),
        (["--to", "there.otlp", "--append", "--overwrite"], "contradict"),
        (["--to", "r.otlp", "--from", "a:1", "--from", "grpc://b:2"], "listened for twice"),
        (["--to", "r.otlp", "--from", "a:1", "--from", "there.otlp"], "either addresses or files"),
        (["--to", "r.otlp", "--from", "there.otlp", "--for", "1s"], "--for is for listening"),
        (["--to", "r.otlp", "--from", "a:1", "--strict"], "--strict is for files"),
        (["--to", "r.otlp", "--for", "0s"], "more than 0s"),
        (["--to", "r.otlp", "--for", "soon"], "not a duration"),
        (["--to", "r.otlp", "--max-size", "much"], "is no size"),
        (["--to", "r.otlp", "--from", "missing.otlp"], "missing.otlp: No such file"),
        (["--to", "missing/r.otlp", "--from", "there.otlp"], "No such file or directory"),
        (["--to", "there.otlp", "--from", "there.otlp", "--overwrite"], "is read: write to another file"),
    ],
)
def test_mistakes_are_usage_errors(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.otlp").write_bytes(RECORDING.read_bytes())
    done = record(*arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())


def test_what_is_no_recording_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    other = tmp_path / "log.jsonl"
    other.write_text('{"ts": 1, "msg": "started"}\n', encoding="utf-8")
    done = record("--from", other, "--to", tmp_path / "r.otlp")
    assert done.exit_code == 1
    assert f"{other} is JSON with the keys ts, msg, not a recording" in done.output
    assert not (tmp_path / "r.otlp").exists()
