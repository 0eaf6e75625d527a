"""docs/security.md: its configurations, its error, and what an operator does by them."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from podtrail.cli import main
from podtrail.config import Document
from podtrail.pipeline.settings import read_settings
from tests.service.conftest import PODTRAIL, Process

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
REST: dict[str, Any] = {
    "receivers": {"otlp": {"protocols": {"grpc": None}}},
    "exporters": {"debug": None},
    "service": {"pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["debug"]}}},
}


@pytest.mark.parametrize("block", BLOCKS, ids=[f"block-{number}" for number in range(len(BLOCKS))])
def test_each_configuration_of_the_page_is_right(block: str) -> None:
    written = yaml.safe_load(block)
    variables = {"AGENT": "agent", "AGENT_PASSWORD": "pw"}
    for section, value in REST.items():
        written.setdefault(section, value)
    document = Document.from_text(yaml.safe_dump(written), "page.yaml", variables)
    assert read_settings(document).pipelines


def test_the_error_of_the_page_is_what_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = re.search(r"^```\n(gateway\.yaml.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert shown
    monkeypatch.chdir(tmp_path)
    Path("gateway.yaml").write_text(
        "receivers:\n  otlp:\n    protocols:\n      grpc:\n        endpoint: 0.0.0.0:4317\n"
        "exporters:\n  debug:\nservice:\n  pipelines:\n    traces: {receivers: [otlp], exporters: [debug]}\n"
    )
    done = CliRunner().invoke(main, ["validate", "--config", "gateway.yaml"])
    assert done.exit_code != 0
    assert shown[1].strip() in done.stderr


def configuration(folder: Path) -> Path:
    """The page's receiver with a token, on the loopback."""
    written = {
        "extensions": {"bearertokenauth": {"filename": str(folder / "token")}},
        "receivers": {
            "otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0", "auth": {"authenticator": "bearertokenauth"}}}}
        },
        "exporters": {"file": {"path": str(folder / "kept.jsonl")}},
        "service": {
            "extensions": ["bearertokenauth"],
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]}},
        },
    }
    path = folder / "gateway.yaml"
    path.write_text(json.dumps(written))
    return path


def send(port: int, token: str | None) -> SpanExportResult:
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    provider.get_tracer("test").start_span("SchedulePod").end()
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    exporter = OTLPSpanExporter(f"127.0.0.1:{port}", insecure=True, headers=headers)
    try:
        return exporter.export(memory.get_finished_spans())
    finally:
        exporter.shutdown()


def test_a_token_is_rotated_as_the_page_says_and_is_in_no_log(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old-s3cret\n")
    process = Process([str(PODTRAIL)], ["run", "--config", str(configuration(tmp_path))], tmp_path, {})
    try:
        port = process.port()
        assert send(port, "old-s3cret") is SpanExportResult.SUCCESS
        assert send(port, None) is SpanExportResult.FAILURE
        token.write_text("old-s3cret\nnew-s3cret\n")
        for _ in range(10_000):  # it is looked at once a second, when a request comes
            if send(port, "new-s3cret") is SpanExportResult.SUCCESS:
                break
        assert send(port, "old-s3cret") is SpanExportResult.SUCCESS
        process.tell(signal.SIGTERM)
        assert process.end() == 0
    finally:
        process.close()
    log = process.log
    assert "refused a request from 127.0.0.1:" in log
    assert "has changed and was read" in log
    assert "missing or empty authorization header: Authorization" in log
    assert "s3cret" not in log
    assert len((tmp_path / "kept.jsonl").read_text().splitlines()) >= 2


def test_tokens_and_passwords_are_in_no_output_of_commands_that_show_configurations(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        yaml.safe_dump(
            REST
            | {
                "extensions": {
                    "bearertokenauth": {"tokens": ["s3cret-1", "s3cret-2"]},
                    "basicauth": {"htpasswd": {"inline": "agent:s3cret-3"}},
                    "basicauth/client": {"client_auth": {"username": "a", "password": "s3cret-4", "unknown": 1}},
                }
            }
        )
    )
    for command in ("validate", "print-config"):
        done = CliRunner().invoke(main, [command, "--config", str(config)])
        assert "s3cret" not in done.output + done.stderr
    config.write_text(config.read_text().replace("unknown: 1", ""))
    done = CliRunner().invoke(main, ["print-config", "--config", str(config)])
    assert done.exit_code == 0
    assert "s3cret" not in done.output
