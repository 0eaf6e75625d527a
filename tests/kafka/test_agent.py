"""`podtrail run` with the `kafka` exporter, from a recording of a real node into a real broker."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.free_ports import free_ports
from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import Kafka, Record
from tests.kafka.test_kafka_exporter import span_counts

pytestmark = pytest.mark.kafka

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "node" / "podtrail" / "spans.otlp.zst"
PODTRAIL = Path(sys.executable).parent / "podtrail"
SPANS = 16_036


def run(folder: Path, brokers: list[str], **exporter: Any) -> subprocess.CompletedProcess[str]:
    """Sends the whole recording; its metrics are not served."""
    config = {
        "receivers": {"otlp_json_file": {"include": [str(RECORDING)]}},
        # A message that is not acknowledged in time is sent again, and may be there twice.
        "exporters": {"kafka": {"brokers": brokers, "timeout": "120s", **exporter}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp_json_file"], "exporters": ["kafka"]}},
        },
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    command = [str(PODTRAIL), "run", "--exit-when-done", "--config", str(path)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=DEADLINE)


def partitions_by_key_and_trace(records: list[Record]) -> dict[bytes | int, set[int]]:
    """Return where the messages with each key, and the spans of each trace (a number), are."""
    found: dict[bytes | int, set[int]] = {}
    for record in records:
        found.setdefault(record.key or b"", set()).add(record.partition)
        for trace in span_counts([record]):
            found.setdefault(trace, set()).add(record.partition)
    return found


def test_every_span_of_a_node_arrives_and_each_trace_and_pod_in_one_partition(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=8)

    done = run(
        tmp_path,
        kafka.addresses(),
        traces={"topic": topic},
        partition_by="pod",
        producer={"required_acks": "all", "compression": "zstd"},
    )

    assert done.returncode == 0, done.stderr
    assert f"{SPANS:,}  = {SPANS:,} delivered" in done.stderr
    records = kafka.consume(topic)
    assert span_counts(records).total() == SPANS
    partitions = partitions_by_key_and_trace(records)
    assert all(len(of_one) == 1 for of_one in partitions.values())
    assert {partition for of_one in partitions.values() for partition in of_one} == set(range(8))


def test_without_brokers_it_says_so_once_and_what_is_lost_at_the_end(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    retry = {"initial_interval": "100ms", "max_interval": "100ms", "max_elapsed_time": "1s"}

    done = run(tmp_path, [f"127.0.0.1:{port}"], timeout="3s", retry_on_failure=retry)

    assert done.returncode != 0
    assert f"{SPANS:,} spans could not be delivered" in done.stderr
    told = re.findall(r"cannot deliver, trying again .*?: (topic otlp_spans acknowledged nothing[^\"]*)", done.stderr)
    assert all(f"127.0.0.1:{port}: Connect" in line for line in told)
    assert len(told) <= 1
    assert "rdkafka" not in done.stderr
