"""What exporters' configuration accepts, refuses and takes from the environment."""

from typing import Any

import pytest
from pydantic import ValidationError

from podtrail.component.registry import find
from podtrail.config.types import SECOND
from podtrail.transport.client_settings import GrpcClientSettings, HttpClientSettings


def configured(type_name: str, **config: Any) -> Any:
    factory = find("exporter", type_name)
    assert factory is not None
    return factory.Config.model_validate(config)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


def test_otlp_exporters_have_the_collectors_defaults() -> None:
    grpc, http = configured("otlp", endpoint="a:1"), configured("otlphttp", endpoint="http://a:1")
    assert isinstance(grpc, GrpcClientSettings)
    assert isinstance(http, HttpClientSettings)
    assert (grpc.timeout, http.timeout) == (5 * SECOND, 30 * SECOND)
    assert grpc.compression == http.compression == "gzip"
    for settings in (grpc, http):
        assert settings.sending_queue.queue_size == 1000
        assert settings.retry_on_failure.max_elapsed_time == 300 * SECOND


@pytest.mark.parametrize(
    ("config", "plain"),
    [
        ({"endpoint": "http://localhost:4317"}, True),
        ({"endpoint": "https://localhost:4317", "tls": {"insecure": True}}, False),
        ({"endpoint": "localhost:4317"}, False),
        ({"endpoint": "localhost:4317", "tls": {"insecure": True}}, True),
        ({"endpoint": "unix:///run/collector.sock"}, True),
    ],
    ids=str,
)
def test_the_endpoint_and_insecure_say_whether_there_is_tls(config: dict[str, Any], plain: bool) -> None:
    assert configured("otlp_grpc", **config).plain is plain


@pytest.mark.parametrize(
    ("type_name", "config", "expected"),
    [
        ("otlp_grpc", {}, "endpoint"),
        ("otlp_grpc", {"endpoint": "a:1", "compression": "zstd"}, "zstd can't be sent over gRPC"),
        ("otlp_grpc", {"endpoint": "a:1", "tls": {"min_version": "1.3"}}, "min_version can't be 1.3"),
        ("otlp_grpc", {"endpoint": "a:1", "tls": {"insecure_skip_verify": True}}, "insecure_skip_verify can't be"),
        ("otlp_grpc", {"endpoint": "a:1", "tls": {"reload_interval": "1h"}}, "reload_interval is not offered"),
        ("otlp_grpc", {"endpoint": "http://a:1/v1/traces"}, "has a path, which gRPC does not use"),
        ("otlp_grpc", {"endpoint": "a:1", "traces_endpoint": "a:1"}, "Extra inputs are not permitted"),
        ("otlp_grpc", {"endpoint": "a:1", "headers": {"grpc-encoding": "x"}}, "can't be the name of a header in gRPC"),
        ("otlp_grpc", {"endpoint": "a:1", "headers": {"a b": "x"}}, "can't be the name of a header"),
        ("otlp_grpc", {"endpoint": "a:1", "headers": {"a": "x\ny"}}, "characters that no header can carry"),
        ("otlp_http", {}, "endpoint is missing"),
        (
            "otlp_http",
            {"endpoint": "b.example"},
            "lacks a scheme: write http://b.example:4318 or https://b.example:4318",
        ),
        ("otlp_http", {"endpoint": "b/otlp"}, "lacks a scheme: write http://b:4318/otlp or https://b:4318/otlp"),
        ("otlp_http", {"traces_endpoint": "b:1/x"}, "lacks a scheme: write http://b:1/x or https://b:1/x"),
        ("otlp_http", {"endpoint": "dns:///b:1"}, "is not a URL: write http://"),
        ("otlp_http", {"endpoint": "localhost:4318"}, "write http://localhost:4318 or https://localhost:4318"),
        ("otlp_http", {"endpoint": "http://a:1", "headers": {"content-type": "x"}}, "is set by the exporter itself"),
        ("file", {}, "path"),
        ("file", {"path": "a", "decisions_path": "a"}, "the same file"),
        ("file", {"path": "a", "compression": "lz4"}, "compression"),
        ("debug", {"verbosity": "loud"}, "verbosity"),
    ],
    ids=str,
)
def test_refuses_with_the_reason(type_name: str, config: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        configured(type_name, **config)


def test_takes_from_the_environment_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4317")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/etc/ca.pem")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s%20ecret, tenant=blue")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1500")
    config = configured("otlp_grpc", sending_queue={"queue_size": 7})
    assert config.endpoint == "http://all:4317"
    assert config.tls.ca_file == "/etc/ca.pem"
    assert {k: v.get_secret_value() for k, v in config.headers.items()} == {"api-key": "s ecret", "tenant": "blue"}
    assert config.compression == "none"
    assert config.timeout == 1.5 * SECOND
    assert "s ecret" not in repr(config)


def test_the_configuration_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://elsewhere:4317")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_INSECURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1500")
    config = configured("otlp_grpc", endpoint="here:4317", timeout="2s", tls={"insecure": False})
    assert (config.endpoint, config.timeout, config.plain) == ("here:4317", 2 * SECOND, False)


def test_a_variable_for_traces_goes_before_the_one_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_INSECURE", "false")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_INSECURE", "true")
    assert configured("otlp_http").url == "http://all:4318/v1/traces"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4318/in")
    assert configured("otlp_http").url == "http://traces:4318/in"
    assert configured("otlp_grpc", compression="none", endpoint="a:1").plain
    assert configured("otlp_http", endpoint="http://mine:1").url == "http://mine:1/v1/traces"


def test_the_endpoint_for_traces_is_good_for_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4317")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4317")
    assert configured("otlp_grpc").endpoint == "http://traces:4317"


@pytest.mark.parametrize(
    ("name", "value"), [("TIMEOUT", "5s"), ("INSECURE", "perhaps"), ("HEADERS", "nothing"), ("COMPRESSION", "lzma")]
)
def test_a_variable_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)
    with pytest.raises(ValidationError, match=f"OTEL_EXPORTER_OTLP_{name}|compression"):
        configured("otlp_http", endpoint="http://a:1")
