"""`podtrail run` with a `kafka` receiver and a sampler: what one process leaves undecided the next one decides."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.free_ports import free_ports
from tests.kafka.cluster import Kafka
from tests.kafka.spans import message
from tests.service.conftest import Process, get, metrics, start

__all__ = ["get", "metrics", "start"]

pytestmark = pytest.mark.kafka


def sampling(kafka: Kafka, topic: str, path: Path, **receiver: Any) -> dict[str, Any]:
    """A pipeline from a topic to a file by way of a sampler that keeps everything after a second."""
    return {
        "receivers": {
            "kafka": {
                "brokers": kafka.addresses(),
                "traces": {"topics": [topic]},
                "group_id": f"group-{topic}",
                "initial_offset": "earliest",
                "heartbeat_interval": "500ms",
                "checkpoints": {"topic": f"checkpoints-{topic}"},
                **receiver,
            }
        },
        "processors": {
            "tail_sampling": {"decision_wait": "1s", "policies": [{"name": "all", "type": "always_sample"}]}
        },
        "exporters": {"file": {"path": str(path), "flush_interval": "10ms"}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["kafka"], "processors": ["tail_sampling"], "exporters": ["file"]}},
        },
    }


def test_what_one_process_leaves_undecided_the_next_one_decides(
    kafka: Kafka, tmp_path: Path, start: Callable[..., Process]
) -> None:
    topic = kafka.topic(partitions=2)
    kafka.produce(topic, [message("a"), message("b")], partition=0, time_ms=1_700_000_000_000)
    first = start(sampling(kafka, topic, tmp_path / "first.jsonl", idle_timeout="0s"))
    kafka.wait_for(lambda: _are_taken(kafka, topic, 2), "the records to be taken")
    assert _stopped(first) == 0

    second = start(sampling(kafka, topic, tmp_path / "second.jsonl", idle_timeout="1s"))
    kafka.wait_for(lambda: _names(tmp_path / "second.jsonl") == ["a", "b"], "both traces")
    assert _stopped(second) == 0

    assert _names(tmp_path / "first.jsonl") == []


def test_a_running_podtrail_shows_lag_undecided_records_and_repeated_decisions(
    kafka: Kafka,
    tmp_path: Path,
    start: Callable[..., Process],
    get: Callable[[str], tuple[int, str]],
    metrics: Callable[[int], dict[str, float]],
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a"), message("b")])
    (port,) = free_ports(1)
    config = sampling(kafka, topic, tmp_path / "kept.jsonl", idle_timeout="0s")
    config["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{port}"}}
    start(config)
    kafka.wait_for(lambda: _are_taken(kafka, topic, 2), "the records to be taken")

    labels = f'{{partition="0",receiver="kafka",topic="{topic}"}}'
    found = metrics(port)
    assert found[f"otelcol_kafka_receiver_offset_lag{labels}"] == 0
    assert found[f"otelcol_kafka_receiver_current_offset{labels}"] == 1
    assert found[f"podtrail_kafka_receiver_undecided_spans{labels}"] == 2
    assert found[f"podtrail_kafka_receiver_oldest_undecided_seconds{labels}"] > 0
    assert found['podtrail_partition_repeated_decisions_total{receiver="kafka"}'] == 0


def _stopped(process: Process) -> int:
    process.tell(signal.SIGTERM)
    return process.end()


def _are_taken(kafka: Kafka, topic: str, records: int) -> bool:
    """Say whether so many of the first partition were: its offset is committed before the first is there."""
    _, note = kafka.committed(f"group-{topic}", topic).get(0, (0, ""))
    return f'"left":[{records},' in note


def _names(path: Path) -> list[str]:
    requests = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return sorted(
        span["name"]
        for request in requests
        for resource in request["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    )
