"""`podtrail generate` and `podtrail replay --endpoint` against a `podtrail run` and a backend that refuses."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from podtrail.otlp import Group, split
from podtrail.recording import Record, RecordingWriter, read_recording
from podtrail.testing.attempts import START, MadeAttempt

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests" / "data" / "recordings" / "apiserver.otlp.jsonl"
SECOND = 1_000_000_000
SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def podtrail() -> Run:
    """Return a function that runs a command of podtrail to its end."""
    program = Path(sys.executable).parent / "podtrail"

    def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(program), *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
        )

    return run


def raw_spans(path: Path) -> list[bytes]:
    groups: list[Group] = []
    for record in read_recording(path):
        assert isinstance(record, Record)
        groups += record.intake.groups
    return sorted(raw for group in groups for raw in split(group.spans))


@pytest.fixture(params=["grpc", "http"])
def pipeline(request: pytest.FixtureRequest, start: Any, otlp_to_file: dict[str, Any]) -> Any:
    """A running pipeline that keeps everything, and the protocol and endpoint to reach it by."""
    protocol = request.param
    otlp_to_file["receivers"]["otlp"]["protocols"] = {protocol: {"endpoint": "127.0.0.1:0"}}
    process = start(otlp_to_file).ready()
    return process, protocol, f"http://127.0.0.1:{process.port(protocol)}"


def test_a_recording_comes_out_of_a_live_pipeline_as_it_was(podtrail: Run, pipeline: Any, tmp_path: Path) -> None:
    process, protocol, endpoint = pipeline
    done = podtrail("replay", RECORDING, "--endpoint", endpoint, "--protocol", protocol, "--speed", "max", "--json")
    assert done.returncode == 0, done.stderr
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    sent = raw_spans(RECORDING)
    assert json.loads(done.stdout)["acceptedSpans"] == len(sent)
    assert raw_spans(tmp_path / "kept.jsonl") == sent


def test_what_is_generated_is_all_taken(podtrail: Run, pipeline: Any, tmp_path: Path) -> None:
    process, protocol, endpoint = pipeline
    arguments = ("--rate", "2000", "--for", "1s", "--length", "20s", "--json")
    done = podtrail("generate", "--endpoint", endpoint, "--protocol", protocol, *arguments)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert len(set(raw_spans(tmp_path / "kept.jsonl"))) == told["acceptedSpans"] == told["spans"] > 1000


class Refusing:
    """A backend that is unavailable for some requests, then takes everything."""

    def __init__(self) -> None:
        self.refuses = 2
        self.port = 0

    def export(self, _raw: bytes, context: grpc.ServicerContext) -> bytes:
        if self.refuses:
            self.refuses -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
        return b""


@pytest.fixture
def refusing() -> Iterator[Refusing]:
    handler = Refusing()
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(handler.export)
    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Export": method}),))
        handler.port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield handler
        server.stop(None).wait(30)


@pytest.fixture
def gaps(tmp_path: Path) -> Path:
    """A recording of two requests, half a minute apart."""
    path = tmp_path / "gaps.otlp"
    with RecordingWriter(path) as writer:
        for number in range(2):
            attempt = MadeAttempt(number=number + 1, start=START + 30 * number * SECOND)
            writer.write(attempt.groups(), attempt.start)
    return path


def test_recorded_gaps_are_kept_at_a_speed(podtrail: Run, backend: Any, gaps: Path) -> None:
    done = podtrail("replay", gaps, "--endpoint", f"127.0.0.1:{backend.port}", "--speed", "100x", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    # The second is due 0.3 s after the start of the clock, which the first request follows by at most its delay.
    assert told["seconds"] + told["longestDelaySeconds"] >= 0.298


def test_what_is_refused_is_sent_again_and_counted(podtrail: Run, refusing: Refusing, gaps: Path) -> None:
    done = podtrail("replay", gaps, "--endpoint", f"127.0.0.1:{refusing.port}", "--speed", "max", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["refusedTries"] == 2
    assert told["acceptedSpans"] == told["spans"] == len(raw_spans(gaps))


def test_strict_sends_what_came_before_the_damage_and_names_it(podtrail: Run, backend: Any, gaps: Path) -> None:
    with gaps.open("ab") as file:
        file.write(b"\x00\x00\x00\x09nonsense!")
    arguments = ("--endpoint", f"127.0.0.1:{backend.port}", "--speed", "max", "--json")
    done = podtrail("replay", gaps, *arguments, "--strict")
    assert done.returncode == 1
    assert f"refused {gaps} at byte " in done.stderr
    assert json.loads(done.stdout)["acceptedSpans"] == len(raw_spans_before(gaps))
    assert podtrail("replay", gaps, *arguments).returncode == 0


def raw_spans_before(path: Path) -> list[bytes]:
    records = [record for record in read_recording(path) if isinstance(record, Record)]
    return [raw for record in records for group in record.intake.groups for raw in split(group.spans)]
