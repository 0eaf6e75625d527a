"""Runs the simulation beside the pipelines, at its own pace or at theirs."""

import asyncio
import logging
import time
from dataclasses import replace
from types import TracebackType
from typing import Self

from podtrail_scheduler import TracedSimulation

from podtrail.component import Consumer, Context, GatedPod, SimulatedTime
from podtrail.otlp import Batch, read_request
from podtrail_receivers.handing_over import HandingOver
from podtrail_receivers.scheduler import Config

_NANOSECONDS = 1_000_000_000

_PLUGINS = logging.getLogger("podtrail_scheduler.framework")
"""Where the scheduler logs what plugins raise, and answers that are none."""


class _Once(logging.Filter):
    """Shows each failure of a plugin once: in a simulation hundreds of attempts may fail in a second for one."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: set[tuple[str, str]] = set()
        self.hidden = 0
        """How many were not shown."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a record is to be shown."""
        told = record.getMessage(), repr(record.exc_info[1]) if record.exc_info else ""
        if told in self._shown:
            self.hidden += 1
            return False
        self._shown.add(told)
        return True


class SchedulerSource:
    """Feeds the spans of a simulated scheduler; ends when the workload is through."""

    finite = True

    def __init__(self, config: Config, context: Context) -> None:
        """Simulate as configured."""
        self._config = config
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
        """Run the workload; end when it is through."""
        once = _Once()
        _PLUGINS.addFilter(once)
        try:
            await self._simulate(consume)
        finally:
            _PLUGINS.removeFilter(once)
        if once.hidden:
            self._log.warning("plugins failed in the same ways %d times more", once.hidden)

    async def _simulate(self, consume: Consumer) -> None:
        workload, speed, begins = self._config.workload, self._config.speed, self._config.begins
        simulated_from = time.time_ns() - workload.length if begins is None else begins
        simulation = TracedSimulation(
            workload,
            start=simulated_from,
            selection=self._config.selection,
            stopwatch=time.perf_counter_ns if self._config.measure_plugins else None,
        )
        began = time.monotonic()
        for delivery in simulation.run():
            self._tell(SimulatedTime(delivery.now))
            for request in delivery.requests:
                await self._hand_over(Batch(read_request(request).groups, arrived=0), consume)
            self._tell_gated(simulation)
            if speed:
                due = began + (delivery.now - simulated_from) / _NANOSECONDS / speed
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            else:
                await asyncio.sleep(0)
        told, of_others = simulation.summary(), simulation.of_others()
        self._log.info(
            "the workload is through: %d Pods created, %d bound, %d pending%s",
            told.created,
            told.bound,
            len(told.pending),
            f", {of_others} of other schedulers" if of_others else "",
        )

    def _tell_gated(self, simulation: TracedSimulation) -> None:
        """Tell of Pods that are held back and of those that no longer are."""
        gated = {pod.uid: pod for pod in simulation.summary().pending if pod.queue == "gated"}
        for uid in [uid for uid in self._gated if uid not in gated]:
            self._tell(replace(self._gated.pop(uid), gates=()))
        for uid, pod in gated.items():
            namespace, _, name = pod.key.partition("/")
            fact = GatedPod(uid, namespace, name, pod.gates, pod.created)
            if self._gated.get(uid) != fact:
                self._gated[uid] = fact
                self._tell(fact)
