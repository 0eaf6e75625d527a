"""The manifests for agents and gateways on Kafka fit each other, what podtrail takes, and what stops and plans take."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.service import SHUTDOWN_SECONDS
from tests.docker.manifests import KUBERNETES, ROOT, documents

FOLDER = KUBERNETES / "kafka"
GIVEN = {
    "BROKERS": "kafka-1.example:9092,kafka-2.example:9092",
    "KAFKA_USERNAME": "podtrail",
    "KAFKA_PASSWORD": "secret",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://backend.example:4317",
    "NODE_NAME": "node-1",
    "POD_NAME": "podtrail-kafka-gateway-0",
}
"""What Secret, ConfigMap and the Pod itself say."""
CONFIGURED = {"agent.yaml": "DaemonSet", "gateway.yaml": "StatefulSet", "pods.yaml": "Deployment"}


def of(name: str, kind: str) -> dict[str, Any]:
    (found,) = (each for each in documents(FOLDER / name) if each["kind"] == kind)
    return found


def pod(name: str, kind: str) -> dict[str, Any]:
    spec: dict[str, Any] = of(name, kind)["spec"]["template"]["spec"]
    return spec


def configuration(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(of(name, "ConfigMap")["data"]["config.yaml"])
    return read


def topics() -> Mapping[str, int]:
    """The topics that the Job makes, and their partitions."""
    (container,) = pod("topics.yaml", "Job")["containers"]
    pairs = (argument.removesuffix(":compact").split("=") for argument in container["args"])
    return {name: int(partitions) for name, partitions in pairs}


@pytest.mark.parametrize("name", CONFIGURED)
def test_the_configuration_is_right_with_what_the_pod_is_given(name: str, tmp_path: Path) -> None:
    (container,) = pod(name, CONFIGURED[name])["containers"]
    text = of(name, "ConfigMap")["data"]["config.yaml"]
    done = validated(text, container["args"], tmp_path)
    assert done.exit_code == 0, done.stderr
    warnings = [line for line in done.stderr.splitlines() if line.startswith("warning")]
    assert [line for line in warnings if "the metrics page listens on every interface" not in line] == []
    told = {each["name"] for each in container.get("env", ())} | {"BROKERS", "KAFKA_USERNAME", "KAFKA_PASSWORD"}
    assert {variable for variable in GIVEN if f"${{env:{variable}}}" in text} <= told | {"OTEL_EXPORTER_OTLP_ENDPOINT"}


def validated(text: str, arguments: list[str], folder: Path) -> Any:
    """What `podtrail validate` says in a Pod, of files that lie in a folder of the test's."""
    (folder / "ca.crt").write_bytes((ROOT / "tests" / "data" / "tls" / "ca.pem").read_bytes())
    (folder / "config.yaml").write_text(text.replace("/etc/podtrail-kafka", str(folder)))
    run, *rest = (
        argument.replace("/etc/podtrail-agent/", "/etc/podtrail/").replace("/etc/podtrail/", f"{folder}/")
        for argument in arguments
    )
    assert run == "run"
    return CliRunner().invoke(main, ["validate", *rest], env=GIVEN)


def test_agents_write_what_gateways_read_in_topics_that_are_made() -> None:
    reader = configuration("gateway.yaml")["receivers"]["kafka"]
    assert set(topics()) == {*reader["traces"]["topics"], reader["checkpoints"]["topic"]}
    for name in ("agent.yaml", "pods.yaml"):
        writer = configuration(name)["exporters"]["kafka"]
        assert [writer["traces"]["topic"]] == reader["traces"]["topics"]
        assert writer["partition_by"] == "pod", "what concerns a Pod is to meet, whoever tells it"
        assert (writer["auth"], writer["tls"]) == (reader["auth"], reader["tls"])


def test_the_job_runs_the_script_of_the_example_with_what_the_secret_has() -> None:
    spec = pod("topics.yaml", "Job")
    (container,) = spec["containers"]
    python, script = container["command"]
    readme = (ROOT / "docker" / "README.md").read_text()
    assert python == "/opt/podtrail/bin/python"
    assert f"create configmap podtrail-topics --from-file=examples/kafka/{Path(script).name}" in readme
    assert (ROOT / "examples" / "kafka" / Path(script).name).is_file()
    assert [source["secretRef"]["name"] for source in container["envFrom"]] == ["podtrail-kafka"]


def test_each_gateway_keeps_its_name_and_its_partitions_over_a_restart() -> None:
    receiver = configuration("gateway.yaml")["receivers"]["kafka"]
    assert receiver["group_instance_id"] == "${env:POD_NAME}"
    spec = pod("gateway.yaml", "StatefulSet")
    (container,) = spec["containers"]
    assert {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}} in container["env"]
    assert float(receiver["session_timeout"].removesuffix("s")) > spec["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("name", CONFIGURED)
def test_a_stop_has_the_time_that_it_takes(name: str) -> None:
    assert pod(name, CONFIGURED[name])["terminationGracePeriodSeconds"] > SHUTDOWN_SECONDS


def test_the_budget_is_that_of_the_gateways_and_lets_a_node_be_drained() -> None:
    budget, gateways = of("gateway.yaml", "PodDisruptionBudget")["spec"], of("gateway.yaml", "StatefulSet")["spec"]
    assert budget["selector"] == gateways["selector"]
    assert 1 <= budget["maxUnavailable"] < gateways["replicas"]


def test_replicas_memory_and_partitions_are_those_of_the_plan_that_the_manifest_names() -> None:
    text = (FOLDER / "gateway.yaml").read_text()
    named = " ".join(line.strip(" #") for line in text.splitlines() if "podtrail capacity" in line)
    arguments = named.partition("podtrail capacity ")[2].partition(":")[0].split()
    done = CliRunner().invoke(main, ["capacity", *arguments, "-o", "json"])
    assert done.exit_code == 0, done.stderr
    planned = json.loads(done.stdout)["layouts"]["kafka"]
    gateways = planned["tiers"]["gateways"]
    spec = of("gateway.yaml", "StatefulSet")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["replicas"] == gateways["replicas"]
    assert min(topics().values()) >= planned["partitions"]
    requested = container["resources"]["requests"]["memory"]
    assert requested.endswith("Mi")
    assert int(requested.removesuffix("Mi")) * 2**20 >= gateways["memoryBytesEach"]


def test_the_patch_for_senders_has_podtrail_run_the_agents_configuration(tmp_path: Path) -> None:
    (patch,) = documents(FOLDER / "sender.patch.yaml")
    spec = patch["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    done = validated(of("agent.yaml", "ConfigMap")["data"]["config.yaml"], container["args"], tmp_path)
    assert done.exit_code == 0, done.stderr
    names = {volume["name"]: volume for volume in spec["volumes"]}
    assert names["agent"]["configMap"] == {"name": of("agent.yaml", "ConfigMap")["metadata"]["name"], "optional": True}
    assert names["kafka"]["secret"]["optional"]
    assert all(source["secretRef"]["optional"] for source in container["envFrom"])
