"""Attempts while they happen: pieces of logs and what watches send, as they come, to attempts that are complete.

Synchronous and without a clock, as processors are: who drives it says what time it is, and calls `expire` when
`deadline` is due. What comes waits for `LAG`, so that sources that are late by less are heard in the order of their
times, as when all is read from files.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import tzinfo
from typing import Any, Final, NamedTuple

from podtrail.component import ObservedPod
from podtrail.otlp import Group
from podtrail.reconstruction.attempt_draft import Rebuilt
from podtrail.reconstruction.calendar import OffsetStep
from podtrail.reconstruction.checkpoint import read_offsets, read_pods, read_told_until, write_checkpoint
from podtrail.reconstruction.clock_offset import offsets_by_watch
from podtrail.reconstruction.configz import KnownConfigurations
from podtrail.reconstruction.correlator import Correlator, Heard, Outcome
from podtrail.reconstruction.line_counts import LineCounts
from podtrail.reconstruction.lines import LineSplitter
from podtrail.reconstruction.live_clock import compare_clock
from podtrail.reconstruction.metrics import Untold, leader_status, read_attempts
from podtrail.reconstruction.scheduler_log import LineMeaning, SchedulerLog
from podtrail.reconstruction.spans import trace
from podtrail.reconstruction.watch import Seen, WatchReader

LAG: Final = 1_000_000_000
"""Nanoseconds by which sources may be late."""
_MOST_WAITING: Final = 16_384
_MOST_LISTED: Final = 2_048


class ClockReading(NamedTuple):
    """The end of a log, and when it was written by a clock whose zone is known."""

    end: bytes
    written: int
    """Unix nanoseconds."""
    live: bool
    """Whether it was written at this time for certain; False for the time of a file, which may be a copy."""


class Session:
    """Rebuilds the attempts of one scheduler, or of replicas of which one at a time is the leader.

    A driver that starts lists Pods first, then gives the logs up to their ends, then Events: so attempts find their
    Pods, and Events their attempts. Times are Unix nanoseconds.
    """

    def __init__(
        self,
        now: int,
        checkpoint: Mapping[str, Any] | None = None,
        *,
        profiles: Collection[str] = (),
        zone: tzinfo | None = None,
        with_spans: bool = True,
    ) -> None:
        """`checkpoint` is what an earlier session gave: what it told is not told again.

        With `profiles`, only attempts of these and of unknown profile are told.
        `zone` is that of the logs' times; None: derived, else UTC.
        Without `with_spans`, attempts are left out whose spans the scheduler exports itself, as its log says.

        Raises:
            ValueError: `checkpoint` is none that can be read.
        """
        self._profiles = frozenset(profiles)
        self._zone = zone
        self._offsets = read_offsets(checkpoint) if checkpoint and zone is None else {}
        told_until = read_told_until(checkpoint, now) if checkpoint else 0
        pods = read_pods(checkpoint, told_until) if checkpoint else ()
        self.line_counts: dict[str, LineCounts] = {"log": LineCounts(), "watch": LineCounts()}
        self._correlator = Correlator(told_until, pods, own_only=True, with_spans=with_spans)
        self._logs: dict[str, _Log] = {}
        self._watch = WatchReader(self.line_counts["watch"])
        self._waiting: list[tuple[int, int, Heard]] = []
        self._heard = 0
        self._complete: list[Group] = []
        self._untold = Untold()
        self._listed: list[Seen] = []
        """What was listed before the first log was read, as far as it helps to derive the zone of the logs."""
        self._configurations = KnownConfigurations()

    @property
    def outcome(self) -> Outcome:
        """What it came to so far."""
        return self._correlator.outcome

    @property
    def newest(self) -> int:
        """When the newest line of the logs was written; 0 before there is one."""
        return max((log.newest for log in self._logs.values()), default=0)

    def written_until(self) -> int:
        """Return when the last line of the logs was written, whatever it tells, Unix nanoseconds; 0: there is none."""
        return max((log.reader.written_until() for log in self._logs.values()), default=0)

    @property
    def waiting(self) -> bool:
        """Whether attempts are complete that `expire` has not returned yet."""
        return bool(self._complete)

    def log(self, source: str, piece: bytes, now: int, clock: ClockReading | None = None) -> None:
        """Take the next bytes of a log, cut anywhere; `clock` gives the time zone of text without one."""
        log = self._logs.get(source)
        if log is None:
            reader = SchedulerLog(source, now, self.line_counts["log"], self._zone, over=True)
            log = self._logs[source] = _Log(reader)
            if (offset := self._offsets.get(source)) is not None:
                reader.set_offsets([OffsetStep(0, offset)])
            if clock is not None and not reader.calendar.known:
                self._derive_offset(reader, clock.end + piece, now)
        if clock is not None:
            compare_clock(log.reader.calendar, clock.end, clock.written, live=clock.live)
        self._wait(log.take(piece, now), log, now)
        self._correlator.confirm_alive(min(log.reader.written_until(), now))

    def _derive_offset(self, reader: SchedulerLog, sample: bytes, now: int) -> None:
        """Derive the offset of a log from UTC by the Pods that were listed before it was read."""
        probe = SchedulerLog("", now, LineCounts(), over=True)
        told = [*probe.read(sample.split(b"\n")), *probe.end()]
        if probe.needs_zone and (steps := offsets_by_watch(told, self._listed)):
            reader.set_offsets(steps)

    def end_of_log(self, source: str, now: int) -> None:
        """Note that a log was rotated, truncated or closed: what comes next of it begins a line."""
        if log := self._logs.get(source):
            self._wait(log.end(), log, now)

    def listed(self, told: Mapping[str, Any], now: int) -> None:
        """Take a list (`PodList`, `EventList`, `NodeList`) as the API server gave it, also after a 410."""
        for seen in self._watch.take({"list": told}, now):
            if len(self._listed) < _MOST_LISTED and not self._logs:
                self._listed.append(seen)
            self._complete += self._traces(self._correlator.feed(seen, now - LAG))

    def watched(self, event: Mapping[str, Any], now: int) -> None:
        """Take an event of a watch: `{"type": …, "object": …}`."""
        for seen in self._watch.take({"event": event}, now):
            self._push(now, seen)

    def scraped(self, page: bytes, now: int = 0) -> Counter[str]:
        """Take the scheduler's `/metrics`; return how many attempts it counted that were not told, by result."""
        if (leads := leader_status(page.splitlines())) is not None:
            self._correlator.report_leader(now, leads=leads)
        return self._untold.scraped(read_attempts(page.splitlines()), self.outcome.attempts)

    def configured(self, page: bytes, now: int, valid: int) -> None:
        """Take the scheduler's `/configz`, which counts for `valid` nanoseconds unless it is read again.

        Raises:
            ValueError: the page is no `/configz` of a kube-scheduler.
        """
        self._configurations.read(page, now, valid)

    def expire(self, now: int) -> list[Group]:
        """Return the attempts that are complete now, each as one trace."""
        for log in self._logs.values():
            if log.due is not None and log.due <= now:
                self._wait(log.release(), log, now)
        self._hear(now - LAG)
        self._complete += self._traces(self._correlator.expire(now - LAG))
        complete, self._complete = self._complete, []
        return complete

    def pending(self, now: int) -> list[ObservedPod]:
        """Return Pods that wait for a node, or no longer do, if that changed since the last call."""
        changed = self._correlator.pending(now - LAG)
        return [pod for pod in changed if not (self._profiles and pod.scheduler) or pod.scheduler in self._profiles]

    def deadline(self) -> int | None:
        """Return when `expire` next has work; None when nothing waits."""
        waits = [log.due for log in self._logs.values() if log.due is not None]
        if self._waiting:
            waits.append(self._waiting[0][0] + LAG)
        if (due := self._correlator.deadline()) is not None:
            waits.append(due + LAG)
        return min(waits, default=None)

    def drain(self, now: int) -> list[Group]:
        """Return all attempts that have ended, and those that are open without a result: nothing more comes."""
        for log in self._logs.values():
            self._wait(log.end(), log, now)
        self._hear(now)
        self._complete += self._traces(self._correlator.finish())
        complete, self._complete = self._complete, []
        return complete

    def checkpoint(self, now: int) -> dict[str, Any]:
        """Return what a session that goes on after this one must know, for JSON; everything told was handed out.

        The next session reads the logs from their beginning, or from before the oldest attempt that was still open.
        """
        assert not self.waiting, "attempts that wait for expire() would be lost"
        unheard = (time - 1 for time, _, _ in self._waiting)
        told_until = self._correlator.told_until(min([now - LAG, *unheard]))
        known = {name: log.reader.calendar for name, log in self._logs.items() if log.reader.calendar.known}
        offsets = self._offsets | {name: calendar.offset for name, calendar in known.items()}
        return write_checkpoint(told_until, self._correlator.pods(), self._correlator.covered, offsets)

    def _traces(self, rebuilt: Iterable[Rebuilt]) -> Iterator[Group]:
        for one in rebuilt:
            profile = one.identity.profile
            if self._profiles and not profile:
                one.draft.inferred["profile"] = "not known; it may be another than those that are asked for"
            elif self._profiles and profile not in self._profiles:
                continue
            yield trace(one, self._configurations)

    def _wait(self, told: Iterable[LineMeaning], log: "_Log", now: int) -> None:
        for one in told:
            log.newest = max(log.newest, min(one.time, now))
            self._push(log.newest, one)
        self._hear(now - LAG)

    def _push(self, time: int, heard: Heard) -> None:
        self._heard += 1
        heapq.heappush(self._waiting, (time, self._heard, heard))
        if len(self._waiting) > _MOST_WAITING:
            self._hear(self._waiting[0][0])

    def _hear(self, until: int) -> None:
        while self._waiting and self._waiting[0][0] <= until:
            time, _, heard = heapq.heappop(self._waiting)
            self._complete += self._traces(self._correlator.feed(heard, time))


class _Log:
    """A log that grows: its pieces to lines, its lines to meanings."""

    def __init__(self, reader: SchedulerLog) -> None:
        self._lines = LineSplitter()
        self.reader = reader
        self.newest = 0
        self.due: int | None = None
        """When a line is taken for whole that waits for more values."""

    def take(self, piece: bytes, now: int) -> Iterator[LineMeaning]:
        """Yield what a piece tells."""
        yield from self.reader.read(self._lines.take(piece))
        self.due = now + LAG if self.reader.holds else None

    def release(self) -> Iterator[LineMeaning]:
        """Yield what the line tells that waits for more."""
        self.due = None
        yield from self.reader.end()

    def end(self) -> Iterator[LineMeaning]:
        """Yield what is left."""
        yield from self.reader.read(self._lines.end())
        yield from self.release()
