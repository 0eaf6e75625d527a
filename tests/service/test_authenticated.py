"""`podtrail run` where somebody is asked who he is: two of them in a row, reloads, and the Go Collector as a client."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from tests.certificates import Authority
from tests.service.toolbox import free_port, send, spans, until

COLLECTOR = os.environ.get("BENCH_COLLECTOR", "")


def receiver(auth: str | None = "bearertokenauth", **settings: Any) -> dict[str, Any]:
    named = {} if auth is None else {"auth": {"authenticator": auth}}
    return {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"} | named | settings}}}


def gateway(extensions: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {
        "extensions": extensions,
        "receivers": receiver(**settings),
        "exporters": {"file": {"path": "kept.jsonl"}},
        "service": {
            "extensions": list(extensions),
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]}},
        },
    }


def shown(port: int, spans: Any, authorization: str) -> SpanExportResult:
    exporter = OTLPSpanExporter(f"127.0.0.1:{port}", insecure=True, headers={"authorization": authorization})
    try:
        return exporter.export(spans(1))
    finally:
        exporter.shutdown()


def test_an_agent_shows_its_token_to_a_gateway(start: Any, kept: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    tokens = {"bearertokenauth": {"filename": str(tmp_path / "token")}}
    port = start(gateway(tokens)).port()
    agent = gateway(tokens, auth=None)
    agent["exporters"] = {
        "otlp_grpc": {"endpoint": f"http://127.0.0.1:{port}", "auth": {"authenticator": "bearertokenauth"}}
    }
    agent["service"]["pipelines"]["traces"]["exporters"] = ["otlp_grpc"]
    sender = start(agent)
    assert send(sender.port(), traces=5) is SpanExportResult.SUCCESS
    until(lambda: len(kept()) == 5)
    sender.tell(signal.SIGTERM)
    assert sender.end() == 0
    assert "stopped: otlp_grpc: 15 received = 15 delivered" in sender.log
    assert "s3cret" not in sender.log


def test_a_reload_that_changes_an_authenticator_alone_changes_who_may_send(
    start: Any,
    configure: Any,
) -> None:
    port = free_port()
    settings = {"endpoint": f"127.0.0.1:{port}"}
    process = start(gateway({"bearertokenauth": {"token": "old"}}, **settings)).ready()
    assert shown(port, spans, "Bearer old") is SpanExportResult.SUCCESS
    configure(gateway({"bearertokenauth": {"token": "new"}}, **settings))
    process.tell(signal.SIGHUP)
    process.line("SIGHUP: reloaded")
    assert shown(port, spans, "Bearer new") is SpanExportResult.SUCCESS
    assert shown(port, spans, "Bearer old") is SpanExportResult.FAILURE
    configure(gateway({"bearertokenauth": {"filename": "/nowhere/token"}}, **settings))
    process.tell(signal.SIGHUP)
    process.line("SIGHUP: the old configuration runs on")
    assert shown(port, spans, "Bearer new") is SpanExportResult.SUCCESS


def test_that_whoever_reaches_it_may_send_is_warned_of_at_the_start(start: Any) -> None:
    process = start(gateway({}, auth=None, endpoint="0.0.0.0:0", allow_unauthenticated=True)).ready()
    text = (
        "allow_unauthenticated: whoever reaches 0.0.0.0:0 may send: neither certificate nor credentials are asked for"
    )
    assert text in process.log


def test_a_gateway_that_would_be_open_does_not_start(start: Any) -> None:
    process = start(gateway({}, auth=None, endpoint="0.0.0.0:0"))
    assert process.end() == 2
    assert "config.yaml:1:" in process.log
    assert "endpoint: 0.0.0.0:0 can be reached from other machines, and whoever reaches it may send" in process.log
    assert "say that it is meant so: allow_unauthenticated: true" in process.log


@pytest.mark.skipif(not COLLECTOR, reason="BENCH_COLLECTOR names no Go Collector")
@pytest.mark.parametrize("kind", ["otlp_grpc", "otlp_http"])
def test_the_go_collector_is_let_in_by_certificate_and_token_and_waits_when_it_is_told_to(
    start: Any, kept: Any, tmp_path: Path, kind: str
) -> None:
    authority = Authority(tmp_path)
    server, client = authority.server(), authority.issue("collector", "collector.example")
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    tls = {"cert_file": str(server.cert_file), "key_file": str(server.key_file)}
    checked = {"client_ca_file": str(tmp_path / "ca.pem"), "client_allowed_names": ["collector.example"]}
    config = gateway({"bearertokenauth": {"token": "s3cret"}})
    protocol = {"endpoint": "127.0.0.1:0", "tls": tls | checked, "auth": {"authenticator": "bearertokenauth"}}
    name = kind.removeprefix("otlp_")
    config["receivers"]["otlp"] = {
        "protocols": {name: protocol},
        "client_limits": {"requests_per_second": 2, "burst": "1s"},
    }
    port = start(config).port(name)
    listen = free_port()
    sender = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{listen}"}}}},
        "exporters": {
            kind: {
                "endpoint": f"https://localhost:{port}" if kind == "otlp_http" else f"localhost:{port}",
                "headers": {"authorization": "Bearer s3cret"},
                "tls": {
                    "ca_file": str(tmp_path / "ca.pem"),
                    "cert_file": str(client.cert_file),
                    "key_file": str(client.key_file),
                },
                "sending_queue": {"num_consumers": 1},
            }
        },
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": [kind]}},
        },
    }
    path = tmp_path / "collector.yaml"
    path.write_text(json.dumps(sender))
    with subprocess.Popen([COLLECTOR, "--config", str(path)], stderr=subprocess.PIPE, text=True) as collector:
        try:
            assert collector.stderr is not None
            while "Everything is ready" not in (line := collector.stderr.readline()):
                assert line, "it ended"
            for number in range(1, 6):
                assert send(listen, traces=1) is SpanExportResult.SUCCESS, number
            until(lambda: len(kept()) == 5)
        finally:
            collector.kill()
