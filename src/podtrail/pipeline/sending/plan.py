"""What a queue is to do, in plain seconds and numbers, from the user's settings or without any."""

from dataclasses import dataclass
from typing import Literal

from podtrail.config.types import DeliverySettings

_NANOSECONDS = 1_000_000_000
_UNCONFIGURED_BYTES = 64 << 20
PATIENCE = 2.0
"""Seconds without a delivery after which a queue counts as stuck, shorter than the wait of anybody who sends."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait between tries. All in seconds."""

    first: float
    longest: float
    multiplier: float
    randomization: float
    """A wait is drawn from this share below to this share above the interval."""
    give_up_after: float
    """Since the first try; 0 for never."""


@dataclass(frozen=True, slots=True)
class SendingPlan:
    """Everything a sending queue needs to know."""

    consumers: int
    """How many requests may be under way at once."""
    sizer: Literal["requests", "items", "bytes"]
    capacity: int
    """How much may be waiting or under way, in the sizer's unit."""
    linger: float
    """Seconds that a request waits for more to join it."""
    patience: float | None
    """What happens to what does not fit. None: it is lost. Otherwise it waits outside for as long as the queue has
    delivered something in so many seconds, and beyond as long as it keeps nothing from other exporters."""
    remedy: str
    """What its users can do when the queue is full."""
    timeout: float | None
    """Seconds that one try may take."""
    backoff: Backoff | None
    """None: nothing is tried twice."""


def plan_for(settings: DeliverySettings | None, *, stored: bool = False) -> SendingPlan:
    """Return the plan for an exporter's settings; `stored`: what it is to deliver is on disk.

    Without settings (a local file) there is one consumer that tries for ever, and nothing is lost that can wait without
    holding other exporters up. A queue that is not enabled is one that holds a single request and has others wait.
    """
    if settings is None:
        remedy = f"look at what it writes to, which {_UNCONFIGURED_BYTES >> 20} MiB wait for"
        return SendingPlan(1, "bytes", _UNCONFIGURED_BYTES, 0.0, 0.0, remedy, None, Backoff(0.5, 5.0, 2.0, 0.25, 0.0))
    queue, retry = settings.sending_queue, settings.retry_on_failure
    backoff = Backoff(
        first=retry.initial_interval / _NANOSECONDS,
        longest=retry.max_interval / _NANOSECONDS,
        multiplier=retry.multiplier,
        randomization=retry.randomization_factor,
        give_up_after=_give_up_after(settings, stored=stored),
    )
    return SendingPlan(
        consumers=queue.num_consumers if queue.enabled else 1,
        sizer=queue.sizer if queue.enabled else "requests",
        capacity=queue.queue_size if queue.enabled else 1,
        linger=settings.lingers if queue.enabled else 0.0,
        patience=PATIENCE if queue.block_on_overflow or not queue.enabled else None,
        remedy="look at where it sends to; raise sending_queue::queue_size to bridge longer outages, "
        "num_consumers when it is merely slow",
        timeout=settings.timeout / _NANOSECONDS or None,
        backoff=backoff if retry.enabled else None,
    )


def _give_up_after(settings: DeliverySettings, *, stored: bool) -> float:
    """Return after how many seconds a batch is given up: what is on disk never, unless that is asked for."""
    retry = settings.retry_on_failure
    if stored and "max_elapsed_time" not in retry.model_fields_set:
        return 0.0
    return retry.max_elapsed_time / _NANOSECONDS
