"""How `podtrail run` ends: drained on the first signal, at once on the second, always within its time."""

import contextlib
import itertools
import signal
import socket
from typing import Any

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace.export import SpanExportResult

from tests.service.conftest import TRACES
from tests.service.toolbox import PATIENCE, free_port, send, spans


def exporting(config: dict[str, Any], port: int, **settings: Any) -> dict[str, Any]:
    config["exporters"] = {"otlp_grpc": {"endpoint": f"http://127.0.0.1:{port}", **settings}}
    config["service"]["pipelines"]["traces"]["exporters"] = ["otlp_grpc"]
    return config


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_decides_and_delivers_what_is_inside(
    start: Any, otlp_to_file: dict[str, Any], kept: Any, json_lines: Any, number: signal.Signals
) -> None:
    process = start(otlp_to_file)
    assert send(process.port(), traces=20, spans=5) is SpanExportResult.SUCCESS
    process.tell(number)
    assert process.end() == 0
    assert {len(spans) for spans in kept().values()} == {5}
    assert len(kept()) == len(json_lines("decisions.jsonl")) == 20
    assert process.line(f"{number.name}: stopping")
    assert process.line("stopped: file: 100 received = 100 delivered")


def test_requests_under_way_when_the_signal_comes_are_answered_or_not_taken(
    start: Any, otlp_to_file: dict[str, Any], kept: Any
) -> None:
    process = start(otlp_to_file)
    acknowledged = 0
    with grpc.insecure_channel(f"127.0.0.1:{process.port()}") as channel:
        export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{TRACES}/Export")
        with contextlib.suppress(grpc.RpcError):
            for request in itertools.count():
                export(encode_spans(spans(4)).SerializeToString(), timeout=PATIENCE)
                acknowledged += 4
                if request == 10:
                    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert len(kept()) == acknowledged


def test_a_slow_backend_gets_what_is_inside(start: Any, otlp_to_file: dict[str, Any], backend: Any) -> None:
    backend.open.clear()
    process = start(exporting(otlp_to_file, backend.port))
    send(process.port(), traces=10, spans=3)
    process.tell(signal.SIGTERM)
    process.line("SIGTERM: stopping")
    first = backend.requests.get(timeout=PATIENCE)
    backend.open.set()
    assert process.end() == 0
    assert len(first.resource_spans) > 0
    assert process.line("stopped: otlp_grpc: 30 received = 30 delivered")


@pytest.mark.slow
def test_no_backend_can_hold_the_end_up_longer_than_the_time_to_stop(
    start: Any, otlp_to_file: dict[str, Any], black_hole: int, backend: Any, tmp_path: Any
) -> None:
    backend.open.clear()
    ways: dict[str, tuple[int, dict[str, Any]]] = {
        "down": (free_port(), {}),
        "black hole": (black_hole, {"timeout": "1h"}),
        "slow": (backend.port, {"timeout": "1h"}),
        "slow and blocking": (
            backend.port,
            {"timeout": "1h", "sending_queue": {"block_on_overflow": True, "queue_size": 1, "num_consumers": 1}},
        ),
        "without a queue": (backend.port, {"timeout": "1h", "sending_queue": {"enabled": False}}),
    }
    processes = {}
    for way, (port, settings) in ways.items():
        process = processes[way] = start(exporting(otlp_to_file, port, **settings))
        assert send(process.port(), traces=10, spans=3) is SpanExportResult.SUCCESS
    for process in processes.values():
        process.tell(signal.SIGTERM)
    for way, process in processes.items():
        assert process.end() == 1, way
        assert process.line(r"stopped: otlp_grpc: 30 received = 30 dropped \(shutdown 30\)"), way
        assert process.line("30 spans inside could not be delivered in time and are lost"), way
        assert "Traceback" not in process.log, way


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once_and_says_what_is_lost(
    start: Any, otlp_to_file: dict[str, Any], black_hole: int, first: signal.Signals
) -> None:
    process = start(exporting(otlp_to_file, black_hole, timeout="1h"))
    send(process.port(), traces=10, spans=3)
    process.tell(first)
    process.line(f"{first.name}: stopping")
    process.line("stopping: 30 spans for otlp_grpc; waiting at most 10 s in all, another signal ends it at once")
    process.tell(signal.SIGINT)
    assert process.end() == 1
    assert process.line("stopped at once, 30 spans inside are lost")
    assert "Traceback" not in process.log


