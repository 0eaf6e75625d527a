"""Receivers while they run: each feeds the pipelines that it leads to, also across a reload that leaves it as it is."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from podtrail.component import ComponentError, Receiver
from podtrail.component.failures import told
from podtrail.component.refusals import RefusalWatch
from podtrail.pipeline.clock import PipelineClock
from podtrail.pipeline.driver import Driver
from podtrail.pipeline.fan_out import DEADLINE, FanOutConsumer, Log
from podtrail.pipeline.partitioning import FedPipelines, MakePartitions, PartitionedConsumer
from podtrail.pipeline.running import LONGEST_STOP, Running
from podtrail.pipeline.traced_fan_out import TracedFanOut

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

_GRACE = 2.0
"""Seconds that a receiver's batches under way get on reload, before the receiver is started anew."""


class RunningReceivers:
    """The receivers of one graph, their tasks, and what they hand over to."""

    def __init__(
        self,
        receivers: Mapping[str, Running[Receiver]],
        clock: PipelineClock,
        make_partitions: MakePartitions | None,
        tracer: "Tracer | None" = None,
        refusals: RefusalWatch | None = None,
    ) -> None:
        """Run none yet.

        Args:
            receivers: those there are, by id.
            clock: of the pipelines.
            make_partitions: makes what partitioned receivers feed; None where there are none.
            tracer: makes podtrail's own spans of what they hand over; None for none.
            refusals: notes which batches are refused and accepted.
        """
        self._receivers = receivers
        self._clock = clock
        self._make_partitions = make_partitions
        make_consumer = FanOutConsumer if tracer is None else partial(TracedFanOut, tracer)
        self._make_consumer = partial(make_consumer, refusals=refusals)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._consumers: dict[str, FanOutConsumer] = {}
        self._partitions: dict[str, PartitionedConsumer] = {}

    def feed(self, id: str, drivers: Sequence[Driver], log: Log | None) -> None:
        """Have a receiver, which may run already, feed these pipelines; `log`: where it is written before, if it is."""
        if id in self._tasks:
            self._consumers[id].lead_to(drivers, log)
            return
        receiver = self._receivers[id]
        deadline = None if receiver.component.finite else DEADLINE
        consumer = self._consumers[id] = self._make_consumer(drivers, self._clock, deadline, receiver=id, log=log)
        self._tasks[id] = asyncio.create_task(receiver.component.run(consumer), name=f"receiver {id}")

    def feed_partitions(self, id: str, fed: Callable[[str], FedPipelines]) -> None:
        """Have a partitioned receiver feed the pipelines that are `fed` by it, or go on with those it was led to."""
        if id in self._tasks:
            self._partitions[id].resume()
            return
        assert self._make_partitions is not None, "who runs partitioned receivers says what is kept of partitions"
        component: Any = self._receivers[id].component
        consumer = self._partitions[id] = self._make_partitions(id, fed(id), self._clock)
        self._tasks[id] = asyncio.create_task(component.run(consumer), name=f"receiver {id}")

    async def ended(self, timers: Collection[asyncio.Task[None]], *, finite_only: bool) -> None:
        """Return when every receiver is exhausted; with `finite_only`, when those are that can be.

        An error in a receiver or one of the `timers` of the pipelines ends the run with that error.

        Raises:
            ComponentError: a receiver fails; it names the receiver.
        """
        finite = {task for id, task in self._tasks.items() if self._receivers[id].component.finite}
        sources = set(self._tasks.values())
        awaited = finite if finite_only and finite else sources
        pending = sources | set(timers)
        while awaited & pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for id, source in self._tasks.items():
                if source in done and not source.cancelled() and isinstance(error := source.exception(), Exception):
                    self._receivers[id].failures.report("run", error, "podtrail stops")
                    raise ComponentError(f"receivers::{id}: failed in run: {told(error)}") from error
            for task in done:
                task.result()

    async def stop_but(self, goes_on: Mapping[str, Running[Receiver]]) -> Sequence[str]:
        """Stop those that are not among `goes_on`; return the others, which are let in no further."""
        shared = [id for id in self._tasks if goes_on.get(id) is self._receivers[id]]
        for id in shared:
            (self._partitions[id] if id in self._partitions else self._consumers[id]).shut()
        await self._stop([id for id in self._tasks if id not in shared])
        return shared

    async def settle(self, shared: Sequence[str]) -> None:
        """Return when nothing of these is between two pipelines; stop those where something is for too long."""
        waited = [id for id in shared if id not in self._partitions]  # what waits in one waits between two steps
        idle = await asyncio.gather(*(self._consumers[id].idle(_GRACE) for id in waited))
        await self._stop([id for id, is_idle in zip(waited, idle, strict=True) if not is_idle])

    async def _stop(self, ids: Sequence[str]) -> None:
        tasks = [self._tasks.pop(id) for id in ids]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LONGEST_STOP)
        for id, task in zip(ids, tasks, strict=True):
            if not task.done():
                self._receivers[id].failures.report("run", TimeoutError("it goes on although it was told to stop"))
        await asyncio.gather(*[task for task in tasks if task.done()], return_exceptions=True)
        await asyncio.gather(*[self._receivers[id].stop() for id in ids])

    def take_over(self, before: "RunningReceivers") -> None:
        """Go on with those that run, once whoever ran them has stopped the others."""
        for id in [id for id in self._receivers if id in before._tasks]:
            self._tasks[id] = before._tasks.pop(id)
            if id in before._partitions:
                self._partitions[id] = before._partitions[id]
            else:
                self._consumers[id] = before._consumers[id]

    def lead_partitions_to(self, fed: Callable[[str], FedPipelines]) -> None:
        """Have the pipelines that are `fed` by each partitioned receiver take over in its partitions."""
        for id, consumer in self._partitions.items():
            consumer.lead_to(fed(id))
