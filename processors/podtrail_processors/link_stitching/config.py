"""The configuration of `link_stitching`."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from podtrail.config.types import SECOND, Model, NonNegativeDuration, PositiveDuration
from podtrail_processors.link_stitching.lifecycle.config import LifecycleSettings

_MIB = 1 << 20


class Config(Model):
    """Settings of `link_stitching`.

    What is remembered is bounded by numbers of entries of bounded size: a Pod, an attempt, a trace or a waiting link
    takes at most about 1.3 KiB, names and ids of a Pod together 30 KiB if they are as long as they may be and eight
    Pods had its name, so that the defaults stay below 750 MiB whatever comes, held spans included. Pods as recorded on
    a node take about 10 KiB each, with `mode: lifecycle` 16.
    """

    mode: Literal["link", "lifecycle", "merge"] = Field(
        default="link",
        description="`link`: spans get links and stay in the traces that they came in. `lifecycle`: besides, each "
        "Pod gets a trace of its own, `PodLifecycle`, whose spans stand for what happened to it and link to that. "
        "`merge`: the spans themselves are moved into that trace, with the ids that they came with as attributes; all "
        "spans are held for `reorder_wait`.",
    )
    lifecycle: LifecycleSettings = Field(
        default_factory=LifecycleSettings, description="With `mode: lifecycle` and `merge`: when lives are told."
    )
    reorder_wait: NonNegativeDuration = Field(
        default=5 * SECOND,
        description="How long spans with links, attempts above all, are held, so that what started earlier but arrives "
        "or is decided later is still counted and linked in order. `0s` holds nothing.",
    )
    ttl: PositiveDuration = Field(
        default=900 * SECOND,
        description="How long a Pod, a trace or a link that waits for its target is remembered after it was last seen. "
        "Longer than the longest pause between two attempts (the scheduler retries after 5 minutes at the latest).",
    )
    max_pods: int = Field(default=20_000, ge=1, description="Pods remembered; the one not seen for longest goes first.")
    max_attempts: int = Field(
        default=40_000,
        ge=1,
        description="Attempts remembered of all Pods together; the Pod not seen for longest is forgotten first.",
    )
    max_attempts_per_pod: int = Field(
        default=16,
        ge=2,
        description="Attempts remembered of one Pod. Older ones are forgotten but stay counted, so numbers go on.",
    )
    max_traces: int = Field(
        default=50_000,
        ge=1,
        description="Traces of which is remembered whether they were kept, and if not why, so that links to them can "
        "be marked.",
    )
    max_waiting_links: int = Field(
        default=10_000,
        ge=1,
        description="Links remembered whose target has not been seen; it gets its back-links when it arrives.",
    )
    max_memory_mib: int = Field(
        default=0,
        ge=0,
        description="MiB that everything remembered may take, by an upper estimate; beyond it the oldest is forgotten. "
        "`0`: a quarter of the memory that `memory_limiter` or the container leaves to all components, and no bound "
        "where neither limits it.",
    )
    max_held_mib: int = Field(
        default=32,
        ge=1,
        description="MiB that spans held for `reorder_wait` may take; beyond it the longest held leave early.",
    )
    amendments: bool = Field(
        default=True,
        description="Send a small span `podtrail.amendment` as the child of a span that has left already when another "
        "span turns out to link to it. Without it, such a link is seen from its own side only.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.max_attempts < self.max_attempts_per_pod:
            raise ValueError("max_attempts must be at least max_attempts_per_pod")
        if self.ttl <= self.reorder_wait:
            raise ValueError("ttl must be longer than reorder_wait")
        if self.mode != "link" and self.ttl <= self.lifecycle.timeout + self.lifecycle.wait:
            raise ValueError("ttl must be longer than lifecycle::timeout and lifecycle::wait together")
        return self

    @property
    def max_held_bytes(self) -> int:
        """`max_held_mib` in bytes."""
        return self.max_held_mib * _MIB

    def most_remembered_bytes(self, budget: int) -> int:
        """Return the bytes that everything remembered may take; 0 for no bound.

        Args:
            budget: Bytes that all components together may hold; 0 if nothing limits them.
        """
        return self.max_memory_mib * _MIB or budget // 4

    def memory_bounds(self, budget: int) -> Mapping[str, int]:
        """Return the bytes that remembered entries and held spans may take."""
        remembered = self.most_remembered_bytes(budget)
        return {"max_memory_mib": remembered, "max_held_mib": self.max_held_bytes}
