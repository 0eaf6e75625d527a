"""Ports of a configuration, moved together; what is sent to its page goes along."""

import socket
from pathlib import Path

import pytest

from podtrail.cli.ports import advice, in_use, listeners, moved
from podtrail.config import ConfigError, Document
from podtrail.pipeline.settings import Settings, read_settings

ROOT = Path(__file__).parents[2]
CONFIG = """\
receivers: {otlp: {protocols: {grpc: {endpoint: "[::1]:4317"}, http: {}}}}
exporters: {otlp_grpc: {endpoint: "${env:PODTRAIL_NO_SUCH:-http://localhost:15317}"}, otlp_http: {endpoint: "http://b:4318"}}
extensions: {viewer: {}, health_check: {}}
service:
  extensions: [viewer, health_check]
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_grpc, otlp_http]}}
"""


def after(offset: int, *assignments: str) -> Settings:
    """Return the settings that `podtrail run --port-offset` has."""
    source = [f"yaml:{CONFIG}"]
    document = Document.load(source, assignments)
    more = moved(document, read_settings(document), offset)
    return read_settings(Document.load(source, (*assignments, *more)))


def where(settings: Settings) -> dict[str, str]:
    return {str(listener): listener.endpoint for listener in listeners(settings)}


def sent_to(settings: Settings) -> str:
    endpoint: str = settings.exporters["otlp_grpc"].config.endpoint
    return endpoint


def test_one_option_moves_all_ports_and_what_is_sent_to_them() -> None:
    settings = after(100)
    assert where(settings) == {
        "extensions::viewer::endpoint": "localhost:16027",
        "extensions::viewer::otlp_endpoint": "localhost:15417",
        "extensions::health_check::endpoint": "localhost:13233",
        "receivers::otlp::protocols::grpc::endpoint": "[::1]:4417",
        "receivers::otlp::protocols::http::endpoint": "localhost:4418",
        "service::telemetry::metrics": "localhost:8988",
    }
    assert sent_to(settings) == "http://localhost:15417"
    assert settings.exporters["otlp_http"].config.endpoint == "http://b:4318"


@pytest.mark.parametrize(
    "metrics",
    [
        "address=127.0.0.1:9000",
        "readers=[{pull: {exporter: {prometheus: {host: 127.0.0.1, port: 9000, without_units: true}}}}]",
    ],
)
def test_the_metrics_move_in_the_form_in_which_they_are_configured(metrics: str) -> None:
    moved_metrics = after(5, f"service::telemetry::metrics::{metrics}").service.telemetry.metrics
    assert moved_metrics.address == ("127.0.0.1", 9005)


@pytest.mark.parametrize("assignments", [(), ("extensions::viewer::endpoint=localhost:0",)])
def test_without_the_option_nothing_changes(assignments: tuple[str, ...]) -> None:
    document = Document.load([f"yaml:{CONFIG}"], assignments)
    assert moved(document, read_settings(document), 0) == []


@pytest.mark.parametrize("port", [0, 25317])
def test_the_embedded_exporter_sends_to_its_own_page_wherever_that_is(port: int) -> None:
    settings = after(0, f"extensions::viewer::otlp_endpoint=localhost:{port}")
    own = where(settings)["extensions::viewer::otlp_endpoint"].rpartition(":")[2]
    assert sent_to(settings) == f"http://localhost:{own}"
    assert own == str(port) if port else int(own) > 0


def test_an_endpoint_that_is_given_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODTRAIL_NO_SUCH", "http://localhost:15317")
    assert sent_to(after(0, "extensions::viewer::otlp_endpoint=localhost:25317")) == "http://localhost:15317"


def test_a_port_beyond_the_highest_is_refused() -> None:
    with pytest.raises(ConfigError, match="--port-offset 60000: extensions::viewer::endpoint: would be 75927"):
        after(60_000)


def test_the_offset_that_is_proposed_has_free_ports() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        _check_the_offset(other.getsockname()[1])


def _check_the_offset(occupied: int) -> None:
    document = Document.load([f"yaml:{CONFIG}"], [f"extensions::health_check::endpoint=127.0.0.1:{occupied}"])
    settings = read_settings(document)
    said = f"extensions::health_check::endpoint: can't listen on 127.0.0.1:{occupied}: Address already in use"
    assert said in in_use(settings)
    offset = int(advice(settings).rpartition(" ")[2])
    again = read_settings(Document.load([f"yaml:{CONFIG}"], moved(document, settings, offset)))
    assert in_use(again) == []


def test_the_default_pipeline_can_run_twice_on_one_machine() -> None:
    document = Document.load([str(ROOT / "pipeline.yaml")])
    more = moved(document, read_settings(document), 100)
    assert 'exporters::otlp_grpc::endpoint="http://localhost:15417"' in more
