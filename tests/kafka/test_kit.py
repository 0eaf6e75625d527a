"""The brokers that the other tests are about: what is written is read, and what is killed comes back."""

import pytest
from confluent_kafka import KafkaError, Producer

from tests.kafka.broker import DEADLINE
from tests.kafka.cluster import PASSWORD, SASL_PLAINTEXT, SASL_SSL, SSL, USER, Kafka

pytestmark = pytest.mark.kafka


def test_what_is_written_to_a_topic_is_read_from_it(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)

    kafka.produce(topic, [b"a", b"b"], partition=1, key=b"k", headers={"h": b"v"}, time_ms=1_700_000_000_000)

    first, second = kafka.consume(topic)
    assert (first.partition, first.offset, first.key, first.value) == (1, 0, b"k", b"a")
    assert (second.offset, second.headers, second.time) == (1, {"h": b"v"}, 1_700_000_000_000)
    assert kafka.ends(topic) == {0: 0, 1: 2}


def test_with_one_of_three_brokers_killed_messages_go_on(kafka_of_three: Kafka) -> None:
    topic = kafka_of_three.topic()
    kafka_of_three.produce(topic, [b"before"])

    kafka_of_three.leader(topic).kill()
    kafka_of_three.produce(topic, [b"after"])

    assert [record.value for record in kafka_of_three.consume(topic)] == [b"before", b"after"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("listener", [SASL_PLAINTEXT, SASL_SSL])
def test_who_has_the_password_comes_in(secured_kafka: Kafka, mechanism: str, listener: str) -> None:
    assert secured_kafka.authority is not None
    settings = {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": PASSWORD}
    authority = {"ssl.ca.location": str(secured_kafka.authority.certificate)} if listener == SASL_SSL else {}

    assert _write(secured_kafka, listener, {**settings, **authority}) is None


def test_who_has_a_certificate_comes_in_where_one_is_asked_for(secured_kafka: Kafka) -> None:
    assert secured_kafka.authority is not None
    certificate, key = secured_kafka.authority.issue("someone", "/CN=someone", "extendedKeyUsage=clientAuth")
    authority = {"ssl.ca.location": str(secured_kafka.authority.certificate)}
    own = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}

    assert _write(secured_kafka, SSL, {**authority, **own}) is None
    refused = _write(secured_kafka, SSL, {**authority, "message.timeout.ms": "2000"})
    assert refused is not None
    assert refused.code() == KafkaError._MSG_TIMED_OUT


def _write(kafka: Kafka, listener: str, settings: dict[str, str]) -> KafkaError | None:
    """Writes one message; returns why it was not written."""
    ended: list[KafkaError | None] = []
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap(listener),
            "security.protocol": listener,
            "log_level": 0,
            **settings,
        }
    )
    producer.produce(kafka.topic(), b"hello", on_delivery=lambda error, _: ended.append(error))
    producer.flush(DEADLINE)
    (only,) = ended
    return only
