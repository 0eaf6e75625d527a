"""What a receiver, a processor, an exporter and an extension are.

I/O at the edges, decisions in the middle: receivers, exporters and extensions are asynchronous context managers that
live on the event loop; processors are synchronous state machines that are told the time and never ask for it.
All times are integer nanoseconds since the Unix epoch.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

from podtrail.otlp import Batch

Consumer = Callable[[Batch], Awaitable[None]]
"""Hands a batch to every pipeline of a receiver. Returns when all have taken it; raises `Refused` when none has, `Lost`
when a component failed on it: then it must not be offered again."""


@runtime_checkable
class ImmediateConsumer(Protocol):
    """What a `Consumer` may offer besides, for receivers with many requests: no task, no await where none is needed."""

    def take(self, batch: Batch) -> bool:
        """Hand a batch over if nothing has to be waited for; return whether it was.

        Raises:
            Refused: no pipeline has taken it; worth another try after `Refused.after` seconds.
            Lost: a processor failed on it; not to be offered again.
        """


@runtime_checkable
class AdmittingConsumer(Protocol):
    """What a `Consumer` may offer besides, for receivers of large requests: a question while one is still coming in."""

    def ask(self) -> None:
        """Ask whether anything would be taken now.

        Raises:
            Refused: nothing would, whatever it is.
        """


class Receiver(AbstractAsyncContextManager["Receiver"], Protocol):
    """Takes spans in. Entering it binds its ports and opens its files, leaving it lets go of them.

    Errors on entering that are the user's to mend (a port in use, a missing file) are `StartError`.
    """

    finite: bool
    """Whether `run` ends by itself when the source is exhausted; a server's never does."""

    async def run(self, consume: Consumer) -> None:
        """Feed the pipelines; end when a finite source is exhausted. A cancelled run stops taking new work at once.

        `consume` may raise `Refused`: a server answers it in its protocol, a source that can wait tries again. `Lost`
        is answered with an error that nobody repeats; a source goes on with what comes next.
        """


class Exporter(AbstractAsyncContextManager["Exporter"], Protocol):
    """Lets spans out. Queue, retry and counting are done around it by the pipeline."""

    async def send(self, batch: Batch) -> int:
        """Deliver a batch; return how many of its spans the other side rejected for good (partial success).

        Raises:
            Retryable: worth trying again, not before `after` seconds.
            Permanent: this batch can never be delivered.
        """


class Extension(AbstractAsyncContextManager["Extension"], Protocol):
    """Serves beside the pipelines: health, pages. Entering starts it, leaving stops it."""


class Taken(NamedTuple):
    """What a processor did with a batch."""

    out: Sequence[Batch] = ()
    """What leaves at once."""
    rest: Batch | None = None
    """What there was no room for; the driver offers it again after `deadline()`."""


class Processor(Protocol):
    """A deterministic state machine: the same calls give the same answers, whatever the wall clock says.

    Nothing refuses a span after taking it. A processor that may refuse is asked beforehand (`AdmitsBatches`,
    `AdmitsRequests`). One that holds nothing says so (`PassesOn`).

    The law of `deadline()`: it covers everything inside, memories that expire included; calling `expire(d, …)` until
    it returns nothing moves it past `d`; it is None only when nothing waits; an early `expire` changes nothing.
    """

    def add(self, batch: Batch, now: int) -> Taken:
        """Take a batch that arrives at `now`, never before the last `now`."""

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        """Return what leaves because time has passed, about `limit` spans at a time; still due? It is called again.

        A call that had work to do but lets nothing go returns an empty `Batch`; an empty sequence means: nothing due.
        """

    def deadline(self) -> int | None:
        """Return when `expire` next has work to do."""

    def held(self) -> int:
        """Return the number of spans inside."""

    def held_since(self) -> int | None:
        """Return the arrival of the oldest span inside, or told of by a verdict that has not left.

        A log in front of the pipeline must still keep what arrived since.
        """

    def take_over(self, predecessor: Self, now: int) -> None:
        """On reload: take what `predecessor` (same type, perhaps another configuration) holds, arrivals and all.

        The predecessor holds nothing afterwards.
        """

    def drain(self, now: int) -> Sequence[Batch]:
        """Shut down: let go of everything, deciding what is undecided."""


