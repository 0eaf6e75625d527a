"""The second hop of docs/kafka.md: what senders could only key by trace comes to stand by its Pod."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from tests.kafka.cluster import Kafka
from tests.kafka.test_agent import SPANS, partitions_by_key_and_trace, run
from tests.kafka.test_kafka_exporter import span_counts
from tests.service.conftest import Process, start

__all__ = ["start"]

pytestmark = pytest.mark.kafka

PAGE = Path(__file__).parents[2] / "docs" / "kafka.md"


def test_what_was_keyed_by_trace_is_keyed_by_pod_behind_the_second_hop(
    kafka: Kafka, tmp_path: Path, start: Callable[..., Process]
) -> None:
    by_trace, by_pod = kafka.topic(partitions=4), kafka.topic(partitions=4)
    topic = {"traces": {"topic": by_trace}, "partition_by": "trace_id"}
    assert run(tmp_path, kafka.addresses(), **topic, producer={"required_acks": "all"}).returncode == 0

    start(_second_hop(kafka, by_trace, by_pod))
    kafka.wait_for(lambda: span_counts(kafka.consume(by_pod)).total() >= SPANS, "all spans by Pod")

    records = kafka.consume(by_pod)
    assert span_counts(records) == span_counts(kafka.consume(by_trace)), "each span of each trace once"
    partitions = partitions_by_key_and_trace(records)
    assert all(len(of_one) == 1 for of_one in partitions.values()), "neither a trace nor a Pod is parted"
    assert b"default/waits" in partitions


def _second_hop(kafka: Kafka, by_trace: str, by_pod: str) -> dict[str, object]:
    """Return the page's configuration, quicker than a user would have it."""
    (block,) = re.findall(r"### The second hop\n.*?```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    config: dict[str, object] = yaml.safe_load(block)
    told: list[tuple[str, Mapping[str, object]]] = [
        ("receivers", {"traces": {"topics": [by_trace]}, "checkpoints": {"topic": f"checkpoints-{by_trace}"}}),
        ("exporters", {"traces": {"topic": by_pod}, "timeout": "120s"}),
    ]
    for section, settings in told:
        config[section]["kafka"] |= {"brokers": kafka.addresses(), **settings}  # type: ignore[index]
    config["service"] |= {"telemetry": {"metrics": {"level": "none"}}}  # type: ignore[operator]
    return config
