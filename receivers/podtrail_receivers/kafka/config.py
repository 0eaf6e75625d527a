"""Configuration of the `kafka` receiver: the Collector's keys and defaults, and what tail sampling needs besides."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from podtrail.config.types import (
    MILLISECOND,
    MINUTE,
    SECOND,
    Model,
    NonNegativeDuration,
    PositiveDuration,
    WarningPath,
)
from podtrail.transport.kafka.settings import KafkaClientSettings
from podtrail_receivers.kafka.topics import CheckpointSettings, DeadLetterSettings, TracesSettings

Strategy = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]
_COOPERATIVE = frozenset({"sticky", "cooperative-sticky"})
"""What librdkafka assigns cooperatively: it has no eager `sticky`."""
_OTHER_SIGNAL = "remove it: podtrail handles traces only; give other signals to a Collector"


class AutocommitSettings(Model):
    """When is committed how far the group has come."""

    enable: bool = Field(
        True, description="Commit at intervals; otherwise as soon as there is something new to commit, once at a time."
    )
    interval: PositiveDuration = Field(
        1 * SECOND, description="How often to commit; with `exactly_once` the length of a transaction."
    )


class MessageMarkingSettings(Model):
    """The Collector's choice of when a message counts as consumed. Here there is one answer, see `after`."""

    after: bool = Field(
        False, description="Accepted; a record is committed once its traces are decided and delivered, always."
    )
    on_error: bool = Field(False, description="Only `false`: what could not be delivered yet is not committed.")
    on_permanent_error: bool = Field(
        False, description="Accepted; what can never be delivered is counted, and committed with the rest."
    )

    @field_validator("on_error")
    @classmethod
    def _refuse_marking_on_error(cls, value: bool) -> bool:
        if value:
            raise ValueError("can't be true: podtrail commits no record that may still be delivered; remove it")
        return value


class PartitionProcessingSettings(Model):
    """The Collector's choice of who waits for whom. Here every partition goes on by itself."""

    independent: bool = Field(True, description="Accepted; a partition that has to wait holds up no other, always.")
    max_buffered_batches: int = Field(1, gt=0, description="Accepted; what waits is bounded in bytes.")


class HeaderExtractionSettings(Model):
    """Headers of messages that become attributes of resources."""

    extract_headers: bool = Field(False, description="Set `kafka.header.NAME` on the resources of a message.")
    headers: tuple[str, ...] = Field((), description="Which headers, by their exact names.")

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant."""
        if self.headers and not self.extract_headers:
            return [(("headers",), "has no effect: extract_headers is false")]
        return []


class ErrorBackoffSettings(Model):
    """How long to wait before a batch that the pipelines refuse is offered again."""

    enabled: bool = Field(False, description="Accepted; what is refused is offered again, always.")
    initial_interval: NonNegativeDuration = Field(5 * SECOND, description="Accepted; the pipelines say when.")
    max_interval: NonNegativeDuration = Field(30 * SECOND, description="Accepted.")
    multiplier: float = Field(1.5, ge=0, allow_inf_nan=False, description="Accepted.")
    randomization_factor: float = Field(0.5, ge=0, le=1, description="Accepted.")
    max_elapsed_time: NonNegativeDuration = Field(5 * MINUTE, description="Accepted; nothing is given up.")

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what can't be honoured."""
        if not self.enabled:
            return []
        return [((), "has no effect: what a pipeline refuses is offered again when it says so, and never given up")]


class OneMetric(Model):
    """Whether a metric is reported."""

    enabled: bool = Field(False, description="Report it.")


class OptionalMetricsSettings(Model):
    """Metrics that are off unless asked for."""

    kafka_receiver_records_delay: OneMetric = Field(
        default_factory=OneMetric, description="Seconds between a record's time and its receipt, as a histogram."
    )


class ReceiverTelemetrySettings(Model):
    """The receiver's own metrics."""

    metrics: OptionalMetricsSettings = Field(
        default_factory=OptionalMetricsSettings, description="Metrics that may be asked for."
    )


