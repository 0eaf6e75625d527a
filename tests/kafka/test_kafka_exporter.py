"""The `kafka` exporter on real brokers: what arrives, in which partition, and what is said where it does not."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podtrail.component import Context, Ledger, Metrics, Permanent, Retryable
from podtrail.component.registry import find
from podtrail.config.types import DeliverySettings
from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header
from podtrail.pipeline.sending import SendingQueue
from podtrail.transport.kafka.transactions import Transactions
from tests.free_ports import free_ports
from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import PASSWORD, SASL_PLAINTEXT, SASL_SSL, SSL, USER, Kafka, Record

pytestmark = pytest.mark.kafka

AT = 1_790_000_000_000_000_000
LOG = logging.LoggerAdapter(logging.getLogger("podtrail.test"))


def batch_of(
    *traces: int, spans: int = 1, name: str = "SchedulePod", attributes: Mapping[str, Any] | None = None
) -> Batch:
    def group(trace: int) -> Group:
        raws = [
            encode_span(
                trace_id=trace.to_bytes(16, "big"),
                span_id=(at + 1).to_bytes(8, "big"),
                name=name,
                start=AT,
                end=AT,
                attributes=attributes or {},
            )
            for at in range(spans)
        ]
        resource = resource_header({"service.name": "kube-scheduler"})
        return Group(resource, scope_header("s"), trace.to_bytes(16, "big"), frame(raws), spans)

    return Batch([group(trace) for trace in traces], AT)


def make(brokers: list[str], metrics: Any = None, **config: Any) -> Any:
    factory = find("exporter", "kafka")
    assert factory is not None
    settings = factory.Config.model_validate({"brokers": brokers, **config})
    return factory.create(settings, Context(id="kafka", log=LOG, metrics=metrics or Metrics()))


@asynccontextmanager
async def queued(exporter: Any) -> AsyncIterator[tuple[SendingQueue, Ledger]]:
    """The exporter behind its queue, which repeats quickly."""
    settings = DeliverySettings.model_validate(
        {"retry_on_failure": {"initial_interval": "50ms", "max_interval": "200ms"}, "timeout": "60s"}
    )
    async with exporter, SendingQueue(exporter, "kafka", settings, Metrics(), LOG) as queue:
        yield queue, Ledger()


def span_counts(records: list[Record]) -> Counter[int]:
    """How often each trace's spans are there, by the trace's number."""
    found: Counter[int] = Counter()
    for record in records:
        for resource in ExportTraceServiceRequest.FromString(record.value or b"").resource_spans:
            for scope in resource.scope_spans:
                found.update(int.from_bytes(span.trace_id, "big") for span in scope.spans)
    return found


async def refusal(exporter: Any, worded: str) -> None:
    """Return when a try is refused in these words: on a busy machine the first may end before it is known why."""
    pattern, last = re.compile(worded), ""
    async with asyncio.timeout(DEADLINE):
        while not pattern.search(last):
            with pytest.raises(Retryable, match="acknowledged nothing within") as refused:
                await exporter.send(batch_of(1))
            last = str(refused.value)


def partition_of_sarama(key: bytes, partitions: int) -> int:
    """The partition as the Collector's client computes it: FNV-1a as a signed number, its remainder without sign."""
    hashed = 0x811C9DC5
    for byte in key:
        hashed = (hashed ^ byte) * 0x01000193 & 0xFFFFFFFF
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return abs(signed) % partitions


async def test_each_trace_is_in_the_partition_where_the_collector_would_put_it(kafka: Kafka) -> None:
    topic, metrics = kafka.topic(partitions=7), Metrics()
    config = {"traces": {"topic": topic}, "partition_traces_by_id": True, "record_headers": {"from": "us"}}
    async with make(kafka.addresses(), metrics, **config) as exporter:
        for spans in (1, 2):
            assert await exporter.send(batch_of(*range(1, 101), spans=spans)) == 0

    records = kafka.consume(topic)
    assert span_counts(records) == dict.fromkeys(range(1, 101), 3)
    for record in records:
        assert record.key is not None
        assert record.partition == partition_of_sarama(record.key, 7)
        assert record.headers == {"from": b"us"}
    assert len({record.partition for record in records}) == 7
    told = metrics.snapshot()
    assert told["otelcol_kafka_exporter_records"] == {f"exporter=kafka,outcome=success,topic={topic}": 200}


