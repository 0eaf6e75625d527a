"""Attempts of a stock kube-scheduler, live: its sources to the correlator, what that rebuilds to the pipelines."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from podtrail.component import Consume, Context
from podtrail.otlp import Batch, Group
from podtrail.reconstruction import Census, Correlator, Heard, Rebuilt, trace
from podtrail_receivers.handing_over import HandingOver
from podtrail_receivers.scheduler.kube_scheduler.config import KubeSchedulerConfig
from podtrail_receivers.scheduler.kube_scheduler.gains import gains
from podtrail_receivers.scheduler.kube_scheduler.log import LogSource
from podtrail_receivers.scheduler.kube_scheduler.metrics_page import MetricsPage
from podtrail_receivers.scheduler.kube_scheduler.settling import WINDOW, Settling
from podtrail_receivers.scheduler.kube_scheduler.watches import WatchSource

_TICK = 0.2
"""Seconds between two looks at what has settled."""
_MOST_GROUPS = 256
"""Attempts in a batch at most."""


class KubeSchedulerReceiver:
    """Feeds the pipelines; sources wait while they refuse."""

    def __init__(self, config: KubeSchedulerConfig, context: Context) -> None:
        self.finite = config.finite
        self._config = config
        self._log = context.log
        self._correlator = Correlator(own_only=config.log is not None)
        self._settling = Settling()
        self._room = asyncio.Event()
        self._room.set()
        self._logs = LogSource(config.log, context) if config.log is not None else None
        self._watches = WatchSource(config.watch, config.kubernetes, context) if config.watch is not None else None
        self._page = MetricsPage(config.metrics, context) if config.metrics is not None else None
        self._hand_over = HandingOver(context, "inprocess")
        self._rebuilt: Counter[str] = Counter()
        self._instruments(context)

    async def __aenter__(self) -> Self:
        """Open what can be opened. StartError when a source is misconfigured; one that is away is waited for."""
        if self._page is not None:
            self._page.open()
        if self._logs is not None:
            await self._logs.open()
        if self._watches is not None:
            await self._watches.open()
        for source, given, gain in gains(self._config):
            if given:
                self._log.info("kube-scheduler is seen through %s: %s", source, gain)
            else:
                self._log.info("not configured: %s, which would tell %s", source, gain)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._logs is not None:
            self._logs.close()
        if self._watches is not None:
            await self._watches.close()

    async def run(self, consume: Consume) -> None:
        """Rebuild attempts as they are told; end when the log does and nothing else is configured."""
        reading = asyncio.create_task(self._read())
        try:
            while not reading.done():
                await asyncio.wait({reading}, timeout=_TICK)
                await self._advance(time.time_ns(), consume)
            await reading
            await self._give(self._feed(self._settling.take(1 << 63)), consume)
            await self._give(self._correlator.finish(), consume)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self) -> None:
        """Run all sources, until those that end have ended."""
        async with asyncio.TaskGroup() as group:
            if self._logs is not None:
                group.create_task(self._read_log(self._logs))
            if self._watches is not None:
                group.create_task(self._watches.run(self._take))
            if self._page is not None and not self.finite:
                group.create_task(self._page.run())

    async def _read_log(self, logs: LogSource) -> None:
        async for told in logs.told():
            await self._take(told)

    async def _take(self, heard: Sequence[Heard]) -> None:
        for one in heard:
            self._settling.put(one)
        if self._settling.full:
            self._room.clear()
        await self._room.wait()

    async def _advance(self, now: int, consume: Consume) -> None:
        settled = now - WINDOW
        await self._give(self._feed(self._settling.take(settled)), consume)
        self._room.set()
        if self._logs is None or self._logs.caught_up:
            # Before that the log may still tell of what a watch has shown long since.
            await self._give(self._correlator.expire(settled), consume)

    def _feed(self, heard: Iterable[Heard]) -> Iterable[Rebuilt]:
        for one in heard:
            yield from self._correlator.feed(one)

    async def _give(self, rebuilt: Iterable[Rebuilt], consume: Consume) -> None:
        groups: list[Group] = []
        for one in rebuilt:
            if self._config.profiles and one.identity.profile not in self._config.profiles:
                continue
            self._rebuilt[one.draft.result or "unknown"] += 1
            groups.append(trace(one))
            if len(groups) == _MOST_GROUPS:
                await self._hand_over(Batch(groups, arrived=0), consume)
                groups = []
                await asyncio.sleep(0)
        if groups:
            await self._hand_over(Batch(groups, arrived=0), consume)

    def _instruments(self, context: Context) -> None:
        metrics, name = context.metrics, context.id
        metrics.gauge(
            "podtrail_receiver_kube_scheduler_lines",
            "Lines and watch events that were read, by what they were.",
            ("receiver", "source", "kind"),
        ).read_all_from(lambda: {(name, *key): value for key, value in self._lines().items()})
        metrics.gauge(
            "podtrail_receiver_kube_scheduler_attempts",
            "Attempts that were rebuilt, by result.",
            ("receiver", "result"),
        ).read_all_from(lambda: {(name, result): value for result, value in self._rebuilt.items()})
        if self._page is not None:
            page = self._page
            metrics.gauge(
                "podtrail_receiver_kube_scheduler_attempts_counted",
                "Attempts that the scheduler counted since podtrail first read its metrics, by result.",
                ("receiver", "result"),
            ).read_all_from(lambda: {(name, result): value for result, value in page.counted.items()})
        if self._watches is not None:
            watches = self._watches
            metrics.gauge(
                "podtrail_receiver_kube_scheduler_watch_failing",
                "1 while a resource can't be listed or watched.",
                ("receiver", "resource"),
            ).read_all_from(
                lambda: {
                    (name, resource): float(reflector.last_failure is not None)
                    for resource, reflector in watches.reflectors.items()
                }
            )

    def _lines(self) -> Mapping[tuple[str, str], float]:
        censuses: dict[str, Census] = {}
        if self._logs is not None:
            censuses["log"] = self._logs.census
        if self._watches is not None:
            censuses |= self._watches.censuses
        return {
            (source, kind): value
            for source, census in censuses.items()
            for kind, value in (
                ("used", census.used),
                ("other", census.other),
                ("continued", census.continued),
                ("unknown", census.unknown.total()),
            )
        }
