"""What the `kafka` exporter's configuration accepts, refuses, and says without effect, and what librdkafka is given."""

from typing import Any

import pytest
from podtrail_exporters.kafka.config import Config
from pydantic import ValidationError

from podtrail.component import StartError
from podtrail.config.types import MINUTE, SECOND
from podtrail.transport.kafka.properties import client_properties


def configured(**config: Any) -> Config:
    return Config.model_validate(config)


SCRAM = {"mechanism": "SCRAM-SHA-512", "username": "u", "password": "p"}


def test_it_has_the_collectors_defaults() -> None:
    config = configured()
    assert config.brokers == ("localhost:9092",)
    assert (config.client_id, config.conn_idle_timeout) == ("otel-collector", 9 * MINUTE)
    assert (config.topic_in_use, config.encoding_in_use, config.key_by) == ("otlp_spans", "otlp_proto", None)
    assert (config.timeout, config.sending_queue.num_consumers) == (5 * SECOND, 10)
    assert (config.metadata.refresh_interval, config.metadata.retry.backoff) == (10 * MINUTE, SECOND // 4)
    producer = config.producer
    assert (producer.max_message_bytes, producer.required_acks, producer.compression) == (1_000_000, 1, "none")
    assert (producer.flush_max_messages, producer.linger) == (10_000, SECOND // 100)
    assert producer.allow_auto_topic_creation
    assert config.warnings() == []


def test_brokers_may_stand_in_one_line_as_a_variable_of_the_environment_holds_them() -> None:
    assert configured(brokers="a:9092, b:9093").brokers == ("a:9092", "b:9093")
    assert configured(brokers="a:9092").brokers == ("a:9092",)
    with pytest.raises(ValidationError, match="'b:x' has no port"):
        configured(brokers="a:9092,b:x")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"brokers": []}, "brokers"),
        ({"brokers": ["a:9092,b:9092"]}, "has a comma: write each broker as an item of the list"),
        ({"brokers": ["kafka://a:9092"]}, "has a scheme: write host:port"),
        ({"brokers": ["a"]}, "lacks a port"),
        ({"brokers": [":9092"]}, "no host to connect to"),
        ({"protocol_version": "new"}, "is no version of Kafka"),
        (
            {"auth": {"sasl": {**SCRAM, "mechanism": "AWS_MSK_IAM_OAUTHBEARER"}}},
            "AWS's signatures, .*: use PLAIN",
        ),
        ({"auth": {"sasl": {**SCRAM, "mechanism": "OAUTHBEARER"}}}, "takes its tokens from an extension"),
        ({"auth": {"sasl": {**SCRAM, "mechanism": "plain"}}}, "'PLAIN', 'SCRAM-SHA-256' or 'SCRAM-SHA-512'"),
        ({"auth": {"sasl": {"mechanism": "PLAIN", "username": "u"}}}, "password"),
        ({"auth": {"sasl": SCRAM, "plain_text": {"username": "u", "password": "p"}}}, "keep sasl"),
        ({"auth": {"kerberos": {}}}, "kerberos"),
        ({"tls": {"server_name_override": "a"}}, "server_name_override can't be honoured by librdkafka"),
        ({"tls": {"min_version": "1.3"}}, "librdkafka has no such option"),
        ({"tls": {"reload_interval": "1h"}}, "reload_interval is not offered"),
        ({"auth": {"tls": {"reload_interval": "1h"}}}, "reload_interval is not offered"),
        ({"traces": {"topic": "a b"}}, "'a b' is no name of a topic"),
        ({"topic": ".."}, "is no name of a topic"),
        ({"traces": {"encoding": "jaeger_proto"}}, "jaeger_proto is not offered: use otlp_proto or otlp_json"),
        ({"encoding": "zipkin_json"}, "zipkin_json is not offered"),
        ({"traces": {"topic_from_metadata_key": "a"}}, "topic_from_metadata_key"),
        ({"partition_traces_by_id": True, "partition_by": "pod"}, "contradicts partition_by: pod"),
        ({"partition_by": "pod", "record_partitioner": {"round_robin": {}}}, "takes no notice of keys"),
        ({"record_partitioner": {"round_robin": {}, "sticky_key": {}}}, "keep one"),
        ({"record_partitioner": {"least_backup": {}}}, "least_backup"),
        ({"producer": {"compression": "brotli"}}, "compression"),
        ({"producer": {"compression": "gzip", "compression_params": {"level": 10}}}, "must be from 0 to 9 for gzip"),
        ({"producer": {"compression": "snappy", "compression_params": {"level": 1}}}, "snappy has no levels"),
        ({"producer": {"required_acks": 2}}, "required_acks"),
        ({"producer": {"max_message_bytes": 10}}, "max_message_bytes"),
        ({"producer": {"max_broker_write_bytes": 10}}, "must not be less than max_message_bytes"),
        ({"record_headers": [{"name": "a"}]}, "item 1 of the list must have name and value"),
        ({"record_headers": [{"name": "a", "value": "b"}, {"name": "a", "value": "c"}]}, "has a name twice"),
        ({"record_headers": {"otelcol.signal": "logs"}}, "is what signal_header: true sets"),
        ({"producer": {"linger": "3s"}}, "timeout must be more than twice producer::linger"),
    ],
    ids=str,
)
def test_refuses_with_the_reason(config: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        configured(**config)


@pytest.mark.parametrize(
    ("config", "path", "expected"),
    [
        ({"protocol_version": "2.1.0"}, ("protocol_version",), "librdkafka negotiates"),
        ({"use_leader_epoch": False}, ("use_leader_epoch",), "always uses leader epochs"),
        ({"topic": "t"}, ("topic",), "is deprecated: use traces::topic"),
        ({"encoding": "otlp_json", "traces": {"encoding": "otlp_proto"}}, ("encoding",), "has no effect beside"),
        ({"auth": {"sasl": {**SCRAM, "mechanism": "PLAIN"}}}, ("auth", "sasl"), "sends the password in clear text"),
        ({"auth": {"tls": {}}, "tls": {}}, ("auth", "tls"), "has no effect beside tls"),
    ],
    ids=str,
)
def test_warns_of_what_has_no_effect(config: dict[str, Any], path: tuple[str, ...], expected: str) -> None:
    assert [(at, expected in text) for at, text in configured(**config).warnings()] == [(path, True)]


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (configured(auth={"sasl": {**SCRAM, "version": 1}}).auth.sasl, "negotiates it"),
        (configured(auth={"plain_text": {"username": "u", "password": "p"}}, tls={}).auth, "use sasl with"),
        (configured(auth={"tls": {}}).auth, "move it out of auth"),
        (configured(metadata={"full": True}).metadata, "asks for the topics it needs"),
        (configured(metadata={"retry": {"max": 3}}).metadata.retry, "until a timeout ends it"),
        (configured(record_partitioner={"round_robin": {}}).record_partitioner, "instead of taking turns"),
        (configured(producer={"required_acks": 0}).producer, "no broker has acknowledged"),
        (configured(producer={"max_broker_write_bytes": 10_000_000}).producer, "one batch a request"),
    ],
)
def test_sections_warn_of_their_own(of: Any, expected: str) -> None:
    ((_, text),) = of.warnings()
    assert expected in text