async def test_murmur2_puts_it_where_javas_clients_do(kafka: Kafka) -> None:
    from confluent_kafka.cimpl import murmur2

    topic = kafka.topic(partitions=5)
    partitioner = {"sticky_key": {"hasher": "murmur2"}}
    async with make(
        kafka.addresses(), traces={"topic": topic}, partition_by="trace_id", record_partitioner=partitioner
    ) as exporter:
        await exporter.send(batch_of(*range(1, 21)))

    assert all(record.partition == murmur2(record.key or b"", 5) for record in kafka.consume(topic))


async def test_what_several_agents_tell_of_one_pod_is_in_one_partition(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=16)
    config = {"traces": {"topic": topic}, "partition_by": "auto"}
    named = {"k8s.pod.uid": "u", "k8s.namespace.name": "ns", "k8s.pod.name": "web-0"}
    path = {"url.path": "/api/v1/namespaces/ns/pods/web-0", "audit-id": "a"}
    async with make(kafka.addresses(), **config) as scheduler, make(kafka.addresses(), **config) as server:
        await scheduler.send(batch_of(1, 2, attributes=named))
        await server.send(batch_of(3, attributes=path))
        await server.send(batch_of(*range(4, 40)))

    records = kafka.consume(topic)
    of_pod = [record for record in records if record.key == b"ns/web-0"]
    assert sorted(span_counts(of_pod)) == [1, 2, 3]
    assert len({record.partition for record in of_pod}) == 1
    assert len({record.partition for record in records}) > 8


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
async def test_compressed_it_is_read_as_well(kafka: Kafka, compression: str) -> None:
    topic = kafka.topic()
    level = {} if compression == "snappy" else {"compression_params": {"level": 6}}
    producer = {"compression": compression, "required_acks": "all", **level}
    async with make(kafka.addresses(), traces={"topic": topic}, producer=producer) as exporter:
        await exporter.send(batch_of(*range(1, 501)))

    assert len(span_counts(kafka.consume(topic))) == 500


async def test_a_topic_is_created_only_where_that_is_allowed(kafka: Kafka) -> None:
    def config(topic: str, *, allowed: bool) -> dict[str, Any]:
        return {"traces": {"topic": topic}, "producer": {"allow_auto_topic_creation": allowed}, "timeout": "30s"}

    async with make(kafka.addresses(), **config("not-asked-for", allowed=False)) as exporter:
        with pytest.raises(Retryable, match=r"^there is no topic not-asked-for, .*: create it$"):
            await exporter.send(batch_of(1))
    async with make(kafka.addresses(), **config("asked-for", allowed=True)) as exporter:
        assert await exporter.send(batch_of(1)) == 0

    topics = kafka.admin().list_topics(timeout=10).topics
    assert "asked-for" in topics
    assert "not-asked-for" not in topics


