"""How an exporter delivers: timeout, retry, sending queue, with keys and defaults of the Collector's exporterhelper."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from podtrail.config.duration import MINUTE, SECOND, NonNegativeDuration
from podtrail.config.model import Model, WarningPath

Sizer = Literal["requests", "items", "bytes"]


class RetrySettings(Model):
    """Retry of deliveries that failed but may succeed later (`retry_on_failure:`), with exponential back-off."""

    enabled: bool = Field(
        True, description="Try again after a retryable failure; otherwise the batch is dropped and counted."
    )
    initial_interval: NonNegativeDuration = Field(5 * SECOND, description="Wait before the first retry.")
    max_interval: NonNegativeDuration = Field(30 * SECOND, description="Longest wait between two tries.")
    max_elapsed_time: NonNegativeDuration = Field(
        5 * MINUTE,
        description="Give a batch up after this long; 0s: never, which is the default for what is on disk "
        "(`sending_queue::storage`, `durable`).",
    )
    multiplier: float = Field(
        1.5, ge=0, allow_inf_nan=False, description="Factor by which the wait grows from try to try."
    )
    randomization_factor: float = Field(
        0.5, ge=0, le=1, description="Share of the wait that is drawn at random: 0.5 gives 0.5 to 1.5 times the wait."
    )

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.enabled and 0 < self.max_elapsed_time < max(self.initial_interval, self.max_interval):
            raise ValueError(
                "max_elapsed_time must not be shorter than initial_interval and max_interval (0s: never give up)"
            )
        return self


class QueueSettings(Model):
    """The queue in front of an exporter (`sending_queue:`)."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "batch": "put the batch processor last in the pipeline; small requests that wait leave together in any case",
    }
    harmless: ClassVar[frozenset[str]] = frozenset({"batch"})

    enabled: bool = Field(True, description="Have a queue; otherwise the pipeline waits for each delivery.")
    num_consumers: int = Field(10, gt=0, description="Batches under way at once.")
    queue_size: int = Field(
        1000,
        gt=0,
        description="Capacity in units of `sizer`. Small requests that wait leave together, up to 8192 spans and "
        "512 KiB, and count as one of `requests`: only `items` and `bytes` bound what the queue holds exactly.",
    )
    sizer: Sizer = Field(
        "requests",
        description="What fills the queue: `requests` (batches that leave as one), `items` (spans) or `bytes`.",
    )
    block_on_overflow: bool = Field(
        False,
        description="When full, have senders wait for room, for 4 s at most. Otherwise they are refused at once or, "
        "behind a sampler or `batch` or where another exporter has room, what does not fit is dropped and counted; "
        "never with `storage`.",
    )
    storage: str | None = Field(
        None,
        min_length=1,
        description="A storage extension (`file_storage`), listed under `service::extensions`: the queue is kept on "
        "disk, and what was taken is sent after a restart. Absent: it is in memory.",
    )
    wait_for_result: bool = Field(False, description="Only `false`: the queue acknowledges a batch once it holds it.")

    @field_validator("wait_for_result")
    @classmethod
    def _refuse_waiting(cls, value: bool) -> bool:
        if value:
            raise ValueError(
                "can't be true: podtrail acknowledges spans once its pipeline holds them; "
                "set sending_queue::enabled: false to make the pipeline wait for each delivery"
            )
        return value

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant."""
        if self.storage is not None and not self.enabled:
            return [(("storage",), "has no effect without a queue: enabled is false")]
        return []


class DeliverySettings(Model):
    """Base of the configuration of every exporter that delivers over a network or may fail for a while."""

    lingers: ClassVar[float] = 0.05
    """Seconds that a small request waits for more: one costs about as much CPU as a hundred spans in it."""

    timeout: NonNegativeDuration = Field(5 * SECOND, description="Longest time one try may take; 0s: no limit.")
    retry_on_failure: RetrySettings = Field(default_factory=RetrySettings, description="Retry of failed deliveries.")
    sending_queue: QueueSettings = Field(
        default_factory=QueueSettings, description="The queue in front of the exporter."
    )

    def memory_bounds(self, budget: int) -> Mapping[str, int]:  # noqa: ARG002 - it takes no share
        """Return the bytes that the queue may take where it is bounded in bytes; only delivery empties it."""
        queue = self.sending_queue
        bounded = queue.enabled and queue.sizer == "bytes" and queue.storage is None
        return {"sending_queue::queue_size": queue.queue_size if bounded else 0}
