"""The configurations of agent and gateway, out of the manifests as they stand, on brokers with TLS and passwords."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docker.manifests import KUBERNETES, documents
from tests.kafka.cluster import PASSWORD, SASL_SSL, USER, Kafka
from tests.service.conftest import Backend, Process, backend, send

__all__ = ["backend", "send"]

pytestmark = pytest.mark.kafka
PODTRAIL = Path(sys.executable).parent / "podtrail"
ANYWHERE = ("extensions.health_check.endpoint", "service.telemetry.metrics.address")


@pytest.fixture
def run(secured_kafka: Kafka, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts what a manifest's container runs, with what Secret and Pod say."""
    assert secured_kafka.authority is not None
    authority = str(secured_kafka.authority.certificate)
    told = {"BROKERS": secured_kafka.bootstrap(SASL_SSL), "KAFKA_USERNAME": USER, "KAFKA_PASSWORD": PASSWORD}
    running: list[Process] = []

    def start(name: str, *settings: str, **variables: str) -> Process:
        (found,) = (each for each in documents(KUBERNETES / "kafka" / name) if each["kind"] == "ConfigMap")
        config = tmp_path / name
        config.write_text(found["data"]["config.yaml"].replace("/etc/podtrail-kafka/ca.crt", authority))
        sets = (f"--set={each}" for each in (*(f"{key}=127.0.0.1:0" for key in ANYWHERE), *settings))
        running.append(Process([str(PODTRAIL)], ["run", "--config", str(config), *sets], tmp_path, told | variables))
        return running[-1].ready()

    yield start
    for process in running:
        process.close()


def test_what_agents_are_given_comes_out_at_gateways(
    secured_kafka: Kafka, run: Callable[..., Process], backend: Backend, send: Callable[..., object]
) -> None:
    secured_kafka.topic("podtrail_spans", partitions=2)
    everything = 'processors.tail_sampling.policies=[{"name": "all", "type": "always_sample"}]'
    address = f"http://127.0.0.1:{backend.port}"
    run("gateway.yaml", everything, POD_NAME="podtrail-kafka-gateway-0", OTEL_EXPORTER_OTLP_ENDPOINT=address)
    agent = run("agent.yaml", "receivers.otlp.protocols.grpc.endpoint=127.0.0.1:0", NODE_NAME="node-1")

    send(agent.port(), 5)

    assert backend.spans(15) == 15
