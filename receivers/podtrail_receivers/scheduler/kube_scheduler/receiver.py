"""Attempts of a stock kube-scheduler, live: its sources to a session, what that rebuilds to the pipelines."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from podtrail.component import Consumer, Context, LiveSource
from podtrail.otlp import Batch, Group
from podtrail.reconstruction import HAVE_SPANS, NO_ZONE, WITHOUT_LINES, Session, zone_of
from podtrail_receivers.handing_over import HandingOver
from podtrail_receivers.scheduler.kube_scheduler.checkpoint_file import CheckpointFile
from podtrail_receivers.scheduler.kube_scheduler.config import KubeSchedulerConfig
from podtrail_receivers.scheduler.kube_scheduler.log import LogSource
from podtrail_receivers.scheduler.kube_scheduler.metrics_page import MetricsPage
from podtrail_receivers.scheduler.kube_scheduler.watches import WatchSource

_TICK = 0.2
"""Seconds between two looks at what is complete, at most."""
_MOST_GROUPS = 256
"""Attempts in a batch at most."""
_PATIENCE = 10.0
"""Seconds for which logs wait for the list of Pods, which attempts are told with."""
_CHECKPOINT_PERIOD = 5.0
"""Seconds between two writes of what a successor must know."""
_SETTLED = 60_000_000_000
"""Nanoseconds behind the end of a log by which all of it is settled."""
_RECENT = 600_000_000_000
"""A log whose last line is not older, in nanoseconds, is still written."""
_CONFIGZ_COUNTS = 2
"""For so many intervals what `/configz` said counts."""
_GAINS = {
    "log": "every attempt from -v=2 on, with result, reasons and node; from -v=3 beginning and binding; from -v=5 the "
    "wait in the queue; at -v=10 scores; below -v=2 slow and failed attempts only",
    "watch::pods": "uids, creation, queue wait of first attempts, nominations, gates, traceparent annotations; without "
    "a log also attempts, one for each condition that changed and each node that was given",
    "watch::nodes": "how many nodes came, changed and went",
    "watch::events": "reasons of failures; without a log also attempts, fewer than there were, for Events are folded",
    "configz": "which configuration attempts were made with",
    "metrics": "how many attempts the scheduler counted, those that left no other trace included",
}
"""What each source adds to the story."""


class KubeSchedulerReceiver:
    """Feeds the pipelines; sources wait while they refuse."""

    def __init__(self, config: KubeSchedulerConfig, context: Context) -> None:
        self.finite = config.finite
        self._config = config
        self._log = context.log
        self._file = CheckpointFile(config.checkpoint, context) if config.checkpoint else None
        self._zone = zone_of(config.log.timezone) if config.log is not None and config.log.timezone else None
        self._warned_of_zone = self._warned_of_lines = self._said_omitted = False
        self._session = self._new_session()
        self._room = asyncio.Event()
        self._room.set()
        self._logs = LogSource(config.log, context) if config.log is not None else None
        self._watches = WatchSource(config.watch, config.kubernetes, context) if config.watch is not None else None
        self._page = MetricsPage(config.metrics, context) if config.metrics is not None else None
        self._configz = MetricsPage(config.configz, context) if config.configz is not None else None
        self._hand_over = HandingOver(context, "inprocess")
        self._tell = context.tell
        self._live = False
        self._untold: Counter[str] = Counter()
        self._instruments(context)

    async def __aenter__(self) -> Self:
        """Open what can be opened. StartError when a source is misconfigured; one that is away is waited for."""
        if self._file is not None and (checkpoint := await asyncio.to_thread(self._file.read)) is not None:
            try:
                self._session = self._new_session(checkpoint)
            except ValueError as error:
                self._file.passed_over(error)
        if self._page is not None:
            self._page.open()
        if self._configz is not None:
            self._configz.open()
        if self._logs is not None:
            await self._logs.open()
        if self._watches is not None:
            await self._watches.open()
        for source, given, gain in _gains(self._config):
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

    async def run(self, consume: Consumer) -> None:
        """Rebuild attempts as they are told; end when the log does and nothing else is configured."""
        reading = asyncio.create_task(self._read())
        written = time.monotonic()
        try:
            while not reading.done():
                await asyncio.wait({reading}, timeout=_TICK)
                await self._give(self._session.expire(self._now()), consume)
                self._report_waiting(self._now())
                self._warn_of_missing_lines()
                self._say_omitted()
                self._report_live()
                if time.monotonic() - written > _CHECKPOINT_PERIOD:
                    self._write_checkpoint()
                    written = time.monotonic()
            await reading
            await self._give(self._session.drain(time.time_ns()), consume)
            self._report_waiting(time.time_ns() + _SETTLED)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            self._write_checkpoint()

    def _now(self) -> int:
        """Return until when all is known that was written: no later than the newest line, or the last end of the log.

        After this process was stopped for a while the clock says nothing of a log that was not looked at since.
        """
        now = time.time_ns()
        if self._logs is None:
            return now
        if self._logs.behind:
            return min(now, self._session.newest)
        until = self._logs.read_until
        return now if until is None else min(now, max(until, self._session.newest))

    def _new_session(self, checkpoint: Mapping[str, Any] | None = None) -> Session:
        config = self._config
        with_spans = config.traced_attempts == "keep"
        return Session(time.time_ns(), checkpoint, profiles=config.profiles, zone=self._zone, with_spans=with_spans)

    def _say_omitted(self) -> None:
        """Log once that the scheduler's own spans are expected instead of its log's attempts."""
        if not self._said_omitted and HAVE_SPANS in self._session.outcome.notes:
            self._said_omitted = True
            self._log.info(
                "the scheduler exports spans of its attempts: those of its log that have spans are left out; if its "
                "spans go elsewhere, set traced_attempts: keep"
            )

    def _report_waiting(self, now: int) -> None:
        """Report Pods that wait for a node, or no longer do: an attempt may never tell of them."""
        for pod in self._session.pending(now):
            self._tell(pod)

    def _report_live(self) -> None:
        """Report once that its sources are of now: a page would take an old attempt for the end of a recording."""
        if self._live or self.finite or (self._logs is not None and self._logs.behind):
            return
        if self._watches is None and abs(time.time_ns() - self._session.written_until()) > _RECENT:
            return  # an old log, which is followed
        self._live = True
        self._tell(LiveSource())

    def _write_checkpoint(self) -> None:
        """Write what a successor must know, when everything that was read is told and everything written was read."""
        behind = self._logs is not None and self._logs.behind
        if self._file is not None and not behind and self._room.is_set() and not self._session.waiting:
            self._file.write(self._session.checkpoint(time.time_ns()))

    async def _read(self) -> None:
        """Run all sources, until those that end have ended."""
        async with asyncio.TaskGroup() as group:
            if self._watches is not None:
                for name in self._watches.listed:
                    group.create_task(self._watch(self._watches, name))
            if self._logs is not None:
                group.create_task(self._read_log(self._logs))
            if self._page is not None and not self.finite:
                group.create_task(self._read_metrics(self._page))
            if self._configz is not None and not self.finite:
                group.create_task(self._read_configz(self._configz))

    async def _read_log(self, logs: LogSource) -> None:
        if self._watches is not None and (pods := self._watches.listed.get("pods")) is not None:
            await _within(_PATIENCE, pods.wait())
        async for source, piece, clock in logs.pieces():
            await self._room.wait()
            if piece is None:
                self._session.end_of_log(source, time.time_ns())
            else:
                self._session.log(source, piece, time.time_ns(), clock)
                self._warn_of_zone()

    def _warn_of_zone(self) -> None:
        """Warn once if the log has local times and nothing gives their zone."""
        if not self._warned_of_zone and NO_ZONE in self._session.line_counts["log"].notes:
            self._warned_of_zone = True
            self._log.warning("the log has times without a zone, which are read as UTC; `log::timezone` sets it")

    def _warn_of_missing_lines(self) -> None:
        """Warn once if attempts are left out that have no line in the log, as those of another leader."""
        if not self._warned_of_lines and WITHOUT_LINES in self._session.outcome.notes:
            self._warned_of_lines = True
            self._log.warning(
                "attempts without a line in the log are taken for those of another replica; if `-v` was lowered, "
                "watch events or read the scheduler's metrics, which show which replica makes them"
            )

    async def _watch(self, watches: WatchSource, name: str) -> None:
        if name == "events" and self._logs is not None:
            # Attempts come first, then the Events about them; a log may be long.
            await self._logs.caught_up.wait()
        await watches.run(name, self._session, self._room)

    async def _read_metrics(self, page: MetricsPage) -> None:
        async for text in page.pages():
            self._untold = self._session.scraped(text, time.time_ns())

    async def _read_configz(self, page: MetricsPage) -> None:
        """Take the page each time; one that is no configuration is told once, until it is one again."""
        told = ""
        assert self._config.configz is not None
        valid = _CONFIGZ_COUNTS * self._config.configz.collection_interval
        async for text in page.pages():
            try:
                self._session.configured(text, time.time_ns(), valid)
            except ValueError as error:
                if str(error) != told:
                    self._log.warning("%s is no /configz: %s", self._config.configz.endpoint, error)
                told = str(error)
            else:
                told = ""

    async def _give(self, groups: Sequence[Group], consume: Consumer) -> None:
        """Hand attempts over; no source tells more meanwhile."""
        if not groups:
            return
        self._room.clear()
        for first in range(0, len(groups), _MOST_GROUPS):
            await self._hand_over(Batch(groups[first : first + _MOST_GROUPS], arrived=0), consume)
        self._room.set()

    def _instruments(self, context: Context) -> None:
        metrics, name = context.metrics, context.id
        metrics.gauge(
            "podtrail_receiver_kube_scheduler_lines_total",
            "Lines and watch events that were read, by what they were.",
            ("receiver", "source", "kind"),
        ).read_all_from(lambda: {(name, *key): value for key, value in self._lines().items()}, name)
        metrics.gauge(
            "podtrail_receiver_kube_scheduler_attempts_total",
            "Attempts that were rebuilt, by result.",
            ("receiver", "result"),
        ).read_all_from(lambda: {(name, result): value for result, value in self._rebuilt().items()}, name)
        if self._page is not None:
            metrics.gauge(
                "podtrail_receiver_kube_scheduler_attempts_untold",
                "Attempts that the scheduler counted since podtrail first read its metrics and that nothing told of, "
                "by result. Those of the last seconds are on their way.",
                ("receiver", "result"),
            ).read_all_from(lambda: {(name, result): value for result, value in self._untold.items()}, name)
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
                },
                name,
            )

    def _rebuilt(self) -> Counter[str]:
        sums: Counter[str] = Counter()
        for (_, result), attempts in self._session.outcome.attempts.items():
            sums[result or "unknown"] += attempts
        return sums

    def _lines(self) -> Mapping[tuple[str, str], float]:
        return {
            (source, kind): value
            for source, counts in self._session.line_counts.items()
            for kind, value in (
                ("used", counts.used),
                ("other", counts.other),
                ("continued", counts.continued),
                ("unknown", counts.unknown.total()),
            )
        }


def _gains(config: KubeSchedulerConfig) -> Iterator[tuple[str, bool, str]]:
    """Yield each source, whether it is configured, and what it gives."""
    given = {
        "log": config.log is not None,
        "watch::pods": config.watch is not None and config.watch.pods,
        "watch::nodes": config.watch is not None and config.watch.nodes,
        "watch::events": config.watch is not None and config.watch.events,
        "configz": config.configz is not None,
        "metrics": config.metrics is not None,
    }
    for source, gain in _GAINS.items():
        yield source, given[source], gain


async def _within(seconds: float, done: Awaitable[object]) -> None:
    """Wait for something, but no longer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await done