@runtime_checkable
class PassesOn(Protocol):
    """A processor that can say that it holds nothing: what comes in leaves at once or never.

    Where that is said of all processors of a pipeline, senders are refused for want of room in the queues behind it.
    """

    @property
    def passes_on(self) -> bool:
        """Whether it holds nothing, configured as it is."""


@runtime_checkable
class AdmitsBatches(Protocol):
    """A processor that may refuse a batch: it is asked before any pipeline that the batch goes to takes it."""

    def admit(self, batch: Batch, now: int) -> None:
        """Ask whether a batch can be taken at `now`, Unix nanoseconds.

        Raises:
            Refused: it can't.
        """


@runtime_checkable
class AdmitsRequests(Protocol):
    """A processor that may refuse whatever comes: it is asked while a large request is still being received."""

    def ask(self, now: int) -> None:
        """Ask whether anything can be taken at `now`, Unix nanoseconds.

        Raises:
            Refused: nothing can.
        """


@runtime_checkable
class DecidingConfig(Protocol):
    """The `Config` of a processor that decides which traces are kept, and lets a `Verdict` leave for each of them.

    What compares decisions (`podtrail replay`, `backtest`, `test`) learns from it what there is to be seen in the
    verdicts: `Verdict.explained` has the vote and the reason of each policy.
    """

    @property
    def policy_names(self) -> Sequence[str]:
        """The policies whose votes a verdict tells, in the order of the configuration; empty: it decides nothing."""

    @property
    def asks_all_policies(self) -> bool:
        """Whether every policy votes on every trace; otherwise those behind the first yes may not be asked."""


@runtime_checkable
class StoringConfig(Protocol):
    """The `Config` of what may keep something in a storage.

    Of a processor: what it holds, its pipelines are durable then. Of a receiver: how far it has come (`WantsStorage`).
    """

    @property
    def storage(self) -> str | None:
        """The id of a storage extension; None: it is in memory only."""


@runtime_checkable
class PartitionAwareConfig(Protocol):
    """The `Config` of a processor that does some things otherwise in a partition (`podtrail.component.partitions`).

    There nothing is decided by the memory of the process or by how late it is, and what is undecided at a stop is left
    to the next owner.
    """

    def warnings_in_partitions(self) -> Sequence[tuple[tuple[str | int, ...], str]]:
        """Return what has no effect there, or harms: where in the configuration (`()`: all of it), and why."""


@runtime_checkable
class LimitsMemory(Protocol):
    """The `Config` of a processor that refuses spans while the process uses too much memory."""

    def allowed_bytes(self) -> int:
        """Return the bytes of memory above which it refuses spans; 0 if that is not known."""


@runtime_checkable
class BoundsMemory(Protocol):
    """The `Config` of a component that keeps something in memory for longer than spans are under way."""

    def memory_bounds(self, budget: int) -> Mapping[str, int]:
        """Return how many bytes that may take, by the key of the configuration that bounds it.

        Args:
            budget: `Context.memory_budget`, of which some memories take a share.
        """


@runtime_checkable
class WantsStorage(Protocol):
    """A receiver that remembers across restarts how far it has come; its `Config` is a `StoringConfig`."""

    def keep_in(self, storage: Any) -> None:
        """Keep that in this storage extension (a `podtrail.storage.StorageProvider`); called before it is entered."""


@runtime_checkable
class WantsVerdicts(Protocol):
    """An exporter that may want the verdicts that travel with batches; others get batches without."""

    @property
    def wants_verdicts(self) -> bool:
        """Whether it does, configured as it is."""


@runtime_checkable
class WantsArrivals(Protocol):
    """An exporter that may want batches as they arrived: each with its own arrival, neither put together nor cut."""

    @property
    def wants_arrivals(self) -> bool:
        """Whether it does, configured as it is."""


@runtime_checkable
class PipelineWatcher(Protocol):
    """An extension that is told when the pipelines take spans and when they no longer do (the Collector's word)."""

    def ready(self) -> None:
        """All pipelines run."""

    def not_ready(self) -> None:
        """The pipelines are about to stop."""


@runtime_checkable
class ServesPage(Protocol):
    """An extension with a page that people look at."""

    @property
    def page(self) -> str:
        """Its address with the port that was bound; "" before it is entered."""


@runtime_checkable
class BatchObserver(Protocol):
    """An extension that is shown every batch that leaves a pipeline's processors, verdicts included."""

    def observe(self, pipeline: str, batch: Batch) -> None:
        """Take note of a batch; must be quick and must not raise."""
