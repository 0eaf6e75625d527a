"""Runs the simulation beside the pipelines, at its own pace or at theirs."""

import asyncio
import time
from dataclasses import replace
from types import TracebackType
from typing import Self

from podtrail_scheduler import TracedSimulation, Workload

from podtrail.component import Consumer, Context, GatedPod
from podtrail.otlp import Batch, read_request
from podtrail_receivers.handing_over import HandingOver

_NANOSECONDS = 1_000_000_000


class SchedulerSource:
    """Feeds the spans of a simulated scheduler; ends when the workload is through."""

    finite = True

    def __init__(self, workload: Workload, speed: float, begins: int | None, context: Context) -> None:
        """Run `workload` at `speed` simulated seconds a second, 0 for as fast as it goes.

        Simulated time begins at `begins`, Unix nanoseconds, or so that it ends about now.
        """
        self._workload = workload
        self._speed = speed
        self._begins = begins
        self._log = context.log
        self._tell = context.tell
        self._gated: dict[str, GatedPod] = {}
        self._hand_over = HandingOver(context, "inprocess")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def run(self, consume: Consumer) -> None:
        """Simulates the workload to its end and hands over its spans, at `speed` times real time (0: at once)."""
        simulated_from = time.time_ns() - self._workload.length if self._begins is None else self._begins
        simulation = TracedSimulation(self._workload, start=simulated_from)
        began = time.monotonic()
        for delivery in simulation.run():
            for request in delivery.requests:
                await self._hand_over(Batch(read_request(request).groups, arrived=0), consume)
            self._tell_gated(simulation)
            if self._speed:
                due = began + (delivery.now - simulated_from) / _NANOSECONDS / self._speed
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            else:
                await asyncio.sleep(0)
        told = simulation.summary()
        self._log.info(
            "the workload is through: %d Pods created, %d bound, %d pending",
            told.created,
            told.bound,
            len(told.pending),
        )

    def _tell_gated(self, simulation: TracedSimulation) -> None:
        """Tell of Pods that are held back and of those that no longer are."""
        gated = {pod.uid: pod for pod in simulation.summary().pending if pod.queue == "gated"}
        for uid in self._gated.keys() - gated.keys():
            self._tell(replace(self._gated.pop(uid), gates=()))
        for uid, pod in gated.items():
            namespace, _, name = pod.key.partition("/")
            fact = GatedPod(uid, namespace, name, pod.gates, pod.created)
            if self._gated.get(uid) != fact:
                self._gated[uid] = fact
                self._tell(fact)
