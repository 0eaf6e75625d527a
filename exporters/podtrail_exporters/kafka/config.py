"""What a user can set of the `kafka` exporter: the Collector's keys, and `partition_by`."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from podtrail.config.types import (
    MILLISECOND,
    DeliverySettings,
    Headers,
    Model,
    NonNegativeDuration,
    WarningPath,
    format_duration,
)
from podtrail.pod_identity import most_bytes_of_keys
from podtrail.transport.kafka.settings import KafkaClientSettings
from podtrail.transport.kafka.topic_name import checked_topic

Encoding = Literal["otlp_proto", "otlp_json"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
PartitionBy = Literal["trace_id", "pod", "auto"]

_TRACES_ONLY = "remove it: podtrail handles traces only"
_NO_METADATA = "remove it: podtrail keeps no metadata of requests"
_OTHER_ENCODINGS = frozenset({"jaeger_proto", "jaeger_json", "zipkin_proto", "zipkin_json", "raw"})
_LEVELS: Mapping[str, range] = {"gzip": range(-1, 10), "zstd": range(1, 12), "lz4": range(-1, 13)}
_LARGEST = 1_000_000_000
SIGNAL_HEADER = "otelcol.signal"
"""By which receivers of the Collector's tell signals apart that share a topic."""


def _checked_encoding(encoding: object) -> object:
    if encoding in _OTHER_ENCODINGS:
        raise ValueError(f"{encoding} is not offered: use otlp_proto or otlp_json")
    return encoding


class KafkaTracesSettings(Model):
    """Where spans go, and how they are written."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "topic_from_metadata_key": f"{_NO_METADATA}; topic_from_attribute takes the topic from a resource",
        "message_key_from_metadata_key": f"{_NO_METADATA}; partition_by gives messages a key",
    }

    topic: str = Field("otlp_spans", description="The topic.")
    encoding: Encoding = Field(
        "otlp_proto", description="`otlp_proto` or `otlp_json`: each message is an ExportTraceServiceRequest."
    )

    @field_validator("topic")
    @classmethod
    def _check_topic(cls, topic: str) -> str:
        return checked_topic(topic)

    @field_validator("encoding", mode="before")
    @classmethod
    def _check_encoding(cls, encoding: object) -> object:
        return _checked_encoding(encoding)


class CompressionParams(Model):
    """How hard to compress."""

    level: int | None = Field(
        None, description="gzip: 1 to 9; zstd: 1 to 11; lz4: 0 to 12; snappy has none. Absent or -1: its default."
    )


class KafkaProducerSettings(Model):
    """How messages are put together, sent and acknowledged."""

    max_message_bytes: int = Field(
        1_000_000,
        ge=1000,
        le=_LARGEST,
        description="Largest message before compression, key and headers included. What would be larger is cut; a span "
        "that is too large alone is rejected and counted.",
    )
    max_broker_write_bytes: int | None = Field(
        None, gt=0, description="Accepted, without effect: librdkafka sends one batch of messages a request."
    )
    required_acks: Literal["all", -1, 0, 1] = Field(
        1,
        description="Who must have a message before it counts as delivered: `1` the leader of the partition, `all` or "
        "`-1` all replicas in sync (then retries inside the client repeat nothing), `0` nobody: losses go unnoticed.",
    )
    compression: Compression = Field("none", description="`none`, `gzip`, `snappy`, `lz4` or `zstd`.")
    compression_params: CompressionParams = Field(
        default_factory=CompressionParams, description="How hard to compress."
    )
    flush_max_messages: int = Field(
        10_000, ge=0, le=1_000_000, description="Messages to send at once at most; 0: as many as fit."
    )
    linger: NonNegativeDuration = Field(
        10 * MILLISECOND, description="How long a message may wait for others of its partition."
    )
    allow_auto_topic_creation: bool = Field(
        True, description="Let brokers that do so create a topic that is not there."
    )

    @model_validator(mode="after")
    def _check_level(self) -> Self:
        level, compression = self.compression_params.level, self.compression
        if level in (None, -1):
            return self
        allowed = _LEVELS.get(compression)
        if allowed is None:
            raise ValueError(f"compression_params::level: {compression} has no levels, remove it")
        if level not in allowed:
            raise ValueError(
                f"compression_params::level must be from {max(allowed[0], 0)} to {allowed[-1]} for {compression}"
            )
        return self

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.max_broker_write_bytes is not None and self.max_broker_write_bytes < self.max_message_bytes:
            raise ValueError("max_broker_write_bytes must not be less than max_message_bytes")
        return self

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what librdkafka does otherwise, and what is hardly meant."""
        found: list[tuple[WarningPath, str]] = []
        if self.max_broker_write_bytes is not None:
            found.append((("max_broker_write_bytes",), "has no effect: librdkafka sends one batch a request"))
        if self.required_acks == 0:
            found.append((("required_acks",), "counts as delivered what no broker has acknowledged"))
        return found


class StickyKeySettings(Model):
    """Partitions by a hash of the key."""

    hasher: Literal["sarama_compat", "murmur2"] = Field(
        "sarama_compat", description="`sarama_compat` (FNV-1a), or `murmur2` as Kafka's Java clients do it."
    )


class RoundRobinSettings(Model):
    """Partitions in turn: nothing to set."""