def test_sighup_while_stopping_changes_nothing(start: Any, otlp_to_file: dict[str, Any], backend: Any) -> None:
    backend.open.clear()
    process = start(exporting(otlp_to_file, backend.port))
    send(process.port(), traces=10, spans=3)
    process.tell(signal.SIGTERM)
    process.line("SIGTERM: stopping")
    process.tell(signal.SIGHUP)
    backend.open.set()
    assert process.end() == 0
    assert backend.spans(at_least=30) == 30


def test_a_full_disk_is_told_holds_the_spans_and_counts_them_as_lost_at_the_end(
    start: Any, otlp_to_file: dict[str, Any]
) -> None:
    otlp_to_file["exporters"]["file"] = {"path": "/dev/full", "flush_interval": "0s"}
    otlp_to_file["service"]["pipelines"]["traces"]["processors"] = []
    otlp_to_file["processors"] = {}
    process = start(otlp_to_file)
    assert send(process.port(), traces=10, spans=3) is SpanExportResult.SUCCESS
    process.line("cannot deliver, trying again.*/dev/full: No space left on device")
    process.tell(signal.SIGTERM)
    process.line("SIGTERM: stopping")
    process.tell(signal.SIGTERM)
    assert process.end() == 1
    assert process.line(r"stopped: file: 30 received = 30 dropped \(shutdown 30\)")
    assert "Traceback" not in process.log


@pytest.mark.slow
def test_a_signal_during_a_reload_that_takes_long_ends_within_the_time_to_stop(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], black_hole: int
) -> None:
    otlp_to_file["processors"] = {}
    otlp_to_file["service"]["pipelines"]["traces"]["processors"] = []
    process = start(exporting(otlp_to_file, black_hole, timeout="1h"))
    port = process.port()
    send(port, traces=10, spans=3)
    configure(exporting(otlp_to_file, black_hole, timeout="2h"))
    process.tell(signal.SIGHUP)
    process.line("SIGHUP: the new configuration is right, swapping")
    process.tell(signal.SIGTERM)
    assert process.end() == 1
    assert process.line(r"dropped 30 spans \(shutdown\)")
    assert process.line(r"stopped: otlp_grpc: 30 received = 30 dropped \(shutdown 30\)")


@pytest.mark.parametrize("signals", [1, 2])
def test_half_a_request_on_any_port_does_not_hold_the_end_up(
    start: Any, otlp_to_file: dict[str, Any], signals: int
) -> None:
    page = free_port()
    otlp_to_file["receivers"]["otlp"]["protocols"]["http"] = {"endpoint": "127.0.0.1:0", "read_timeout": "0s"}
    otlp_to_file["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{page}"}}
    process = start(otlp_to_file).ready()
    with (
        socket.create_connection(("127.0.0.1", process.port("http"))) as spans,
        socket.create_connection(("127.0.0.1", page)) as metrics,
    ):
        header = b"Host: here\r\nContent-Type: application/x-protobuf\r\nContent-Length: 100\r\n"
        spans.sendall(b"POST /v1/traces HTTP/1.1\r\n" + header + b"Expect: 100-continue\r\n\r\n")
        metrics.sendall(b"GET /metrics HTTP/1.1\r\n" + header + b"\r\n")
        assert spans.recv(100).startswith(b"HTTP/1.1 100")  # it is being received
        assert metrics.recv(100).startswith(b"HTTP/1.1 200")
        process.tell(signal.SIGTERM)
        process.line("SIGTERM: stopping")
        if signals == 2:
            process.tell(signal.SIGTERM)
        assert process.end() == 0
        assert bool("stopped at once, nothing is lost" in process.log) == (signals == 2)
        assert not [line for line in process.lines if '"error"' in line]
