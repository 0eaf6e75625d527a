"""A running `podtrail` from outside: refusals, several pipelines, own metrics, health, logs."""

import json
import re
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from tests.service.toolbox import free_port, get, metrics, sampler, send, spans, until

PATIENCE = 120.0
COLLECTORS = {
    "otelcol_receiver_accepted_spans": '{receiver="otlp",transport="grpc"}',
    "otelcol_receiver_refused_spans": '{receiver="otlp",transport="grpc"}',
    "otelcol_processor_accepted_spans": '{processor="memory_limiter"}',
    "otelcol_processor_refused_spans": '{processor="memory_limiter"}',
    "otelcol_exporter_sent_spans": '{exporter="file"}',
    "otelcol_exporter_send_failed_spans": '{exporter="file"}',
    "otelcol_exporter_enqueue_failed_spans": '{exporter="file"}',
    "otelcol_exporter_queue_size": '{exporter="file"}',
    "otelcol_exporter_queue_capacity": '{exporter="file"}',
    "otelcol_process_uptime": "",
    "otelcol_process_cpu_seconds": "",
    "otelcol_process_memory_rss": "",
}
LIMITER = {"check_interval": "1s", "limit_mib": 4096}
TIGHT = {"check_interval": "1s", "limit_mib": 2, "spike_limit_mib": 1}


def with_metrics(config: dict[str, Any], port: int) -> dict[str, Any]:
    config["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{port}"}}
    return config


def test_what_was_refused_for_want_of_memory_the_sdk_sends_again(
    start: Any, configure: Any, otlp_to_file: dict[str, Any], kept: Any
) -> None:
    page = free_port()
    otlp_to_file["processors"]["memory_limiter"] = TIGHT
    otlp_to_file["service"]["pipelines"]["traces"]["processors"].insert(0, "memory_limiter")
    process = start(with_metrics(otlp_to_file, page))
    with ThreadPoolExecutor(1) as client:
        sending = client.submit(send, process.port(), traces=2, spans=3)
        process.line("refusing spans")
        told = metrics(page)
        assert told['otelcol_receiver_refused_spans{receiver="otlp",transport="grpc"}'] >= 6
        assert told['podtrail_ledger_spans{exporter="file",term="received"}'] == 0
        otlp_to_file["processors"]["memory_limiter"] = LIMITER
        configure(otlp_to_file)
        process.tell(signal.SIGHUP)
        assert sending.result() is SpanExportResult.SUCCESS
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert len(kept()) == 2


def test_over_http_a_refusal_is_a_503_that_says_when_to_come_again(start: Any, otlp_to_file: dict[str, Any]) -> None:
    otlp_to_file["receivers"]["otlp"]["protocols"] = {"http": {"endpoint": "127.0.0.1:0"}}
    otlp_to_file["processors"]["memory_limiter"] = TIGHT
    otlp_to_file["service"]["pipelines"]["traces"]["processors"].insert(0, "memory_limiter")
    process = start(otlp_to_file)
    url = f"http://127.0.0.1:{process.port('http')}/v1/traces"
    assert HttpExporter(url, timeout=1).export(spans(1)) is SpanExportResult.FAILURE
    body = encode_spans(spans(1)).SerializeToString()
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(url, body, {"Content-Type": "application/x-protobuf"}), timeout=120)
    with refused.value as answer:
        assert (answer.code, answer.headers["Retry-After"]) == (503, "1")


def test_pipelines_that_one_receiver_feeds_all_take_a_batch_or_none_does(
    start: Any,
    otlp_to_file: dict[str, Any],
) -> None:
    page = free_port()
    otlp_to_file["processors"]["memory_limiter"] = TIGHT
    otlp_to_file["exporters"]["file/other"] = {"path": "other.jsonl"}
    otlp_to_file["service"]["pipelines"]["traces/guarded"] = {
        "receivers": ["otlp"],
        "processors": ["memory_limiter"],
        "exporters": ["file/other"],
    }
    process = start(with_metrics(otlp_to_file, page))
    assert send(process.port(), timeout=0.5) is SpanExportResult.FAILURE
    told = metrics(page)
    assert told['podtrail_ledger_spans{exporter="file",term="received"}'] == 0
    assert told['podtrail_ledger_spans{exporter="file/other",term="received"}'] == 0


