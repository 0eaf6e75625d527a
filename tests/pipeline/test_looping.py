"""A pipeline that would send to itself is refused before it starts."""

from typing import Any

import pytest

from podtrail.config import ConfigError, Document
from podtrail.pipeline.settings import read_settings


def problems(listening: str, sending: str, exporter: str = "otlp_grpc", **telling: Any) -> list[str]:
    """Return what is wrong with a pipeline that listens at `listening` over gRPC and sends to `sending`."""
    pipeline = {"receivers": ["otlp"], "exporters": [exporter]}
    config = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": listening, "allow_unauthenticated": True}}}},
        "exporters": {exporter: {"endpoint": sending, **telling}},
        "service": {"pipelines": {"traces": pipeline}},
    }
    try:
        read_settings(Document.from_mapping(config))
    except ConfigError as error:
        return [problem.headline for problem in error.problems]
    return []


@pytest.mark.parametrize("sending", ["http://localhost:4317", "127.0.0.1:4317", "dns:///[::1]:4317", "LOCALHOST:4317"])
@pytest.mark.parametrize("listening", ["localhost:4317", "0.0.0.0:4317", ":4317", "[::]:4317", "127.0.0.1:4317"])
def test_an_exporter_that_reaches_its_own_receiver_is_refused(listening: str, sending: str) -> None:
    (problem,) = problems(listening, sending)
    assert "exporters::otlp_grpc::endpoint: would send back to podtrail: receiver 'otlp'" in problem
    assert listening in problem


def test_the_same_name_is_the_same_address() -> None:
    assert problems("collector.example:4317", "https://Collector.Example:4317")


@pytest.mark.parametrize(
    ("listening", "sending"),
    [
        ("localhost:4317", "localhost:15317"),
        ("localhost:4317", "backend.example:4317"),
        ("0.0.0.0:4317", "backend.example:4317"),
        ("10.0.0.7:4317", "localhost:4317"),
        ("localhost:4317", "unix:///run/backend.sock"),
        ("localhost:0", "unix:///run/backend.sock"),
    ],
)
def test_another_address_is_another_process(listening: str, sending: str) -> None:
    assert problems(listening, sending) == []


def test_over_http_the_traces_endpoint_is_what_counts() -> None:
    own, other = "http://localhost:4317", "http://backend.example:4318/v1/traces"
    assert "otlp_http::endpoint" in problems(":4317", own, "otlp_http")[0]
    assert problems(":4317", own, "otlp_http", traces_endpoint=other) == []
    assert "otlp_http::traces_endpoint" in problems(":4317", other, "otlp_http", traces_endpoint=f"{own}/v1/traces")[0]


CHAINED = """\
receivers:
  otlp: {protocols: {grpc: {endpoint: localhost:4317}}}
  otlp/inner: {protocols: {grpc: {endpoint: localhost:5317}}}
exporters:
  otlp_grpc: {endpoint: "http://localhost:PORT"}
  debug:
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp_grpc]}
    traces/inner: {receivers: [otlp/inner], exporters: [debug]}
"""


def test_one_pipeline_may_send_to_another() -> None:
    assert read_settings(Document.from_text(CHAINED.replace("PORT", "5317"))).pipelines


def test_both_places_are_named() -> None:
    with pytest.raises(ConfigError, match=r"c.yaml:5:25: exporters.*localhost:4317 \(c.yaml:2:39\)"):
        read_settings(Document.from_text(CHAINED.replace("PORT", "4317"), "c.yaml"))
