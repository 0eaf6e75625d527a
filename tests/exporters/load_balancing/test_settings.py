"""What can be set, and what is said of what can't."""

import textwrap
from typing import Any

import pytest
from podtrail_exporters.load_balancing.config import Config, dialled

from podtrail.config import ConfigError, Document
from podtrail.pipeline.settings import Settings, read_settings

_AROUND = """
receivers: {otlp: {protocols: {grpc: {}}}}
service: {pipelines: {traces: {receivers: [otlp], exporters: [NAME]}}}
exporters:
  NAME:
"""


def read(text: str, name: str = "load_balancing") -> Settings:
    below = textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")
    return read_settings(Document.from_text(_AROUND.replace("NAME", name).lstrip("\n") + below + "\n", "pipeline.yaml"))


@pytest.mark.parametrize("name", ["load_balancing", "loadbalancing", "loadbalancing/gateways"])
def test_what_users_of_the_collector_paste_is_taken(name: str) -> None:
    settings = read(
        """
        routing_key: service
        timeout: 10s
        retry_on_failure: {enabled: true, max_elapsed_time: 1m}
        sending_queue: {enabled: true, num_consumers: 2, queue_size: 1000}
        protocol:
          otlp:
            timeout: 1s
            tls: {insecure: true}
            retry_on_failure: {enabled: false}
            sending_queue: {enabled: true, num_consumers: 4}
        resolver:
          static:
            hostnames: [backend-1:4317, backend-2:4317, backend-3, "[fd00::1]"]
        """,
        name,
    )
    assert settings.warnings == ()
    config = settings.exporters[name].config
    assert isinstance(config, Config)
    assert config.protocol.otlp.timeout == 10**9


def test_has_the_collectors_defaults() -> None:
    config = Config.model_validate({"resolver": {"dns": {"hostname": "gateways"}}})
    assert config.routing_key == "traceID"
    dns = config.resolver.dns
    assert dns is not None
    assert (dns.port, dns.interval, dns.timeout) == ("", 5 * 10**9, 10**9)
    config = Config.model_validate({"resolver": {"k8s": {"service": "lb-svc.kube-public"}}})
    k8s = config.resolver.k8s
    assert k8s is not None
    assert (k8s.name_and_namespace, k8s.ports, k8s.timeout) == (("lb-svc", "kube-public"), (), 60 * 10**9)
    assert not k8s.return_hostnames
    assert config.protocol.otlp.timeout == 5 * 10**9


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("gateway", ("gateway", "")),
        ("gateway.observability", ("gateway", "observability")),
        ("gateway.observability.svc.cluster.local", ("gateway", "observability")),
    ],
)
def test_a_service_is_named_with_or_without_its_namespace(service: str, expected: tuple[str, str]) -> None:
    config = Config.model_validate({"resolver": {"k8s": {"service": service}}})
    assert config.resolver.k8s is not None
    assert config.resolver.k8s.name_and_namespace == expected


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("backend-1", "backend-1:4317"),
        ("10.0.0.1", "10.0.0.1:4317"),
        ("10.0.0.1:5317", "10.0.0.1:5317"),
        ("[fd00::1]", "[fd00::1]:4317"),
        ("fd00::1", "[fd00::1]:4317"),
        ("[fd00::1]:5317", "[fd00::1]:5317"),
        ("https://backend:4317", "https://backend:4317"),
    ],
)
def test_a_backend_without_a_port_has_that_of_otlp(backend: str, expected: str) -> None:
    assert dialled(backend) == expected


STATIC = "resolver: {static: {hostnames: [a:4317]}}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("routing_key: traceID", "resolver: is required"),
        ("resolver: {}", "names no resolver: write one of static, dns and k8s"),
        (
            "resolver: {static: {hostnames: [a:4317]}, dns: {hostname: b}}",
            "names dns and static: write one of static, dns and k8s",
        ),
        ("resolver: {static: {hostnames: []}}", "hostnames"),
        ("resolver: {static: {hostnames: ['a b:4317']}}", "'a b:4317' has no valid host"),
        ("resolver: {static: {hostnames: ['a:70000']}}", "'a:70000' has no port from 0 to 65535"),
        ("resolver: {dns: {hostname: 'a:4317'}}", "'a:4317' is no name to look up: write the name alone"),
        ("resolver: {dns: {hostname: a, port: http}}", "'localhost:http' has no port"),
        ("resolver: {k8s: {service: a/b}}", "'a/b' is no Service: write name.namespace"),
        ("resolver: {k8s: {service: a.b, ports: [0]}}", "0 is no port: write one from 1 to 65535"),
        ("resolver: {aws_cloud_map: {namespace: x}}", "use dns: Cloud Map answers DNS queries"),
        (STATIC + "routing_key: metric", "routing_key"),
        (STATIC + "routing_key: attributes", "routing_key: attributes needs routing_attributes, the names"),
        (STATIC + "routing_attributes: [a]", "routing_attributes: are for routing_key: attributes only"),
        (STATIC + "protocol: {otlp: {endpoint: 'a:4317'}}", "remove it: the resolver says where the backends are"),
        (
            STATIC + "protocol: {otlp: {sending_queue: {storage: file_storage}}}",
            "set it in the exporter's own sending_queue, beside protocol",
        ),
        (STATIC + "protocol: {otlp: {compression: zstd}}", "zstd can't be sent over gRPC"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_with_its_place(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(text)
    (problem,) = error.value.problems
    said = str(problem)
    assert expected in said
    assert said.startswith("pipeline.yaml:")
    assert "exporters::load_balancing" in said


def test_what_has_no_effect_is_warned_of() -> None:
    settings = read(
        """
        protocol: {otlp: {sending_queue: {queue_size: 10, num_consumers: 2}}}
        resolver: {static: {hostnames: [a, b, a]}}
        """
    )
    said = [str(warning) for warning in settings.warnings]
    assert any("queue_size" in text and "what waits for a backend waits in the exporter's own" in text for text in said)
    assert any("'a' stands here twice, which changes nothing" in text for text in said)
    assert len(said) == 2


def test_the_environments_endpoint_is_no_backend(monkeypatch: Any) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://elsewhere:4317")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "tenant=blue")
    config = Config.model_validate({"resolver": {"static": {"hostnames": ["a"]}}})
    assert config.protocol.otlp.headers["tenant"].get_secret_value() == "blue"
