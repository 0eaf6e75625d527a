"""`service::telemetry::traces`: podtrail's own spans reach a backend; one that is not there costs a warning."""

import signal
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult

from tests.service.toolbox import free_port, send, until


def traced(port: int, kind: str = "batch", protocol: str = "grpc", **more: Any) -> Mapping[str, Any]:
    """Return `telemetry::traces` that sends to a port."""
    otlp = {"protocol": protocol, "endpoint": f"http://127.0.0.1:{port}"}
    settings: dict[str, Any] = {"exporter": {"otlp": otlp}}
    if kind == "batch":
        settings["schedule_delay"] = 50
    return {"processors": [{kind: settings}], **more}


@pytest.fixture(name="config")
def _config(otlp_to_file: dict[str, Any]) -> dict[str, Any]:
    """A configuration of a pipeline that lets everything pass."""
    del otlp_to_file["processors"]
    otlp_to_file["service"]["pipelines"]["traces"]["processors"] = []
    return otlp_to_file


def own_spans(backend: Any, *names: str) -> dict[str, Any]:
    """Wait until spans of these names came; return the last of each name."""
    found: dict[str, Any] = {}
    while not set(names) <= found.keys():
        request = backend.requests.get(timeout=120)
        for resource in request.resource_spans:
            attributes = {one.key: one.value.string_value for one in resource.resource.attributes}
            assert attributes["service.name"] in ("podtrail", "ours")
            for scope in resource.scope_spans:
                assert scope.scope.name == "podtrail/own"
                found |= {span.name: span for span in scope.spans}
    return found


def attributes(span: Any) -> Mapping[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


@pytest.mark.parametrize("kind", ["batch", "simple"])
def test_a_batch_is_told_from_its_receipt_to_its_export(
    start: Any, config: dict[str, Any], backend: Any, kind: str
) -> None:
    config["service"]["telemetry"] |= {"traces": traced(backend.port, kind), "resource": {"service.name": "ours"}}
    process = start(config)
    assert send(process.port(), traces=2, spans=3) is SpanExportResult.SUCCESS
    spans = own_spans(backend, "receiver/otlp/TraceDataReceived", "exporter/file/traces")
    assert attributes(spans["receiver/otlp/TraceDataReceived"]) == {"receiver": "otlp", "accepted_spans": 6}
    sent = {"exporter": "file", "items": 6, "items.sent": 6, "items.failed": 0}
    assert attributes(spans["exporter/file/traces"]) == sent
    process.tell(signal.SIGTERM)
    assert process.end() == 0


def test_own_spans_that_come_back_are_delivered_and_not_traced_again(
    start: Any, config: dict[str, Any], kept: Any
) -> None:
    port = free_port()
    config["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"] = f"127.0.0.1:{port}"
    config["service"]["telemetry"]["traces"] = traced(port)
    process = start(config).ready()
    assert send(port, traces=1, spans=1) is SpanExportResult.SUCCESS
    until(lambda: len(kept()) >= 3)
    assert send(port, traces=1, spans=1) is SpanExportResult.SUCCESS
    until(lambda: len(kept()) >= 6)
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert len(kept()) == 6  # of two batches each its trace, its receipt, its export; nothing of own spans


def test_a_reload_is_told(start: Any, config: dict[str, Any], backend: Any) -> None:
    config["service"]["telemetry"]["traces"] = traced(backend.port)
    process = start(config).ready()
    process.tell(signal.SIGHUP)
    process.line("SIGHUP: reloaded")
    assert attributes(own_spans(backend, "reload")["reload"]) == {"reloaded": True}


def test_over_http_what_waits_is_sent_at_the_end(start: Any, config: dict[str, Any], tmp_path: Path) -> None:
    port = free_port()
    other = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
        "exporters": {"file": {"path": "own.jsonl"}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]}},
        },
    }
    taking = start(other).ready()
    traces = {**traced(port, protocol="http/protobuf")}
    traces["processors"][0]["batch"]["schedule_delay"] = 600_000
    config["service"]["telemetry"]["traces"] = traces
    process = start(config)
    assert send(process.port(), traces=1, spans=1) is SpanExportResult.SUCCESS
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    taking.tell(signal.SIGTERM)
    assert taking.end() == 0
    assert "receiver/otlp/TraceDataReceived" in (tmp_path / "own.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize(("protocol", "refuses"), [("grpc", True), ("http/protobuf", False)])
def test_a_backend_that_is_not_there_costs_a_warning(
    start: Any, config: dict[str, Any], black_hole: int, protocol: str, refuses: bool
) -> None:
    config["service"]["telemetry"]["traces"] = traced(free_port() if refuses else black_hole, protocol=protocol)
    process = start(config)
    assert send(process.port(), traces=1, spans=1) is SpanExportResult.SUCCESS
    if refuses:
        process.line("own spans could not be sent to http://127.0.0.1")
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    process.line("own spans")


def test_of_a_share_of_nothing_nothing_is_made(start: Any, config: dict[str, Any], backend: Any) -> None:
    config["service"]["telemetry"]["traces"] = traced(
        backend.port, sampler={"parent_based": {"root": {"always_off": {}}}}
    )
    process = start(config)
    assert send(process.port(), traces=1, spans=1) is SpanExportResult.SUCCESS
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert backend.requests.empty()


def test_what_does_not_speak_http_costs_a_warning(start: Any, config: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=answer_nonsense, args=(listener,), daemon=True)
        answering.start()
        config["service"]["telemetry"]["traces"] = traced(listener.getsockname()[1], protocol="http/protobuf")
        process = start(config)
        assert send(process.port(), traces=1, spans=1) is SpanExportResult.SUCCESS
        process.line("own spans could not be sent to .*BadStatusLine")
        process.tell(signal.SIGTERM)
        assert process.end() == 0
        assert "Traceback" not in process.log


def answer_nonsense(listener: socket.socket) -> None:
    """Answer whoever comes with a line that is none of HTTP's, until the listener is closed."""
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"220 mail.example ESMTP\r\n\r\n")