class RecordPartitionerSettings(Model):
    """Which partition a message goes to."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "least_backup": "remove it: librdkafka does not offer it; use sticky_key or round_robin",
        "extension": "remove it: podtrail has no such extensions; partition_by chooses the key",
        "sticky": "remove it: messages without a key stay on a partition for the length of producer::linger anyway",
    }

    sticky_key: StickyKeySettings | None = Field(None, description="By a hash of the key; without a key by chance.")
    round_robin: RoundRobinSettings | None = Field(
        None, description="By chance for each message, whatever its key: librdkafka's way to spread them evenly."
    )

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if self.sticky_key is not None and self.round_robin is not None:
            raise ValueError("sticky_key and round_robin are both given: keep one")
        return self

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what librdkafka does otherwise."""
        if self.round_robin is None:
            return []
        return [(("round_robin",), "librdkafka draws a partition for each message instead of taking turns")]


class Config(KafkaClientSettings, DeliverySettings):
    """Writes spans into a Kafka topic."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            (
                "logs",
                "metrics",
                "profiles",
                "partition_metrics_by_resource_attributes",
                "partition_logs_by_resource_attributes",
                "partition_logs_by_trace_id",
            ),
            _TRACES_ONLY,
        ),
        "include_metadata_keys": f"{_NO_METADATA}; record_headers sets headers that are always the same",
        "rack_id": "remove it: where a producer stands makes no difference",
    }
    harmless: ClassVar[frozenset[str]] = frozenset(
        {*(key for key, hint in of_the_collector.items() if hint == _TRACES_ONLY), "rack_id", "include_metadata_keys"}
    )

    traces: KafkaTracesSettings = Field(
        default_factory=KafkaTracesSettings, description="Where spans go, and how they are written."
    )
    topic: str | None = Field(None, description="Older place of `traces::topic`.")
    encoding: Encoding | None = Field(None, description="Older place of `traces::encoding`.")
    topic_from_attribute: str = Field(
        "",
        description="Resource attribute whose value is the topic of a resource's spans; where it is absent or no name "
        "of a topic they go to `traces::topic`.",
    )
    partition_traces_by_id: bool = Field(
        False, description="A message a trace, with the trace id as its key (32 hexadecimal digits)."
    )
    partition_by: PartitionBy | None = Field(
        None,
        description="What the key of a message is, so that what belongs together is in one partition. `trace_id`: as "
        "partition_traces_by_id. `pod`: the Pod that a trace is about, its trace id where none is known. `auto`: the "
        "Pod only of traces whose root is among their first spans. Absent: no key, a message is as large as it may be.",
    )
    record_partitioner: RecordPartitionerSettings = Field(
        default_factory=RecordPartitionerSettings,
        description="Which partition a message goes to; by default sticky_key.",
    )
    record_headers: Headers = Field(
        default_factory=dict,
        description="Headers that every message has, by name, or as a list of `name` and `value`; values are secrets.",
    )
    signal_header: bool = Field(False, description="Give every message the header `otelcol.signal: traces`.")
    producer: KafkaProducerSettings = Field(
        default_factory=KafkaProducerSettings, description="How messages are sent and acknowledged."
    )

    @field_validator("topic")
    @classmethod
    def _check_topic(cls, topic: str | None) -> str | None:
        return topic if topic is None else checked_topic(topic)

    @field_validator("encoding", mode="before")
    @classmethod
    def _check_encoding(cls, encoding: object) -> object:
        return _checked_encoding(encoding)

    @field_validator("record_headers")
    @classmethod
    def _check_reserved(cls, headers: Headers) -> Headers:
        if SIGNAL_HEADER in headers:
            raise ValueError(f"{SIGNAL_HEADER} is what signal_header: true sets: remove it here")
        return headers

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if self.partition_traces_by_id and self.partition_by not in (None, "trace_id"):
            raise ValueError(f"partition_traces_by_id contradicts partition_by: {self.partition_by}: keep one")
        if self.key_by is not None and self.record_partitioner.round_robin is not None:
            raise ValueError("record_partitioner::round_robin takes no notice of keys: remove it, or what gives them")
        if 0 < self.timeout <= 2 * self.producer.linger:
            shortest = format_duration(2 * self.producer.linger)
            raise ValueError(f"timeout must be more than twice producer::linger ({shortest}), 0s for no limit")
        return self

    @property
    def knows_pods(self) -> bool:
        """Whether keys of messages are Pods."""
        return self.key_by in ("pod", "auto")

    def memory_bounds(self, budget: int) -> Mapping[str, int]:
        """Return the bytes of the queue, and of what is known of Pods."""
        pods = most_bytes_of_keys(budget) if self.knows_pods else 0
        return {**super().memory_bounds(budget), "partition_by": pods}

    @property
    def key_by(self) -> PartitionBy | None:
        """What the key of a message is; None: it has none."""
        return "trace_id" if self.partition_traces_by_id else self.partition_by

    @property
    def topic_in_use(self) -> str:
        """Where spans go whose resource says nothing of it."""
        return self._newer("topic") or self.traces.topic

    @property
    def encoding_in_use(self) -> str:
        """How messages are written."""
        return self._newer("encoding") or self.traces.encoding

    def _newer(self, key: str) -> str | None:
        """Return the value at a key's older place where none is given at the newer."""
        older: str | None = getattr(self, key)
        return None if key in self.traces.model_fields_set else older

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is deprecated, what librdkafka does otherwise, and what is hardly meant."""
        found = super().warnings()
        for key in ("topic", "encoding"):
            if getattr(self, key) is not None:
                use = f"traces::{key}"
                beside = key in self.traces.model_fields_set
                found.append(((key,), f"has no effect beside {use}" if beside else f"is deprecated: use {use}"))
        return found