def test_a_batch_reaches_every_pipeline_that_its_receiver_feeds(
    start: Any, otlp_to_file: dict[str, Any], kept: Any, tmp_path: Path
) -> None:
    otlp_to_file["processors"]["tail_sampling/none"] = sampler("1h", 0)
    otlp_to_file["exporters"]["file/none"] = {"path": "none.jsonl", "decisions_path": "none-decisions.jsonl"}
    otlp_to_file["service"]["pipelines"]["traces/none"] = {
        "receivers": ["otlp"],
        "processors": ["tail_sampling/none"],
        "exporters": ["file/none"],
    }
    process = start(otlp_to_file)
    send(process.port(), traces=5, spans=2)
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert len(kept()) == 5
    assert (tmp_path / "none.jsonl").read_bytes() == b""
    assert process.line("stopped: file: 10 received = 10 delivered")
    assert process.line("stopped: file/none: 10 received = 10 sampled out")


def test_own_metrics_have_the_collectors_names_and_nothing_added(
    start: Any,
    otlp_to_file: dict[str, Any],
) -> None:
    page = free_port()
    otlp_to_file["processors"]["memory_limiter"] = LIMITER
    otlp_to_file["service"]["pipelines"]["traces"]["processors"] = ["memory_limiter"]
    process = start(with_metrics(otlp_to_file, page))
    assert send(process.port(), traces=4) is SpanExportResult.SUCCESS
    status, text = get(f"http://127.0.0.1:{page}/metrics")
    assert status == 200
    samples = {line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")}
    assert {name + labels for name, labels in COLLECTORS.items() if "refused" not in name} <= samples
    assert not re.search(r"^\w+_total[ {]", text, re.MULTILINE)
    assert "_created" not in text


def test_the_ledger_on_the_page_balances_at_every_moment(
    start: Any,
    otlp_to_file: dict[str, Any],
) -> None:
    page = free_port()
    otlp_to_file["processors"]["tail_sampling"] = sampler("1s", 50)
    process = start(with_metrics(otlp_to_file, page))
    port = process.port()

    def term(name: str) -> float:
        value: float = metrics(page)[f'podtrail_ledger_spans{{exporter="file",term="{name}"}}']
        return value

    for _ in range(5):
        send(port, traces=20, spans=3)
        assert term("missing") == 0
    assert term("received") == 300
    until(lambda: term("in_memory") == term("in_queue") == 0)
    assert term("delivered") + term("sampled_out") == 300
    assert 0 < term("delivered") < 300
    assert term("missing") == 0


def test_health_is_bad_before_the_pipelines_run_good_while_they_do_and_bad_while_they_stop(
    start: Any, otlp_to_file: dict[str, Any], backend: Any
) -> None:
    address = f"127.0.0.1:{free_port()}"
    otlp_to_file["extensions"] = {"health_check": {"endpoint": address}}
    otlp_to_file["service"]["extensions"] = ["health_check"]
    otlp_to_file["exporters"] = {"otlp_grpc": {"endpoint": f"http://127.0.0.1:{backend.port}"}}
    otlp_to_file["service"]["pipelines"]["traces"]["exporters"] = ["otlp_grpc"]
    backend.open.clear()
    process = start(otlp_to_file)
    seen: set[int] = set()

    def healthy() -> bool:
        status: int = get(f"http://{address}/")[0]
        seen.add(status)
        return status == 200

    until(healthy)
    assert seen <= {0, 503, 200}
    send(process.port())
    process.tell(signal.SIGTERM)
    process.line("SIGTERM: stopping")
    backend.requests.get(timeout=120)
    assert get(f"http://{address}/")[0] == 503
    backend.open.set()
    assert process.end() == 0
    assert get(f"http://{address}/")[0] == 0


def test_logs_are_json_when_standard_error_is_no_terminal(start: Any, otlp_to_file: dict[str, Any]) -> None:
    process = start(otlp_to_file).ready()
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    for line in process.lines:
        entry = json.loads(line)
        assert {"ts", "level", "msg"} <= entry.keys()
        assert entry["level"] == "info"


def test_logs_are_for_people_where_the_configuration_says_so(start: Any, otlp_to_file: dict[str, Any]) -> None:
    otlp_to_file["service"]["telemetry"]["logs"] = {"encoding": "console"}
    process = start(otlp_to_file)
    process.line(r"^\d\d:\d\d:\d\d\.\d{3} info +otlp: listening on")
    process.tell(signal.SIGTERM)
    assert process.end() == 0


@pytest.mark.parametrize("encoding", ["console", "json"])
def test_control_characters_from_outside_are_shown_not_obeyed(
    start: Any, otlp_to_file: dict[str, Any], tmp_path: Path, encoding: str
) -> None:
    (tmp_path / "\x1b[31m\x9b1m\u202ered\n.jsonl").write_text('{"resourceSpans": [\n')
    otlp_to_file["receivers"] = {"otlp_json_file": {"include": ["*red*"]}}
    otlp_to_file["service"]["pipelines"]["traces"]["receivers"] = ["otlp_json_file"]
    otlp_to_file["service"]["telemetry"]["logs"] = {"encoding": encoding}
    process = start(otlp_to_file, "--exit-when-done")
    assert process.end() == 0
    assert "damaged" in process.log
    assert not set("\x1b\x9b\u202e") & set(process.log)
    assert "red" in process.log
    assert process.log.count("\n") == len(process.lines) - 1


def test_a_span_name_that_would_paint_the_terminal_does_not(start: Any, otlp_to_file: dict[str, Any]) -> None:
    otlp_to_file["exporters"] = {"debug": {"verbosity": "detailed"}}
    otlp_to_file["processors"] = {}
    otlp_to_file["service"]["pipelines"]["traces"] |= {"processors": [], "exporters": ["debug"]}
    process = start(otlp_to_file)
    send(process.port(), name="\x1b]0;title\x07\u202epaint")
    process.tell(signal.SIGTERM)
    assert process.end() == 0
    assert "paint" in process.log
    assert not set("\x1b\x07\u202e") & set(process.log)


def test_a_port_is_free_again_as_soon_as_podtrail_has_ended(start: Any, otlp_to_file: dict[str, Any]) -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    otlp_to_file["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"] = endpoint
    for _ in range(2):
        process = start(otlp_to_file).ready()
        with grpc.insecure_channel(endpoint) as channel:
            grpc.channel_ready_future(channel).result(30)
            process.tell(signal.SIGTERM)
            assert process.end() == 0


@pytest.mark.parametrize("asked", ["health_check", "viewer", "metrics"])
def test_who_closes_its_half_of_a_connection_after_a_request_gets_its_answer(
    start: Any, otlp_to_file: dict[str, Any], asked: str
) -> None:
    ports = {"health_check": free_port(), "viewer": free_port(), "metrics": free_port()}
    otlp_to_file["extensions"] = {
        "health_check": {"endpoint": f"127.0.0.1:{ports['health_check']}"},
        "viewer": {"endpoint": f"127.0.0.1:{ports['viewer']}", "otlp_endpoint": "127.0.0.1:0"},
    }
    otlp_to_file["service"]["extensions"] = ["health_check", "viewer"]
    process = start(with_metrics(otlp_to_file, ports["metrics"])).ready()
    path = "/metrics" if asked == "metrics" else "/"
    with socket.create_connection(("127.0.0.1", ports[asked]), timeout=PATIENCE) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 2)
        connection.shutdown(socket.SHUT_WR)
        answers = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert answers.count(b"HTTP/1.1 200 OK\r\n") == 2
    process.tell(signal.SIGTERM)
    assert process.end() == 0
