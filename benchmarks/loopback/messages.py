"""A load as messages of Kafka, one for each trace of each batch, and who writes them into a topic, and reads them."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.loopback.stations import Topic
from benchmarks.loopback.wire import read_requests, write_requests
from podtrail.otlp import Group, read_request, write_request

BATCHED = 8
"""Requests of 512 spans that are put together: half of what `batch` waits for."""
_SECONDS, _NO_MORE = 120, 5
_QUEUED = 100_000
_KEY = 16
_TURN = 0.002
"""Seconds between two looks at what is due."""
_PRODUCER = {"compression.type": "zstd", "linger.ms": 10, "acks": "1", "log_level": 0}


def write_messages(path: Path, requests: Sequence[bytes], together: int = BATCHED) -> int:
    """Write requests as messages, so many of them put together as by a batch processor; return how many they are.

    A message is the trace's id, then its spans.
    """
    batches = (b"".join(requests[at : at + together]) for at in range(0, len(requests), together))
    messages = [message for batch in batches for message in _messages(batch)]
    write_requests(path, messages)
    return len(messages)


def _messages(batch: bytes) -> Iterator[bytes]:
    traces: defaultdict[bytes, list[Group]] = defaultdict(list)
    for group in read_request(batch).groups:
        traces[group.trace_id].append(group)
    for trace_id, groups in traces.items():
        yield trace_id + write_request(groups)


def produce_all(path: Path, topic: Topic, told: Connection) -> None:
    """Write a file's messages as they are taken; say "ready", wait for a word, tell the seconds it took or an error."""
    messages = _keyed(path)
    writer = _Writer(topic)
    told.send("ready")
    told.recv()
    began = time.monotonic()
    for number, (key, value) in enumerate(messages):
        writer.write(key, value)
        if number % 64 == 0:
            writer.settle()
    told.send(writer.finish() or time.monotonic() - began)


def produce_at(path: Path, topic: Topic, rate: float, told: Connection) -> None:
    """Write a file's messages, `rate` a second; say "ready", wait for a word, tell when each was, or an error."""
    messages = _keyed(path)
    writer = _Writer(topic)
    told.send("ready")
    told.recv()
    began = time.monotonic()
    times: list[float] = []
    while len(times) < len(messages):
        now = time.monotonic()
        due = messages[len(times) : int((now - began) * rate) + 1]
        for key, value in due:
            writer.write(key, value)
        times += [now] * len(due)
        writer.settle()
        time.sleep(_TURN)
    told.send(writer.finish() or times)


def _keyed(path: Path) -> list[tuple[bytes, bytes]]:
    return [(message[:_KEY].hex().encode(), message[_KEY:]) for message in read_requests(path)]


class _Writer:
    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._errors: list[str] = []
        self._producer = Producer({"bootstrap.servers": topic.brokers, **_PRODUCER})

    def write(self, key: bytes, value: bytes) -> None:
        while len(self._producer) >= _QUEUED:
            self._producer.poll(0.01)
        self._producer.produce(self._topic.name, value, key, on_delivery=self._ended)

    def settle(self) -> None:
        self._producer.poll(0)

    def finish(self) -> str:
        """Return what went wrong, once all is written."""
        left = self._producer.flush(_SECONDS)
        return self._errors[0] if self._errors else f"{left} messages found no broker" if left else ""

    def _ended(self, error: KafkaError | None, _: object) -> None:
        if error is not None:
            self._errors.append(str(error))


def first_spans(path: Path) -> list[bytes]:
    """Return the id of the first span of each message of a file."""
    found = []
    for message in read_requests(path):
        resource = ExportTraceServiceRequest.FromString(message[_KEY:]).resource_spans[0]
        found.append(resource.scope_spans[0].spans[0].span_id)
    return found


def spans_in(topic: Topic, expected: int) -> int:
    """Return how many spans there are in a topic, as soon as there are as many as expected or no more come."""
    consumer = Consumer(
        {
            "bootstrap.servers": topic.brokers,
            "group.id": "benchmark-count",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    partitions = consumer.list_topics(topic.name, timeout=_SECONDS).topics[topic.name].partitions
    consumer.assign([TopicPartition(topic.name, partition, 0) for partition in partitions])
    spans = 0
    try:
        while spans < expected and (messages := consumer.consume(1000, _NO_MORE)):
            values = [value for message in messages if message.error() is None and (value := message.value())]
            spans += sum(group.span_count for value in values for group in read_request(value).groups)
    finally:
        consumer.close()
    return spans