class Config(KafkaClientSettings):
    """Receive traces from Kafka; each partition is decided by itself, in the time of its records."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **KafkaClientSettings.of_the_collector,
        **dict.fromkeys(("logs", "metrics", "profiles"), _OTHER_SIGNAL),
        "topic": "write traces: {topics: [...]}",
        "encoding": "write traces: {encoding: ...}",
        "default_fetch_size": "write max_partition_fetch_size",
    }
    harmless: ClassVar[frozenset[str]] = frozenset({"logs", "metrics", "profiles"})

    traces: TracesSettings = Field(default_factory=TracesSettings, description="Which topics are read, and how.")
    group_id: str = Field("otel-collector", min_length=1, description="The consumer group.")
    group_instance_id: str = Field(
        "", description="This member's own name (static membership): it keeps its partitions across a restart."
    )
    group_rebalance_strategies: tuple[Strategy, ...] = Field(
        ("cooperative-sticky",),
        description="How partitions are shared out; the first that all members have: `range`, `roundrobin`, `sticky`, "
        "`cooperative-sticky`.",
    )
    group_rebalance_strategy: Strategy | None = Field(None, description="The older form, for one strategy.")
    initial_offset: Literal["latest", "earliest"] = Field(
        "latest", description="Where to begin in a partition of which the group has committed nothing."
    )
    session_timeout: PositiveDuration = Field(
        10 * SECOND, description="How long a member may be silent before its partitions go to others."
    )
    heartbeat_interval: PositiveDuration = Field(
        1 * SECOND,
        description="How often a member says that it is there, and hears of a rebalance: a partition that moves waits "
        "for as long. With the Collector's 3s it would wait longer than there, whose client asks at once.",
    )
    min_fetch_size: int = Field(1, gt=0, description="Bytes that a broker waits for before it answers.")
    max_fetch_size: int = Field(1048576, gt=0, description="Most bytes of an answer, but for a single larger batch.")
    max_fetch_wait: PositiveDuration = Field(250 * MILLISECOND, description="Longest wait for `min_fetch_size`.")
    max_partition_fetch_size: int = Field(1048576, gt=0, description="Most bytes of a partition in an answer.")
    rack_id: str = Field("", description="Where this member runs, to read from the closest replica.")
    autocommit: AutocommitSettings = Field(
        default_factory=AutocommitSettings, description="When is committed how far the group has come."
    )
    message_marking: MessageMarkingSettings = Field(
        default_factory=MessageMarkingSettings, description="When a message counts as consumed: once it is delivered."
    )
    partition_processing: PartitionProcessingSettings = Field(
        default_factory=PartitionProcessingSettings, description="Who waits for whom: nobody."
    )
    header_extraction: HeaderExtractionSettings = Field(
        default_factory=HeaderExtractionSettings, description="Headers that become attributes of resources."
    )
    error_backoff: ErrorBackoffSettings = Field(
        default_factory=ErrorBackoffSettings, description="When what was refused is offered again."
    )
    telemetry: ReceiverTelemetrySettings = Field(
        default_factory=ReceiverTelemetrySettings, description="The receiver's own metrics."
    )
    idle_timeout: NonNegativeDuration = Field(
        5 * SECOND,
        description="Once the end of a partition is reached its time is never less than the wall clock's minus this, "
        "so that what waits is decided although no record comes. 0s: the time is that of its records alone.",
    )
    checkpoints: CheckpointSettings = Field(
        default_factory=CheckpointSettings, description="Where the state of the processors is kept."
    )
    dead_letter: DeadLetterSettings | None = Field(
        None, description="Where messages go that can't be read; absent: they are told, counted and skipped."
    )

    exactly_once: bool = Field(
        False,
        description="Consume, decide, produce and commit in one transaction: each pipeline has one exporter, `kafka`, "
        "to the same brokers, and who reads its topic as `read_committed` finds every kept span once.",
    )

    @model_validator(mode="before")
    @classmethod
    def _read_older_strategy(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or data.get("group_rebalance_strategy") is None:
            return data
        if data.get("group_rebalance_strategies"):
            raise ValueError(
                "has both group_rebalance_strategy and group_rebalance_strategies: remove the first, the older form"
            )
        return {**data, "group_rebalance_strategies": [data["group_rebalance_strategy"]]}

    @field_validator("group_rebalance_strategies")
    @classmethod
    def _check_strategies(cls, strategies: tuple[Strategy, ...]) -> tuple[Strategy, ...]:
        if not strategies:
            raise ValueError("must not be empty")
        cooperative = [strategy for strategy in strategies if strategy in _COOPERATIVE]
        if cooperative and len(cooperative) < len(strategies):
            raise ValueError(
                f"librdkafka can't offer {cooperative[0]} beside strategies that move all partitions at once: "
                "name range and roundrobin, or sticky and cooperative-sticky"
            )
        return strategies

    @model_validator(mode="after")
    def _check_sizes_and_times(self) -> Self:
        if self.max_fetch_size < self.min_fetch_size:
            raise ValueError("max_fetch_size must not be less than min_fetch_size")
        if self.heartbeat_interval >= self.session_timeout:
            raise ValueError("heartbeat_interval must be shorter than session_timeout, a third of it at most is usual")
        return self

    @model_validator(mode="after")
    def _check_topics_written(self) -> Self:
        """What is written is not read again: a message that can't be read would be copied for ever."""
        written = {"checkpoints::topic": self.checkpoints.topic} if self.checkpoints.enabled else {}
        if self.dead_letter is not None:
            written["dead_letter::topic"] = self.dead_letter.topic
        for key, topic in written.items():
            if self.traces.reads(topic):
                raise ValueError(
                    f"{key} is {topic}, which traces::topics has read: name another topic, or with an expression "
                    f"exclude_topics: ['^{topic}$']"
                )
        return self

    @property
    def cooperative(self) -> bool:
        """Whether a rebalance moves some partitions and leaves the others where they are."""
        return self.group_rebalance_strategies[0] in _COOPERATIVE

    @property
    def assignors(self) -> str:
        """The strategies as librdkafka names them."""
        names = ["cooperative-sticky" if each in _COOPERATIVE else each for each in self.group_rebalance_strategies]
        return ",".join(dict.fromkeys(names))

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant, and what can't be honoured."""
        found = super().warnings()
        if self.group_rebalance_strategy is not None:
            found.append((("group_rebalance_strategy",), "is the older form of group_rebalance_strategies: [...]"))
        if "sticky" in self.group_rebalance_strategies:
            key = "group_rebalance_strategies" if self.group_rebalance_strategy is None else "group_rebalance_strategy"
            found.append(((key,), "librdkafka has no eager sticky: cooperative-sticky is offered to the group for it"))
        if self.exactly_once and not self.autocommit.enable:
            found.append(
                (("autocommit", "enable"), "has no effect: with exactly_once a transaction lasts the interval")
            )
        return found
