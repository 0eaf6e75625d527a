"""What librdkafka says of brokers, as podtrail says it."""

import pytest
from confluent_kafka import KafkaError

from podtrail.transport.kafka.failures import spoken


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "127.0.0.1:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: refused (after 0ms in state X)",
            "127.0.0.1:9092: Connect to ipv4#127.0.0.1:9092 failed: refused",
        ),
        (
            "GroupCoordinator: kafka-0.kafka:9092: Disconnected (after 5000ms in state UP)",
            "kafka-0.kafka:9092: Disconnected",
        ),
        (
            "sasl_ssl://kafka-1:9093/2: SASL authentication error: Authentication failed (after 3ms in state AUTH_REQ)",
            "kafka-1:9093: SASL authentication error: Authentication failed",
        ),
        ("[::1]:9092/1: 2 request(s) timed out: disconnect", "[::1]:9092: 2 request(s) timed out: disconnect"),
        (
            "127.0.0.1:9092/1: ApiVersionRequest failed: Local: Timed out: probably due to broker version < 0.10",
            "127.0.0.1:9092: ApiVersionRequest failed: Local: Timed out",
        ),
        ("Failed to resolve 'nowhere:9092': Name or service not known", None),
        ("1/1 brokers are down", None),
    ],
)
def test_a_broker_is_named_by_its_address_and_what_only_librdkafka_needs_is_left_out(
    said: str, told: str | None
) -> None:
    assert spoken(KafkaError(KafkaError._TRANSPORT, said)) == (told or said)
