"""`memory_limiter`: refuses spans while the process uses too much memory. The Collector's processor of that name.

It refuses at the door, before any pipeline has taken the batch, with an error that tells the sender to try again.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from podtrail.component import Context, Factory, Refused, StartError, Taken
from podtrail.config.types import SECOND, Model, NonNegativeDuration
from podtrail.otlp import Batch
from podtrail_processors.passing import Passing

_MIB = 1 << 20
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Config(Model):
    """Settings of `memory_limiter`. A limit is needed, in MiB or as a percentage; MiB count when both are given."""

    check_interval: NonNegativeDuration = Field(
        default=0, description="Time between measurements of memory usage. Needed; `1s` is a good value."
    )
    limit_mib: int = Field(default=0, ge=0, description="Memory the process may use, in MiB: the hard limit.")
    limit_percentage: int = Field(
        default=0,
        ge=0,
        le=100,
        description="The hard limit as a percentage of the memory there is: the container's limit, or all of the "
        "machine's.",
    )
    spike_limit_mib: int = Field(
        default=0,
        ge=0,
        description="Expected rise between two measurements, in MiB. Spans are refused above the hard limit less this. "
        "`0`: 20% of the hard limit.",
    )
    spike_limit_percentage: int = Field(
        default=0,
        ge=0,
        le=100,
        description="The same as a percentage of the memory there is; used with `limit_percentage`.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.check_interval:
            raise ValueError("check_interval must be greater than zero, for example 1s")
        if not self.limit_mib and not self.limit_percentage:
            raise ValueError("limit_mib or limit_percentage must be greater than zero")
        if self.limit_mib and self.spike_limit_mib >= self.limit_mib:
            raise ValueError("spike_limit_mib must be smaller than limit_mib")
        if not self.limit_mib and self.spike_limit_percentage >= self.limit_percentage:
            raise ValueError("spike_limit_percentage must be smaller than limit_percentage")
        return self

    def soft_limit(self, total: int) -> int:
        """Return the bytes above which spans are refused, given the bytes of memory there are."""
        if self.limit_mib:
            hard, spike = self.limit_mib * _MIB, self.spike_limit_mib * _MIB
        else:
            hard, spike = total * self.limit_percentage // 100, total * self.spike_limit_percentage // 100
        return hard - (spike or hard // 5)


class MemoryLimiter(Passing):
    """Asks for the memory in use once in `check_interval` and refuses while it is above `soft_limit` bytes."""

    def __init__(self, check_interval: int, soft_limit: int, context: Context) -> None:
        self._check_interval = check_interval
        self._soft_limit = soft_limit
        self._memory_used = context.memory_used
        self._log = context.log
        self._checked: int | None = None
        self._used = 0
        self._labels = (context.id,)
        self._accepted = context.metrics.counter("otelcol_processor_accepted_spans", "Spans let in.", ("processor",))
        self._refused = context.metrics.counter(
            "otelcol_processor_refused_spans", "Spans refused for want of memory.", ("processor",)
        )

    def admit(self, batch: Batch, now: int) -> None:
        """Raise `Refused` while too much memory is used; `after` is when it is measured again."""
        if self._checked is None or now >= self._checked + self._check_interval:
            self._measure(now)
        if self._used <= self._soft_limit:
            return
        self._refused.add(batch.span_count, *self._labels)
        assert self._checked is not None
        raise Refused(
            f"{self._used // _MIB} MiB of memory in use, {self._soft_limit // _MIB} MiB allowed",
            after=(self._checked + self._check_interval - now) / SECOND,
        )

    def _measure(self, now: int) -> None:
        before = self._used
        self._checked, self._used = now, self._memory_used()
        if self._used > self._soft_limit >= before:
            self._log.warning(
                "refusing spans: %d MiB of memory in use, %d MiB allowed",
                self._used // _MIB,
                self._soft_limit // _MIB,
            )
        elif before > self._soft_limit >= self._used:
            self._log.info("taking spans again: %d MiB of memory in use", self._used // _MIB)

    def add(self, batch: Batch, now: int) -> Taken:  # noqa: ARG002 - it was asked in `admit`
        """Pass a batch on: what was admitted is not refused any more."""
        self._accepted.add(batch.span_count, *self._labels)
        return Taken([batch])

    def take_over(self, predecessor: "MemoryLimiter", now: int) -> None:  # noqa: ARG002
        """Go on from the last measurement."""
        self._checked, self._used = predecessor._checked, predecessor._used


def total_memory(cgroup_limits: Sequence[str] = _CGROUP_LIMITS) -> int:
    """Return the bytes of memory there are: the machine's, or the control group's limit if that is less.

    Raises:
        StartError: the system does not say.
    """
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError) as error:
        raise StartError("the memory of this machine is not known: set limit_mib") from error
    for path in cgroup_limits:
        try:
            limit = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if limit.isdecimal():
            total = min(total, int(limit))
    return total


def _create(config: Config, context: Context) -> MemoryLimiter:
    total = 0 if config.limit_mib else total_memory()
    return MemoryLimiter(config.check_interval, config.soft_limit(total), context)


FACTORY = Factory(kind="processor", type="memory_limiter", Config=Config, create=_create)
