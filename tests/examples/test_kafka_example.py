"""examples/kafka/ by its one command, on a real broker: agents, gateways and topics, and what the backend gets."""

import itertools
import os
import re
import subprocess
import sys
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from podtrail.cli import main
from podtrail.otlp import SpanView, split
from podtrail.otlp.values import resource_attributes
from podtrail.recording import Record, read_recording
from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import PASSWORD, SASL_SSL, USER, Kafka

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "kafka"
NODE = ROOT / "tests" / "data" / "recordings" / "node" / "podtrail" / "spans.otlp.zst"


OF_A_BUSY_MACHINE = re.compile(
    r"lets nobody in|no answer from|no broker answers|takes? long|no checkpoint could be written within"
)
"""Warnings that say that something takes long."""


class Told(NamedTuple):
    """An attempt to schedule a Pod, and by which agent it came."""

    span: SpanView
    node: str
    cluster: str

    @property
    def key(self) -> bytes:
        return self.span.trace_id + self.span.span_id

    def linked(self, kind: str) -> list[bytes]:
        return [link.trace_id for link in self.span.links if link.attributes.get("podtrail.link.type") == kind]


def spans(recording: Path) -> Iterator[Told]:
    for record in read_recording(recording):
        assert isinstance(record, Record), record
        for group in record.intake.groups:
            resource = resource_attributes(group.resource)
            for span in split(group.spans):
                node, cluster = (str(resource.get(f"k8s.{key}.name", "")) for key in ("node", "cluster"))
                yield Told(SpanView(span), node, cluster)


def stories(told: Sequence[Told]) -> Mapping[str, Sequence[Told]]:
    """Returns the attempts of each Pod, in their order."""
    found: dict[str, list[Told]] = defaultdict(list)
    for one in sorted(told, key=lambda one: one.span.start):
        if one.span.name == "SchedulePod":
            found[str(one.span.attributes["k8s.pod.name"])].append(one)
    return found


def run(kafka: Kafka, folder: Path, *arguments: str) -> str:
    command = [sys.executable, str(FOLDER / "run.py"), *arguments, str(folder)]
    variables = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**variables, "BROKERS": kafka.bootstrap()},
        capture_output=True,
        text=True,
        timeout=3 * DEADLINE,
        check=False,
    )
    logs = [f"{log.name}:\n{log.read_text()[-3000:]}" for log in sorted(folder.glob("*.log"))]
    assert done.returncode == 0, "\n".join([done.stdout, done.stderr, *logs])
    return done.stdout


def is_whole(kept: Path, sent: Path) -> Mapping[str, Sequence[Told]]:
    """Holds when whoever failed is there with each attempt once, numbered and linked; returns all stories."""
    came, went = list(spans(kept)), stories(list(spans(sent)))
    assert [id for id, count in Counter(one.key for one in came).items() if count > 1] == []
    found = stories(came)
    failed = {pod for pod, all_of_it in went.items() if any(_failed(one) for one in all_of_it)}
    assert failed
    assert {pod: [one.key for one in found[pod]] for pod in failed} == {
        pod: [one.key for one in went[pod]] for pod in failed
    }
    for attempts in found.values():
        assert [one.span.attributes["podtrail.attempt.number"] for one in attempts] == list(range(1, len(attempts) + 1))
        for before, after in itertools.pairwise(attempts):
            assert after.linked("previous-attempt") == [before.span.trace_id]
        assert {one.cluster for one in attempts} == {"production"}
    return found


def _failed(attempt: Told) -> bool:
    return attempt.span.attributes["scheduler.result"] != "Success"


def test_stories_that_came_by_several_agents_are_whole_though_a_gateway_restarts(kafka: Kafka, tmp_path: Path) -> None:
    said = run(kafka, tmp_path)

    found = is_whole(tmp_path / "kept.otlp", tmp_path / "all.otlp")
    nodes = {f"control-plane-{number}" for number in (1, 2, 3)}
    assert any({one.node for one in attempts} == nodes for attempts in found.values())
    assert "gateway-0 was stopped, and is started again" in said
    assert not [
        topic for topic in kafka.admin().list_topics(timeout=60).topics if topic.startswith("podtrail-example-")
    ]


