"""`memory_limiter`: refuses spans while the process uses too much memory. The Collector's processor of that name.

It refuses at the door, before any pipeline has taken the batch, with an error that tells the sender to try again.
Resident memory is measured once in an interval, and before what has come in since could exceed the limit. Before
anything is refused, freed memory is given back to the system, garbage is collected, and memories that only enrich
(numbers, links, pages) forget their older halves.
"""

import os
from typing import Self

from pydantic import Field, model_validator

from podtrail.component import Context, Factory, Refused, StartError, Taken
from podtrail.component.container import container_limit
from podtrail.component.passing import PassingProcessor
from podtrail.config.model import WarningPath
from podtrail.config.types import SECOND, Model, NonNegativeDuration
from podtrail.otlp import Batch

_MIB = 1 << 20
_COPIES = 2
"""As which a request stands in memory: as it came, and as what it became."""
_GROUP_BYTES = 400
"""What a group takes besides its bytes."""
_LEAST_SHRUNK = 1 << 20
"""Bytes of enriching memories below which to forget more is of no use."""
_WORTH = 0.05
"""Share of the memory that a collection has to free to be worth repeating as often."""
_MOST_DOUBLED = 20


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
    min_gc_interval_when_soft_limited: NonNegativeDuration = Field(
        default=10 * SECOND, description="Least time between forced garbage collections below the hard limit."
    )
    min_gc_interval_when_hard_limited: NonNegativeDuration = Field(
        default=0, description="The same above the hard limit."
    )
    max_gc_interval_when_soft_limited: NonNegativeDuration = Field(
        default=30 * SECOND,
        description="To how much that time is doubled while collections free less than 5%; `0s`: it stays.",
    )
    max_gc_interval_when_hard_limited: NonNegativeDuration = Field(
        default=30 * SECOND, description="The same above the hard limit."
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
        self._check_collections()
        return self

    def _check_collections(self) -> None:
        soft, hard = self.min_gc_interval_when_soft_limited, self.min_gc_interval_when_hard_limited
        if soft < hard:
            raise ValueError("min_gc_interval_when_soft_limited must not be shorter than ..._when_hard_limited")
        most_soft, most_hard = self.max_gc_interval_when_soft_limited, self.max_gc_interval_when_hard_limited
        if 0 < most_soft < most_hard:
            raise ValueError("max_gc_interval_when_soft_limited must not be shorter than ..._when_hard_limited")
        if 0 < most_soft < soft or 0 < most_hard < hard:
            raise ValueError("a max_gc_interval_... must not be shorter than its min_gc_interval_..., unless 0s")

    def warnings_in_partitions(self) -> list[tuple[WarningPath, str]]:
        """Return why it had better not stand there."""
        text = (
            "a partition's time waits with what is refused; where what is held is due only after that, it stands still"
        )
        return [((), f"{text}: remove it, and bound tail_sampling by num_traces and maximum_held_mib")]

    def allowed_bytes(self) -> int:
        """Return the bytes above which spans are refused; 0 if the memory of the machine is not known."""
        try:
            return self.soft_limit(0 if self.limit_mib else total_memory(container_limit()))
        except StartError:
            return 0

    def hard_limit(self, total: int) -> int:
        """Return the bytes that may be used, given the bytes of memory there are."""
        return self.limit_mib * _MIB or total * self.limit_percentage // 100

    def soft_limit(self, total: int) -> int:
        """Return the bytes above which spans are refused, given the bytes of memory there are."""
        hard = self.hard_limit(total)
        spike = self.spike_limit_mib * _MIB if self.limit_mib else total * self.spike_limit_percentage // 100
        return hard - (spike or hard // 5)


class _Collections:
    """When garbage is to be collected by force: at intervals, which grow as long as there is little to collect."""

    def __init__(self, config: Config) -> None:
        self._check_interval = config.check_interval
        self._soft = (config.min_gc_interval_when_soft_limited, config.max_gc_interval_when_soft_limited)
        self._hard = (config.min_gc_interval_when_hard_limited, config.max_gc_interval_when_hard_limited)
        self._last: int | None = None
        self._futile = 0

    def due(self, now: int, *, hard: bool) -> bool:
        """Say whether it is time, above the hard limit or below it."""
        least, most = self._hard if hard else self._soft
        if most and self._futile:
            doubled = max(least, self._check_interval * 95 // 100) << self._futile
            least = min(doubled, max(least, most))
        return self._last is None or now >= self._last + least

    def done(self, now: int, before: int, after: int) -> None:
        """Take note of what one has freed."""
        self._last = now
        self._futile = 0 if before - after >= before * _WORTH else min(self._futile + 1, _MOST_DOUBLED)

    def relax(self) -> None:
        """There is memory again."""
        self._futile = 0


class MemoryLimiter(PassingProcessor):
    """Asks for the memory in use once in `check_interval` and refuses while it is above the soft limit."""

    def __init__(self, config: Config, total: int, context: Context) -> None:
        self._check_interval = config.check_interval
        self._hard_limit, self._soft_limit = config.hard_limit(total), config.soft_limit(total)
        self._collections = _Collections(config)
        self._memory_used, self._reclaim_memory = context.memory_used, context.reclaim_memory
        self._arriving = context.arriving
        self._enriching = context.enriching
        self._log = context.log
        self._checked: int | None = None
        self._used = 0
        self._taken = 0
        """Bytes of batches since memory was measured."""
        self._arrived = 0
        """What had been received when memory was measured."""
        self._labels = (context.id,)
        self._accepted = context.metrics.counter("otelcol_processor_accepted_spans", "Spans let in.", ("processor",))
        self._shrunk = context.metrics.counter(
            "otelcol_processor_memory_limiter_forgotten_bytes",
            "Estimated bytes of numbers, links and pages that were forgotten because memory was short.",
            ("processor",),
        )
        self._refused = context.metrics.counter(
            "otelcol_processor_refused_spans", "Spans refused for want of memory.", ("processor",)
        )

    def admit(self, batch: Batch, now: int) -> None:
        """Refuse a batch while too much memory is used.

        Raises:
            Refused: more is used than the soft limit.
        """
        try:
            self._ask(now, batch.size + _GROUP_BYTES * len(batch.groups))
        except Refused:
            self._refused.add(batch.span_count, *self._labels)
            raise

    def ask(self, now: int) -> None:
        """Refuse what comes while too much memory is used.

        Raises:
            Refused: more is used than the soft limit; its `after` is when it is measured again.
        """
        self._ask(now, 0)

    def _ask(self, now: int, size: int) -> None:
        since = size + self._taken + _COPIES * (self._arriving.ever - self._arrived)
        may_exceed = self._used <= self._soft_limit < self._used + since
        if may_exceed or self._checked is None or now >= self._checked + self._check_interval:
            self._checked = now
            self._check(now)
        if self._used > self._soft_limit:
            raise Refused(
                f"{self._used // _MIB} MiB of memory in use, {self._soft_limit // _MIB} MiB allowed",
                after=(self._checked + self._check_interval - now) / SECOND,
            )

    def _check(self, now: int) -> None:
        before, self._used = self._used, self._memory_used()
        if self._used > self._soft_limit:
            self._used = self._reclaimed(now)
        else:
            self._collections.relax()
        self._taken, self._arrived = 0, self._arriving.ever
        if self._used > self._soft_limit >= before:
            self._log.warning(
                "refusing spans: %d MiB of memory in use, %d MiB allowed",
                self._used // _MIB,
                self._soft_limit // _MIB,
            )
        elif before > self._soft_limit >= self._used:
            self._log.info("taking spans again: %d MiB of memory in use", self._used // _MIB)

    def _reclaimed(self, now: int) -> int:
        used = self._reclaim_memory(collect=False)
        if used > self._soft_limit and self._collections.due(now, hard=used > self._hard_limit):
            before, used = used, self._reclaim_memory(collect=True)
            self._collections.done(now, before, used)
        while used > self._soft_limit and (size := self._enriching.size()) > _LEAST_SHRUNK:
            self._enriching.shrink()
            freed, used = size - self._enriching.size(), self._reclaim_memory(collect=False)
            self._shrunk.add(freed, *self._labels)
            self._log.warning(
                "memory is short: forgot %d MiB of numbers, links and pages: %d MiB in use, %d MiB allowed",
                freed // _MIB,
                used // _MIB,
                self._soft_limit // _MIB,
            )
            if not freed:
                break
        return used

    def add(self, batch: Batch, now: int) -> Taken:  # noqa: ARG002 - it was asked in `admit`
        """Pass a batch on: what was admitted is not refused any more."""
        self._accepted.add(batch.span_count, *self._labels)
        self._taken += batch.size + _GROUP_BYTES * len(batch.groups)
        return Taken([batch])

    def take_over(self, predecessor: "MemoryLimiter", now: int) -> None:  # noqa: ARG002
        """Go on from the last measurement."""
        self._checked, self._used = predecessor._checked, predecessor._used
        self._taken, self._arrived = predecessor._taken, predecessor._arrived


def total_memory(container: int) -> int:
    """Return the bytes of memory there are: the machine's, or the container's limit (0: none) if that is less.

    Raises:
        StartError: the system does not say.
    """
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError) as error:
        raise StartError("the memory of this machine is not known: set limit_mib") from error
    return min(total, container or total)


def _create(config: Config, context: Context) -> MemoryLimiter:
    total = 0 if config.limit_mib else total_memory(container_limit())
    return MemoryLimiter(config, total, context)


FACTORY = Factory(kind="processor", type="memory_limiter", Config=Config, create=_create)
