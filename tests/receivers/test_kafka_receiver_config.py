"""Configurations of the `kafka` receiver: the Collector's are taken, what can't be honoured is said."""

from typing import Any

import pytest
from podtrail_receivers.kafka.config import Config
from podtrail_receivers.kafka.properties import consumer_properties
from pydantic import ValidationError

from podtrail.config.types import SECOND

NO_TOPIC = (
    "is no name of a topic: up to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', and neither '.' nor '..'"
)


def _errors(**config: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Config.model_validate(config)
    return [error["msg"].removeprefix("Value error, ") for error in caught.value.errors()]


def test_a_configuration_of_the_collectors_with_all_its_keys_is_taken_without_a_warning() -> None:
    config = Config.model_validate(
        {
            "brokers": ["a:9092", "b:9092"],
            "client_id": "me",
            "rack_id": "r1",
            "conn_idle_timeout": "9m",
            "traces": {"topics": ["^spans-.*", "other"], "encoding": "otlp_json", "exclude_topics": ["-dead$"]},
            "group_id": "g",
            "group_instance_id": "g-1",
            "initial_offset": "earliest",
            "session_timeout": "10s",
            "heartbeat_interval": "3s",
            "group_rebalance_strategies": ["range", "roundrobin"],
            "min_fetch_size": 1,
            "max_fetch_size": 1048576,
            "max_fetch_wait": "250ms",
            "max_partition_fetch_size": 1048576,
            "autocommit": {"enable": True, "interval": "1s"},
            "message_marking": {"after": True, "on_error": False, "on_permanent_error": True},
            "partition_processing": {"independent": True, "max_buffered_batches": 3},
            "header_extraction": {"extract_headers": True, "headers": ["tenant"]},
            "error_backoff": {"enabled": False},
            "metadata": {"refresh_interval": "10m", "retry": {"backoff": "250ms"}},
            "telemetry": {"metrics": {"kafka_receiver_records_delay": {"enabled": True}}},
        }
    )

    assert config.warnings() == config.traces.warnings() == []
    properties = consumer_properties(config)
    assert properties["partition.assignment.strategy"] == "range,roundrobin"
    assert (properties["session.timeout.ms"], properties["heartbeat.interval.ms"]) == (10_000, 3_000)
    assert (properties["fetch.min.bytes"], properties["fetch.max.bytes"]) == (1, 1_048_576)
    assert (properties["fetch.wait.max.ms"], properties["fetch.message.max.bytes"]) == (250, 1_048_576)
    assert (properties["group.instance.id"], properties["client.rack"]) == ("g-1", "r1")
    assert properties["topic.blacklist"] == "-dead$"


def test_the_defaults_are_the_collectors_but_for_the_heartbeat() -> None:
    config = Config()

    assert config.traces.topics == ("otlp_spans",)
    assert (config.group_id, config.initial_offset) == ("otel-collector", "latest")
    assert (config.session_timeout, config.heartbeat_interval) == (10 * SECOND, 1 * SECOND)
    assert consumer_properties(config)["partition.assignment.strategy"] == "cooperative-sticky"
    assert (config.idle_timeout, config.checkpoints.topic) == (5 * SECOND, "podtrail_checkpoints")
    assert not config.exactly_once


def test_older_forms_are_taken_with_a_warning_that_names_the_newer_one() -> None:
    config = Config.model_validate(
        {"group_rebalance_strategy": "range", "traces": {"topic": "^a", "exclude_topic": "b$"}}
    )

    assert config.traces.topics == ("^a",)
    assert config.traces.exclude_topics == ("b$",)
    assert config.assignors == "range"
    assert config.warnings() == [
        (("group_rebalance_strategy",), "is the older form of group_rebalance_strategies: [...]")
    ]
    assert config.traces.warnings() == [
        (("topic",), "is the older form of topics: [...]"),
        (("exclude_topic",), "is the older form of exclude_topics: [...]"),
    ]


def test_an_eager_sticky_is_offered_as_the_cooperative_one_with_a_warning() -> None:
    config = Config.model_validate({"group_rebalance_strategies": ["sticky", "cooperative-sticky"]})

    assert config.assignors == "cooperative-sticky"
    assert config.warnings() == [
        (
            ("group_rebalance_strategies",),
            "librdkafka has no eager sticky: cooperative-sticky is offered to the group for it",
        )
    ]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"group_rebalance_strategies": ["cooperative-sticky", "range"]},
            (
                "librdkafka can't offer cooperative-sticky beside strategies that move all partitions at once: "
                "name range and roundrobin, or sticky and cooperative-sticky"
            ),
        ),
        (
            {"group_rebalance_strategy": "range", "group_rebalance_strategies": ["range"]},
            "has both group_rebalance_strategy and group_rebalance_strategies: remove the first, the older form",
        ),
        (
            {"traces": {"topic": "a", "topics": ["b"]}},
            "has both topic and topics: remove topic, which is the older form",
        ),
        (
            {"traces": {"topics": ["a"], "exclude_topics": ["b"]}},
            "exclude_topics only applies to regular expressions, and no topic begins with ^",
        ),
        (
            {"traces": {"topics": ["^a("]}},
            "'^a(' is no regular expression: missing ), unterminated subpattern at position 2",
        ),
        (
            {"traces": {"topics": [r"^a\d"]}},
            (
                r"'^a\\d' has \d, which librdkafka's expressions (POSIX, extended) do not know: "
                r"write for example [0-9] for \d, and (...) for a group"
            ),
        ),
        ({"traces": {"topics": ["a b"]}}, f"'a b' {NO_TOPIC}"),
        ({"traces": {"topics": [".."]}}, f"'..' {NO_TOPIC}"),
        (
            {"heartbeat_interval": "10s"},
            "heartbeat_interval must be shorter than session_timeout, a third of it at most is usual",
        ),
        ({"max_fetch_size": 1, "min_fetch_size": 2}, "max_fetch_size must not be less than min_fetch_size"),
        (
            {"message_marking": {"on_error": True}},
            "can't be true: podtrail commits no record that may still be delivered; remove it",
        ),
        ({"checkpoints": {"topic": "a/b"}}, f"'a/b' {NO_TOPIC}"),
        ({"dead_letter": {"topic": "."}}, f"'.' {NO_TOPIC}"),
        (
            {"traces": {"topics": ["a", "b"]}, "dead_letter": {"topic": "b"}},
            (
                "dead_letter::topic is b, which traces::topics has read: name another topic, or with an expression "
                "exclude_topics: ['^b$']"
            ),
        ),
        (
            {"traces": {"topics": ["^podtrail_.*"]}},
            (
                "checkpoints::topic is podtrail_checkpoints, which traces::topics has read: name another topic, or "
                "with an expression exclude_topics: ['^podtrail_checkpoints$']"
            ),
        ),
    ],
)
def test_what_cant_be_honoured_is_refused_in_one_line(config: dict[str, Any], said: str) -> None:
    assert _errors(**config) == [said]


def test_topics_that_are_excluded_or_not_written_may_match_the_expression() -> None:
    excluded = {"topics": ["^podtrail_.*"], "exclude_topics": ["^podtrail_checkpoints$"]}
    assert Config.model_validate({"traces": excluded}).traces.reads("podtrail_spans")
    Config.model_validate({"traces": {"topics": ["^podtrail_.*"]}, "checkpoints": {"enabled": False}})
