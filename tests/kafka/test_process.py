"""`podtrail run` from topic to topic: a stop, a kill, a reload, a topic that is not there, and its metrics."""

import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.free_ports import free_ports
from tests.kafka.cluster import Kafka
from tests.kafka.spans import message
from tests.service.conftest import Process, configure, get, metrics, start

__all__ = ["configure", "get", "metrics", "start"]

pytestmark = pytest.mark.kafka


LONG_AGO = 1_700_000_000_000
"""Unix milliseconds."""


def copying(
    kafka: Kafka,
    topic: str,
    kept: str,
    wait: str = "500ms",
    *,
    idle: str = "500ms",
    exactly_once: bool = True,
    **producer: Any,
) -> dict[str, Any]:
    """A pipeline from topic to topic by way of a sampler that keeps everything."""
    receiver = {
        "brokers": kafka.addresses(),
        "traces": {"topics": [topic]},
        "group_id": f"group-{topic}",
        "initial_offset": "earliest",
        "heartbeat_interval": "500ms",
        "idle_timeout": idle,
        "checkpoints": {"topic": f"checkpoints-{topic}"},
        "autocommit": {"interval": "200ms"},
        "exactly_once": exactly_once,
    }
    exporter = {
        "brokers": kafka.addresses(),
        "traces": {"topic": kept},
        "producer": {"linger": "1ms", **producer},
        "timeout": "60s",
    }
    return {
        "receivers": {"kafka": receiver},
        "processors": {
            "tail_sampling": {"decision_wait": wait, "policies": [{"name": "all", "type": "always_sample"}]}
        },
        "exporters": {"kafka": exporter},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["kafka"], "processors": ["tail_sampling"], "exporters": ["kafka"]}},
        },
    }


def names(kafka: Kafka, topic: str, *, uncommitted: bool = False) -> list[str]:
    requests = [
        ExportTraceServiceRequest.FromString(record.value or b"")
        for record in kafka.consume(topic, uncommitted=uncommitted)
    ]
    return sorted(
        span.name
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    )


def are_taken(kafka: Kafka, topic: str, *counts: int) -> bool:
    """Whether so many records of each partition were: its commit says so before the first of them is there."""
    commits = kafka.committed(f"group-{topic}", topic)
    return all(f'"left":[{count},' in commits.get(number, (0, ""))[1] for number, count in enumerate(counts))


@pytest.mark.parametrize("exactly_once", [False, True])
def test_what_a_stop_leaves_undecided_is_there_once_after_the_next_start(
    kafka: Kafka, start: Callable[..., Process], exactly_once: bool
) -> None:
    topic, kept = kafka.topic(partitions=2), kafka.topic()
    kafka.produce(topic, [message("a")], partition=0, time_ms=LONG_AGO)
    kafka.produce(topic, [message("b")], partition=0, time_ms=LONG_AGO + 10_000)
    kafka.produce(topic, [message("c")], partition=1, time_ms=LONG_AGO)
    first = start(copying(kafka, topic, kept, idle="0s", exactly_once=exactly_once))
    kafka.wait_for(lambda: names(kafka, kept) and are_taken(kafka, topic, 2, 1), "all of it taken")
    first.tell(signal.SIGTERM)
    assert first.end() == 0
    assert names(kafka, kept) == ["a"]

    start(copying(kafka, topic, kept, exactly_once=exactly_once))
    kafka.wait_for(lambda: len(names(kafka, kept)) >= 3, "what was undecided")

    assert names(kafka, kept) == ["a", "b", "c"]


def test_metrics_show_lag_undecided_records_and_repeated_decisions(
    kafka: Kafka, start: Callable[..., Process], metrics: Callable[[int], dict[str, float]]
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [message("a"), message("b")])
    (port,) = free_ports(1)
    config = copying(kafka, topic, kafka.topic(), idle="0s", exactly_once=False)
    config["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{port}"}}
    start(config)
    kafka.wait_for(lambda: are_taken(kafka, topic, 2), "the records to be taken")

    labels = f'{{partition="0",receiver="kafka",topic="{topic}"}}'
    found = metrics(port)
    assert found[f"otelcol_kafka_receiver_offset_lag{labels}"] == 0
    assert found[f"otelcol_kafka_receiver_current_offset{labels}"] == 1
    assert found[f"podtrail_kafka_receiver_undecided_spans{labels}"] == 2
    assert found[f"podtrail_kafka_receiver_oldest_undecided_seconds{labels}"] > 0
    assert found['podtrail_partition_repeated_decisions_total{receiver="kafka"}'] == 0


def test_a_reload_in_the_middle_of_a_transaction_neither_loses_nor_repeats(
    kafka: Kafka, start: Callable[..., Process], configure: Callable[[Mapping[str, Any]], None]
) -> None:
    topic, kept = kafka.topic(partitions=2), kafka.topic()
    process = start(copying(kafka, topic, kept)).ready()
    written: list[str] = []
    for number, (wait, compression) in enumerate(
        [("300ms", "none"), ("300ms", "gzip"), ("600ms", "gzip"), ("300ms", "none")]
    ):
        for _ in range(20):
            written.append(f"{len(written):03}")
            kafka.produce(topic, [message(written[-1])], partition=len(written) % 2)
        heard = len(process.lines)
        configure(copying(kafka, topic, kept, wait, compression=compression))
        process.tell(signal.SIGHUP)
        if number:
            process.line("reload", after=heard)
    kafka.wait_for(lambda: len(names(kafka, kept)) >= len(written), "all of it")
    process.tell(signal.SIGTERM)
    assert process.end() == 0

    assert names(kafka, kept) == written


def test_a_killed_gateway_has_a_successor_with_other_policies_that_repeats_nothing(
    kafka: Kafka, start: Callable[..., Process]
) -> None:
    topic, kept = kafka.topic(partitions=4), kafka.topic()
    written = [f"{number:03}" for number in range(40)]
    for number, name in enumerate(written):
        kafka.produce(topic, [message(name)], partition=number % 4)
    first = start(copying(kafka, topic, kept, "300ms"))
    kafka.wait_for(lambda: names(kafka, kept), "the first spans")
    first.tell(signal.SIGKILL)
    first.end()

    other = copying(kafka, topic, kept, "600ms")
    other["processors"]["tail_sampling"]["policies"][0]["name"] = "other"
    second = start(other)
    for partition in range(4):
        kafka.produce(topic, [message(f"last-{partition}")], partition=partition)
    kafka.wait_for(lambda: sum(name.startswith("last-") for name in names(kafka, kept)) == 4, "what came last")
    second.tell(signal.SIGTERM)
    assert second.end() == 0

    assert names(kafka, kept) == [*written, *(f"last-{partition}" for partition in range(4))]


def test_a_topic_that_is_not_there_is_told_and_what_was_for_it_is_there_once_when_it_is(
    kafka: Kafka, start: Callable[..., Process], tmp_path: Path
) -> None:
    topic, kept = kafka.topic(), f"{kafka.topic()}-later"
    kafka.produce(topic, [message("a")])
    process = start(copying(kafka, topic, kept, allow_auto_topic_creation=False))
    process.line(f"there is no topic {kept}")
    assert kafka.committed(f"group-{topic}", topic).get(0, (0, ""))[0] == 0

    kafka.topic(kept)
    kafka.wait_for(lambda: names(kafka, kept), "the span")
    process.tell(signal.SIGTERM)
    assert process.end() == 0

    assert names(kafka, kept) == ["a"]
    assert process.log.count(f"there is no topic {kept}") <= 3, process.log
