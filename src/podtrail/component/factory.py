"""How a component is found and made: `Factory` describes it, `Context` is what it gets from podtrail."""

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from podtrail.component.enrichment import EnrichingMemories
from podtrail.component.facts import Fact
from podtrail.component.ledger import Ledger
from podtrail.component.metrics import Metrics
from podtrail.component.refusals import RefusalWatch

ConfigClass = type[BaseModel]
Kind = Literal["receiver", "processor", "exporter", "extension"]


def _no_memory() -> int:
    return 0


def nothing_reclaimed(*, collect: bool) -> int:  # noqa: ARG001
    """Reclaim nothing: there is no process to measure, as in a replay."""
    return 0


def _no_time() -> int:
    return 0


def _nobody_listens(_: Fact) -> None:
    return


class Reclaim(Protocol):
    """See `Context.reclaim_memory`."""

    def __call__(self, *, collect: bool) -> int:
        """Return the bytes of memory in use afterwards."""


@dataclass(slots=True)
class IncomingBytes:
    """Bytes of requests, of all receivers together, from the first one received or decompressed on."""

    bytes: int = 0
    """What is being received or waits for room now."""
    ever: int = 0
    """What has been received since the start."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a component gets from podtrail. Ask nothing of the process, the clock or the environment but through it."""

    id: str
    """`type` or `type/name` as in the configuration."""
    pipeline: str = ""
    """`traces` or `traces/name` for a processor; empty for the others, which have one instance an id."""
    ledger: Ledger = field(default_factory=Ledger)
    """The pipeline's ledger: a processor counts there what it samples out, drops and creates."""
    metrics: Metrics = field(default_factory=Metrics)
    log: logging.LoggerAdapter[logging.Logger] = field(
        default_factory=lambda: logging.LoggerAdapter(logging.getLogger("podtrail"))
    )
    rng: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - sampling, not secrets
    resumed: bool = False
    """Made by a reload: what this process has written before is to be continued, not begun anew."""
    gates: frozenset[str] = frozenset()
    """Feature gates that are on."""
    memory_used: Callable[[], int] = _no_memory
    """Resident memory of the process in bytes, measured at most fifty times a second."""
    reclaim_memory: Reclaim = nothing_reclaimed
    """Gives freed memory back to the system, with `collect` after a collection of garbage; returns what is used then:
    resident memory without the part that is free for new objects."""
    enriching: EnrichingMemories = field(default_factory=EnrichingMemories)
    """Memories that shrink before spans are refused: a component registers its own."""
    memory_budget: int = 0
    """Bytes that all components together may hold, as `memory_limiter` or the container limits them; 0: unlimited."""
    refusals: RefusalWatch = field(default_factory=RefusalWatch)
    """Whether everything that is sent is refused, for health checks."""
    arriving: IncomingBytes = field(default_factory=IncomingBytes)
    """What receivers are receiving: memory that is used before anything is taken."""
    stopwatch: Callable[[], int] = _no_time
    """Nanoseconds since any moment, to measure what work takes; always 0 in a replay. Nothing may be decided by it."""
    lag: Callable[[], int] = _no_time
    """How many nanoseconds late the deadline is that the processor's pipeline is serving; always 0 in a replay."""
    tell: Callable[[Fact], None] = _nobody_listens
    """Tells every `FactListener` what no span tells."""
    support_files: Callable[[], Mapping[str, str]] = dict
    """What the process tells of itself for a support bundle: text without secrets, by the name of its file."""


@dataclass(frozen=True, slots=True)
class Factory:
    """One component type: what it is called, how it is configured, how it is made."""

    kind: Kind
    type: str
    Config: ConfigClass
    create: Callable[[Any, Context], Any]
    """`create(config, context)`; imports what is heavy, opens nothing."""
    finite: bool = False
    """Of a receiver type: whether its source may come to an end."""
    partitioned: bool = False
    """Of a receiver type: whether it is a `PartitionedReceiver`."""
    stores: bool = False
    """Of an extension type: whether it is a storage, which `durable` and `storage` may name."""
    aliases: tuple[str, ...] = ()
    """Older names that are accepted as well."""
