"""What a queue is to do, in plain seconds and numbers, from the user's settings or without any."""

from dataclasses import dataclass
from typing import Literal

from podtrail.config.types import DeliverySettings

_NANOSECONDS = 1_000_000_000
_UNCONFIGURED_BYTES = 64 << 20
_LINGER = 0.05
"""A request costs about as much CPU as a hundred spans in it."""


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
class Plan:
    """Everything a sending queue needs to know."""

    consumers: int
    """How many requests may be under way at once."""
    sizer: Literal["requests", "items", "bytes"]
    capacity: int
    """How much may be waiting or under way, in the sizer's unit."""
    linger: float
    """Seconds that a request waits for more to join it."""
    blocks: bool
    """Whether a full queue makes the pipeline wait, or costs what does not fit."""
    timeout: float | None
    """Seconds that one try may take."""
    backoff: Backoff | None
    """None: nothing is tried twice."""


def plan_for(settings: DeliverySettings | None) -> Plan:
    """Return the plan for an exporter's settings.

    Without settings (a local file) everything waits rather than gets lost: one consumer, tried for ever. A queue that
    is not enabled is one that holds a single request and makes the pipeline wait for it.
    """
    if settings is None:
        return Plan(1, "bytes", _UNCONFIGURED_BYTES, 0.0, True, None, Backoff(0.5, 30.0, 2.0, 0.25, 0.0))
    queue, retry = settings.sending_queue, settings.retry_on_failure
    backoff = Backoff(
        first=retry.initial_interval / _NANOSECONDS,
        longest=retry.max_interval / _NANOSECONDS,
        multiplier=retry.multiplier,
        randomization=retry.randomization_factor,
        give_up_after=retry.max_elapsed_time / _NANOSECONDS,
    )
    return Plan(
        consumers=queue.num_consumers if queue.enabled else 1,
        sizer=queue.sizer if queue.enabled else "requests",
        capacity=queue.queue_size if queue.enabled else 1,
        linger=_LINGER if queue.enabled else 0.0,
        blocks=queue.block_on_overflow or not queue.enabled,
        timeout=settings.timeout / _NANOSECONDS or None,
        backoff=backoff if retry.enabled else None,
    )
