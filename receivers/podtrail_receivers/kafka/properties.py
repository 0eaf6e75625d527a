"""What librdkafka's consumer is told for a configuration of the receiver."""

from typing import Any, Final

from podtrail.config.types import MILLISECOND
from podtrail.transport.kafka.properties import client_properties
from podtrail_receivers.kafka.config import Config

_PREFETCHED_KIB: Final = 8 << 10
"""What librdkafka itself holds of messages that were fetched; what waits for the pipelines comes on top."""
_LARGEST_ANSWER: Final = 100_000_000
"""Bytes: a batch of records that is larger than any limit of ours comes all the same."""


def consumer_properties(config: Config) -> dict[str, Any]:
    """Return librdkafka's properties.

    Raises:
        StartError: a file of `tls` can't be read.
    """
    properties: dict[str, Any] = {
        **client_properties(config),
        "group.id": config.group_id,
        "partition.assignment.strategy": config.assignors,
        "session.timeout.ms": config.session_timeout // MILLISECOND,
        "heartbeat.interval.ms": config.heartbeat_interval // MILLISECOND,
        "fetch.min.bytes": config.min_fetch_size,
        "fetch.max.bytes": config.max_fetch_size,
        "fetch.wait.max.ms": config.max_fetch_wait // MILLISECOND,
        "fetch.message.max.bytes": config.max_partition_fetch_size,
        "receive.message.max.bytes": max(_LARGEST_ANSWER, config.max_fetch_size + 512),
        "queued.max.messages.kbytes": _PREFETCHED_KIB,
        "message.max.bytes": min(config.max_fetch_size, 1_000_000),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "socket.timeout.ms": max(10_000, config.max_fetch_wait // MILLISECOND + 2_000),
        "allow.auto.create.topics": False,
    }
    if config.group_instance_id:
        properties["group.instance.id"] = config.group_instance_id
    if config.rack_id:
        properties["client.rack"] = config.rack_id
    if config.traces.exclude_topics:
        properties["topic.blacklist"] = ",".join(config.traces.exclude_topics)
    return properties