def test_no_span_is_twice_though_a_gateway_is_killed_where_it_is_exactly_once(kafka: Kafka, tmp_path: Path) -> None:
    said = run(kafka, tmp_path, "--exactly-once")

    is_whole(tmp_path / "kept.otlp", tmp_path / "all.otlp")
    assert "gateway-0 was killed, and is started again" in said
    assert " spans got there, 0 of them twice" in said
    logs = "".join(log.read_text() for log in tmp_path.glob("gateway-*.log"))
    warnings = [line for line in logs.splitlines() if '"level": "warn' in line]
    assert [line for line in warnings if not OF_A_BUSY_MACHINE.search(line)] == []


def test_a_pods_story_on_a_real_node_is_told_from_its_refusal_to_its_container(kafka: Kafka, tmp_path: Path) -> None:
    run(kafka, tmp_path, "--recording", str(NODE))

    is_whole(tmp_path / "kept.otlp", NODE)
    why = CliRunner().invoke(main, ["why", "pod", "waits", "--from", str(tmp_path / "kept.otlp")])
    assert why.exit_code == 0, why.stderr
    moments = ("attempt 1: Unschedulable", "attempt 2: bound, node-1", "kubelet of node-1", "container main started")
    at = [why.stdout.index(moment) for moment in moments]
    assert at == sorted(at), why.stdout


def topics(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(FOLDER / "topics.py"), *arguments]
    return subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=DEADLINE, check=False
    )


def test_topics_are_made_once_and_one_with_other_partitions_is_left_and_told(kafka: Kafka) -> None:
    spans, state = (f"{kind}-{uuid.uuid4().hex[:8]}" for kind in ("spans", "state"))
    brokers = {"BROKERS": kafka.bootstrap()}
    made = topics(f"{spans}=3", f"{state}=2:compact", **brokers)
    assert made.returncode == 0, made.stderr
    kafka.wait_for(lambda: kafka.ends(spans) == {0: 0, 1: 0, 2: 0}, "three partitions")
    resource = ConfigResource(ResourceType.TOPIC, state)
    admin = kafka.admin()
    (config,) = (each.result(DEADLINE) for each in admin.describe_configs([resource]).values())
    assert config["cleanup.policy"].value == "compact"
    resource = ConfigResource(ResourceType.TOPIC, spans)
    (config,) = (each.result(DEADLINE) for each in admin.describe_configs([resource]).values())
    assert config["message.timestamp.type"].value == "LogAppendTime"

    again = topics(f"{spans}=4", f"{state}=2:compact", **brokers)
    assert again.returncode == 1
    assert f"{state}: is there, 2 partitions" in again.stdout
    assert f"{spans} has 3 partitions, not 4: leave it so, or" in again.stderr


def test_topics_are_made_by_a_user_with_a_password_over_tls(secured_kafka: Kafka) -> None:
    name = f"spans-{uuid.uuid4().hex[:8]}"
    assert secured_kafka.authority is not None
    told = {
        "BROKERS": secured_kafka.bootstrap(SASL_SSL),
        "KAFKA_USERNAME": USER,
        "KAFKA_CA": str(secured_kafka.authority.certificate),
    }
    made = topics(f"{name}=2", **told, KAFKA_PASSWORD=PASSWORD)
    assert made.returncode == 0, made.stderr
    secured_kafka.wait_for(lambda: len(secured_kafka.ends(name)) == 2, "both partitions")


def test_a_topic_without_a_number_of_partitions_is_an_error_that_says_how() -> None:
    done = topics("podtrail_spans")
    assert done.returncode == 1
    assert "python examples/kafka/topics.py podtrail_spans=24" in done.stderr


def test_a_broker_is_there_for_as_long_as_a_command_runs(kafka_assets: Path) -> None:
    script = "import sys, os; print(os.environ['BROKERS']); sys.exit(7)"
    command = [sys.executable, "-m", "tests.kafka", sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 7, done.stderr
    assert f"BROKERS={done.stdout.strip()}" in done.stderr
