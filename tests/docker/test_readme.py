"""What docker/README.md shows works: the snippets are run as they stand there."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import grpc
import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from podtrail_instrumentation import TracingConfiguration, validate_tracing_configuration

from podtrail.config import Document
from podtrail.config.types import host_port
from podtrail.otlp import attempt_of, read_request
from podtrail.pipeline.settings import read_settings

DOCKER = Path(__file__).parents[2] / "docker"
TEXT = (DOCKER / "README.md").read_text(encoding="utf-8")
SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def block(having: str) -> Any:
    (found,) = (read for text in blocks("yaml") if having in (read := yaml.safe_load(text)))
    return found[having]


@pytest.fixture
def collector() -> Iterator[tuple[str, "Queue[bytes]"]]:
    """The address of an OTLP server, and what it takes."""
    taken: Queue[bytes] = Queue()

    def export(request: ExportTraceServiceRequest, _: grpc.ServicerContext) -> ExportTraceServiceResponse:
        taken.put(request.SerializeToString())
        return ExportTraceServiceResponse()

    handler = grpc.unary_unary_rpc_method_handler(
        export, ExportTraceServiceRequest.FromString, ExportTraceServiceResponse.SerializeToString
    )
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Export": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}", taken
    server.stop(None).wait()


def test_the_python_scheduler_sends_an_attempt_that_podtrail_reads(collector: tuple[str, "Queue[bytes]"]) -> None:
    address, taken = collector
    (code,) = blocks("python")
    exec(code.replace("localhost:4317", address), {})
    attempt = attempt_of(read_request(taken.get(timeout=600)).groups)
    assert attempt is not None
    assert (attempt.namespace, attempt.name, attempt.result) == ("default", "web-0", "Unschedulable")
    assert attempt.message == "0/3 nodes are available: 3 Insufficient cpu."


def test_the_tracing_section_is_valid_and_leaves_the_choice_to_podtrail() -> None:
    tracing = TracingConfiguration.model_validate(block("tracing"))
    assert validate_tracing_configuration(tracing) == []
    assert tracing.sampling_rate_per_million == 1_000_000


def test_the_ports_are_moved_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://backend.example:4317")
    run, config, *sets = block("args")
    assert (run, config) == ("run", "--config=/etc/podtrail/config.yaml")
    settings = read_settings(
        Document.load([str(DOCKER / "sidecar.yaml")], [assignment.removeprefix("--set=") for assignment in sets])
    )
    protocols = settings.receivers["otlp"].config.protocols
    extensions = [settings.extensions[id].config.endpoint for id in ("health_check", "viewer")]
    served = (protocols.grpc.endpoint, protocols.http.endpoint, *extensions)
    metrics = settings.service.telemetry.metrics.address
    assert metrics is not None
    agent = (DOCKER / "kubernetes" / "agent" / "agent.yaml").read_text(encoding="utf-8")  # on each node's network
    taken = {4317, 4318, 13133, 8888, 15927, *map(int, re.findall(r"127\.0\.0\.1:(\d+)", agent))}
    assert not taken & {metrics[1], *(host_port(endpoint)[1] for endpoint in served)}


def test_the_image_is_built_under_the_name_that_the_manifests_use() -> None:
    (built,) = re.findall(r"docker build .*-t (\S+)", TEXT)
    for manifest in (DOCKER / "kubernetes").glob("*.yaml"):
        assert f"image: {built}\n" in manifest.read_text(encoding="utf-8")


def test_every_link_leads_to_a_file() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert links
    for link in links:
        assert (DOCKER / link).exists(), link
