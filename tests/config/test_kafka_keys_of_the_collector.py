"""All keys of the Collector's `kafka` receiver and exporter (v0.155 to v0.161): honoured, warned of, or refused.

The keys are those of contrib's kafkareceiver, kafkaexporter and configkafka, and of configtls. One that does nothing
says so in one warning, one that can't be had in one refusal.
"""

from pathlib import Path

import pytest

from podtrail.config import ConfigError
from podtrail.config.document import Document
from podtrail.pipeline.settings import read_settings

PAGE = Path(__file__).parents[2] / "docs" / "kafka.md"
SASL = "{mechanism: SCRAM-SHA-256, username: u, password: p"

CLIENT = {
    "brokers": "[a:9092]",
    "client_id": "me",
    "conn_idle_timeout": "5m",
    "resolve_canonical_bootstrap_servers_only": "true",
    "use_leader_epoch": "true",
    "tls": "{}",
    "tls::ca_file": "/a",
    "tls::ca_pem": "a",
    "tls::cert_file": "/a, key_file: /b",
    "tls::key_file": "/b, cert_file: /a",
    "tls::cert_pem": "a, key_pem: b",
    "tls::key_pem": "b, cert_pem: a",
    "tls::insecure": "true",
    "tls::insecure_skip_verify": "true",
    "tls::min_version": '"1.2"',
    "auth": "{}",
    "auth::sasl": f"{SASL}}}",
    "metadata::refresh_interval": "1m",
    "metadata::retry::backoff": "1s",
}
CLIENT_WARNED = {
    "protocol_version": "2.1.0",
    "auth::sasl": f"{SASL}, version: 1}}",
    "auth::tls": "{}",
    "metadata::full": "false",
    "metadata::retry::max": "3",
}
CLIENT_REFUSED = {
    "auth::sasl": f"{SASL}, aws_msk: {{region: eu}}}}",
    "auth::sasl::mechanism": "OAUTHBEARER, username: u, password: p",
    "auth::sasl::oauthbearer_token_source": f"oauth2client, {SASL[1:]}",
    "auth::kerberos": "{realm: a}",
    "tls::cipher_suites": "[a]",
    "tls::curve_preferences": "[a]",
    "tls::include_insecure_cipher_suites": "true",
    "tls::include_system_ca_certs_pool": "true",
    "tls::max_version": '"1.3"',
    "tls::min_version": '"1.3"',
    "tls::reload_interval": "1h",
    "tls::server_name_override": "a",
    "tls::tpm": "{}",
}
RECEIVER = {
    "traces::topics": "[a]",
    "traces::encoding": "otlp_json",
    "traces::exclude_topics": "[a], topics: [^b]",
    "session_timeout": "20s",
    "heartbeat_interval": "3s",
    "group_id": "g",
    "group_instance_id": "g-1",
    "group_rebalance_strategies": "[range, roundrobin]",
    "initial_offset": "earliest",
    "autocommit::enable": "false",
    "autocommit::interval": "2s",
    "min_fetch_size": "10",
    "max_fetch_size": "2000000",
    "max_fetch_wait": "1s",
    "max_partition_fetch_size": "2000000",
    "rack_id": "a",
    "message_marking::after": "true",
    "message_marking::on_error": "false",
    "message_marking::on_permanent_error": "true",
    "partition_processing::independent": "true",
    "partition_processing::max_buffered_batches": "2",
    "header_extraction::extract_headers": "true",
    "header_extraction::headers": "[a], extract_headers: true",
    "error_backoff::enabled": "false",
    "telemetry::metrics::kafka_receiver_records_delay::enabled": "true",
}
RECEIVER_WARNED = {
    "logs": "{}",
    "metrics": "{}",
    "profiles": "{}",
    "group_rebalance_strategy": "range",
    "error_backoff": (
        "{enabled: true, initial_interval: 1s, max_interval: 2s, multiplier: 2, randomization_factor: 0.1, "
        "max_elapsed_time: 1m}"
    ),
    "group_rebalance_strategies": "[sticky]",
}
RECEIVER_REFUSED = {
    "topic": "a",
    "encoding": "a",
    "default_fetch_size": "1",
    "message_marking::on_error": "true",
    "traces::encoding": "jaeger_proto",
    "group_rebalance_strategies": "[an_extension]",
}
EXPORTER = {
    "timeout": "6s",
    "retry_on_failure": (
        "{enabled: true, initial_interval: 1s, max_interval: 2s, multiplier: 2, randomization_factor: 0.1, "
        "max_elapsed_time: 1m}"
    ),
    "sending_queue": "{enabled: true, queue_size: 10, num_consumers: 2}",
    "traces::topic": "a",
    "traces::encoding": "otlp_json",
    "topic_from_attribute": "a",
    "partition_traces_by_id": "true",
    "record_headers": "[{name: a, value: b}]",
    "signal_header": "true",
    "record_partitioner::sticky_key::hasher": "murmur2",
    "producer::max_message_bytes": "2000000",
    "producer::required_acks": "all",
    "producer::compression": "zstd",
    "producer::compression_params": "{level: 3}, compression: zstd",
    "producer::linger": "20ms",
    "producer::flush_max_messages": "10",
    "producer::allow_auto_topic_creation": "false",
}
EXPORTER_WARNED = {
    "topic": "a",
    "encoding": "otlp_json",
    "producer::max_broker_write_bytes": "104857600",
    "record_partitioner::round_robin": "{}",
    "logs": "{}",
    "metrics": "{}",
    "profiles": "{}",
    "include_metadata_keys": "[a]",
    "partition_logs_by_resource_attributes": "true",
    "partition_logs_by_trace_id": "true",
    "partition_metrics_by_resource_attributes": "true",
    "rack_id": "a",
}
EXPORTER_REFUSED = {
    "record_partitioner::extension": "a",
    "record_partitioner::least_backup": "{}",
    "traces::encoding": "zipkin_json",
    "traces::message_key_from_metadata_key": "a",
    "traces::topic_from_metadata_key": "a",
}