def test_older_places_hold_where_the_newer_are_not_given() -> None:
    assert configured(topic="old", encoding="otlp_json").topic_in_use == "old"
    assert configured(topic="old", encoding="otlp_json").encoding_in_use == "otlp_json"
    assert configured(topic="old", traces={"topic": "new"}).topic_in_use == "new"


@pytest.mark.parametrize(
    ("config", "protocol"),
    [
        ({}, "PLAINTEXT"),
        ({"tls": {}}, "SSL"),
        ({"tls": {"insecure": True}}, "PLAINTEXT"),
        ({"auth": {"tls": {}}}, "SSL"),
        ({"auth": {"sasl": SCRAM}}, "SASL_PLAINTEXT"),
        ({"auth": {"sasl": SCRAM}, "tls": {}}, "SASL_SSL"),
        ({"auth": {"plain_text": {"username": "u", "password": "p"}}, "tls": {}}, "SASL_SSL"),
    ],
    ids=str,
)
def test_keys_say_how_to_connect(config: dict[str, Any], protocol: str) -> None:
    assert client_properties(configured(**config))["security.protocol"] == protocol


def test_librdkafka_is_given_what_the_keys_say() -> None:
    found = client_properties(
        configured(
            brokers=["a:1", "[::1]:2"],
            client_id="me",
            conn_idle_timeout="1m",
            resolve_canonical_bootstrap_servers_only=True,
            metadata={"refresh_interval": "30s", "retry": {"backoff": "1s"}},
            auth={"sasl": SCRAM},
            tls={"ca_pem": "authorities", "insecure_skip_verify": True},
        )
    )
    expected = {
        "bootstrap.servers": "a:1,[::1]:2",
        "client.id": "me",
        "connections.max.idle.ms": 60_000,
        "client.dns.lookup": "resolve_canonical_bootstrap_servers_only",
        "topic.metadata.refresh.interval.ms": 30_000,
        "metadata.max.age.ms": 90_000,
        "retry.backoff.ms": 1000,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "p",
        "ssl.ca.pem": "authorities",
        "enable.ssl.certificate.verification": False,
    }
    assert found == expected


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(StartError, match=r"tls::ca_file: can't read /nowhere/ca\.pem"):
        client_properties(configured(tls={"ca_file": "/nowhere/ca.pem"}))


def test_passwords_and_headers_are_never_shown() -> None:
    config = configured(auth={"sasl": {**SCRAM, "password": "hidden"}}, record_headers={"a": "hidden"})
    assert "hidden" not in repr(config)