async def test_what_the_topic_does_not_take_is_rejected_and_the_rest_delivered(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic(max_message_bytes="2000")
    async with make(kafka.addresses(), traces={"topic": topic}, partition_by="trace_id") as exporter:
        small, large = batch_of(1, 2), batch_of(3, spans=3, name="x" * 1500)
        rejected = await exporter.send(Batch([*small.groups, *large.groups], AT))
        with pytest.raises(Permanent, match=f"topic {topic} takes no message of"):
            await exporter.send(large)

    assert rejected == 3
    assert span_counts(kafka.consume(topic)) == {1: 1, 2: 1}
    assert any("3 spans are rejected: topic" in record.getMessage() for record in caplog.records)


async def test_a_span_too_large_for_any_message_is_rejected_here(
    kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    async with make(kafka.addresses(), traces={"topic": topic}, producer={"max_message_bytes": 1000}) as exporter:
        large = batch_of(2, name="x" * 5000)
        assert await exporter.send(Batch([*batch_of(1).groups, *large.groups], AT)) == 1

    assert span_counts(kafka.consume(topic)) == {1: 1}
    assert any("1 spans are too large for a message of 1000 bytes" in record.getMessage() for record in caplog.records)


async def test_brokers_that_are_not_there_are_said_to_be() -> None:
    (port,) = free_ports(1)
    async with make([f"127.0.0.1:{port}"], timeout="1s") as exporter:
        await refusal(exporter, rf"acknowledged nothing within 0\.5 s: 127\.0\.0\.1:{port}: .*refused")


async def test_a_broker_that_hangs_is_told_and_gets_everything_once_it_goes_on(kafka: Kafka) -> None:
    topic = kafka.topic()
    config = {"traces": {"topic": topic}, "producer": {"required_acks": "all"}}
    kafka.brokers[0].stall()
    async with make(kafka.addresses(), timeout="1s", **config) as exporter:
        with pytest.raises(Retryable, match=rf"^topic {topic} acknowledged nothing within 0\.5 s"):
            await exporter.send(batch_of(2))
    async with queued(make(kafka.addresses(), timeout="60s", **config)) as (queue, ledger):
        for trace in range(3, 30):
            queue.offer(batch_of(trace), ledger)
        kafka.brokers[0].go_on()
        await queue.drain(DEADLINE, patient=True)
        assert ledger == Ledger(delivered=27)

    assert set(span_counts(kafka.consume(topic))) >= set(range(3, 30))


@pytest.mark.parametrize(
    ("mechanism", "listener"),
    [("PLAIN", SASL_SSL), ("SCRAM-SHA-256", SASL_PLAINTEXT), ("SCRAM-SHA-512", SASL_SSL)],
)
async def test_it_logs_in_with_sasl(secured_kafka: Kafka, mechanism: str, listener: str) -> None:
    topic = secured_kafka.topic()
    config = {"traces": {"topic": topic}, **_login(secured_kafka, listener, mechanism), "timeout": "60s"}
    async with make(secured_kafka.addresses(listener), **config) as exporter:
        assert await exporter.send(batch_of(1)) == 0
    assert span_counts(secured_kafka.consume(topic)) == {1: 1}


def _login(kafka: Kafka, listener: str, mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    assert kafka.authority is not None
    sasl = {"mechanism": mechanism, "username": USER, "password": password}
    tls = {"tls": {"ca_file": str(kafka.authority.certificate)}} if listener == SASL_SSL else {}
    return {"auth": {"sasl": sasl}, "timeout": "3s", **tls}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_a_wrong_password_is_said_to_be_one(secured_kafka: Kafka, mechanism: str) -> None:
    config = _login(secured_kafka, SASL_PLAINTEXT, mechanism, "wrong")
    async with make(secured_kafka.addresses(SASL_PLAINTEXT), **config) as exporter:
        await refusal(exporter, r"^topic otlp_spans acknowledged nothing within 1\.5 s: .*uthentication")


async def test_it_shows_its_certificate_and_checks_the_brokers(secured_kafka: Kafka) -> None:
    assert secured_kafka.authority is not None
    topic = secured_kafka.topic()
    certificate, key = secured_kafka.authority.issue("exporter", "/CN=exporter", "extendedKeyUsage=clientAuth")
    own = {"cert_file": str(certificate), "key_file": str(key)}
    trusted = {**own, "ca_file": str(secured_kafka.authority.certificate)}
    common = {"traces": {"topic": topic}, "timeout": "60s"}
    async with make(secured_kafka.addresses(SSL), tls=trusted, **common) as exporter:
        assert await exporter.send(batch_of(1)) == 0
    async with make(secured_kafka.addresses(SSL), tls={**own, "insecure_skip_verify": True}, **common) as exporter:
        assert await exporter.send(batch_of(2)) == 0
    async with make(secured_kafka.addresses(SSL), tls=own, **{**common, "timeout": "3s"}) as exporter:
        await refusal(exporter, "certificate verify failed")

    assert span_counts(secured_kafka.consume(topic)) == {1: 1, 2: 1}


async def test_in_a_transaction_of_another_it_produces_there(kafka: Kafka) -> None:
    topic = kafka.topic()
    transactions = Transactions({"bootstrap.servers": kafka.bootstrap()}, topic, timeout=60.0)
    await transactions.start()
    exporter = make(kafka.addresses(), traces={"topic": topic})
    exporter.produce_within(transactions)
    async with exporter:
        with pytest.raises(Permanent, match="no transaction"):
            await exporter.send(batch_of(1))
        await transactions.begin()
        assert await exporter.send(batch_of(2)) == 0
        await transactions.abort()
        await transactions.begin()
        assert await exporter.send(batch_of(3)) == 0
        await transactions.commit([], None)
    await transactions.close()

    assert span_counts(kafka.consume(topic)) == {3: 1}