def _nested(key: str, value: str) -> str:
    """Return a key and its value as one line of YAML."""
    first, *rest = key.split("::")
    return f"{first}: " + "".join(f"{{{name}: " for name in rest) + value + "}" * len(rest)


def heard(kind: str, key: str, value: str) -> tuple[list[str], list[str]]:
    """Return what is refused and what is warned of in a configuration with this key."""
    other = "exporters: {debug: }" if kind == "receiver" else "receivers: {otlp: {protocols: {grpc: }}}"
    receiver, exporter = ("kafka", "debug") if kind == "receiver" else ("otlp", "kafka")
    text = (
        f"{kind}s:\n  kafka:\n    {_nested(key, value)}\n{other}\n"
        f"service: {{pipelines: {{traces: {{receivers: [{receiver}], exporters: [{exporter}]}}}}}}\n"
    )
    try:
        settings = read_settings(Document.from_text(text, "pipeline.yaml", {}))
    except ConfigError as error:
        return [str(problem) for problem in error.problems], []
    return [], [str(problem) for problem in settings.warnings]


def _cases(client: dict[str, str], receiver: dict[str, str], exporter: dict[str, str]) -> list[tuple[str, str, str]]:
    of_receiver = [("receiver", key, value) for key, value in (client | receiver).items()]
    return of_receiver + [("exporter", key, value) for key, value in (client | exporter).items()]


@pytest.mark.parametrize(("kind", "key", "value"), _cases(CLIENT, RECEIVER, EXPORTER))
def test_honoured(kind: str, key: str, value: str) -> None:
    assert heard(kind, key, value) == ([], [])


@pytest.mark.parametrize(("kind", "key", "value"), _cases(CLIENT_WARNED, RECEIVER_WARNED, EXPORTER_WARNED))
def test_warned_of_in_one_line(kind: str, key: str, value: str) -> None:
    refused, (warned,) = heard(kind, key, value)
    assert refused == []
    assert key in warned


@pytest.mark.parametrize(("kind", "key", "value"), _cases(CLIENT_REFUSED, RECEIVER_REFUSED, EXPORTER_REFUSED))
def test_refused_in_one_line(kind: str, key: str, value: str) -> None:
    (refused,), _ = heard(kind, key, value)
    assert key.rsplit("::")[-1] in refused


def test_the_page_names_every_key_that_is_not_simply_honoured() -> None:
    odd = {
        **CLIENT_WARNED,
        **CLIENT_REFUSED,
        **RECEIVER_WARNED,
        **RECEIVER_REFUSED,
        **EXPORTER_WARNED,
        **EXPORTER_REFUSED,
    }
    page = PAGE.read_text(encoding="utf-8")
    assert [key for key in odd if f"`{key}" not in page and f"::{key.rsplit('::')[-1]}`" not in page] == []
