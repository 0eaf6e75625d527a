"""How long plugins take, by extension point and by the minute: what the spans that were kept tell."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from typing import Final, NamedTuple

from podtrail.lru import Lru
from podtrail.story.slow_since import ENOUGH, LEAST_SLOW, median, turning
from podtrail.story.words import clock, duration, several

MINUTE: Final = 60_000_000_000
_MINUTES: Final = 120
_RECENT: Final = 500
_SLOWEST: Final = 10
_OUTLIER: Final = 10
_MOST_PLUGINS: Final = 200
_LONGEST_NAME: Final = 256


class PluginCall(NamedTuple):
    """One attempt's time in a plugin at an extension point, summed over nodes where its span says so."""

    point: str
    plugin: str
    start_unix_nano: int
    took: int
    """Nanoseconds."""


class SlowCall(NamedTuple):
    """One of the calls that took longest."""

    took: int
    start_unix_nano: int
    trace_id: bytes
    point: str


class PluginMinute(NamedTuple):
    """The calls that began in one minute."""

    start_unix_nano: int
    calls: int
    total: int
    """Nanoseconds."""
    longest: int

    @property
    def mean(self) -> int:
        """Nanoseconds a call."""
        return self.total // self.calls


class Slowdown(NamedTuple):
    """Since when calls take several times as long. Medians in nanoseconds."""

    since_unix_nano: int
    before: int
    after: int


class Outliers(NamedTuple):
    """Single calls that took 10 times as long as is usual, and 1 ms."""

    calls: int
    first_unix_nano: int
    last_unix_nano: int


class SlowCalls(NamedTuple):
    """Calls that took as long as makes an attempt slow, among the latest that are held, whatever is usual."""

    calls: int
    of: int
    """Calls held."""
    at_least: int
    """Nanoseconds from which on one is slow."""
    first_unix_nano: int
    last_unix_nano: int

    @property
    def share(self) -> str:
        """In words: all of them, or how many."""
        held = several(self.of, "call")
        return f"all {held}" if self.calls == self.of > 1 else f"{self.calls:,} of {held}"

    @property
    def between(self) -> str:
        """When the first and the last of them began, in words."""
        return f"first {clock(self.first_unix_nano)}, last {clock(self.last_unix_nano)} UTC"


@dataclass(frozen=True, slots=True)
class PointTimes:
    """A plugin's calls at one extension point. Lengths of time are nanoseconds."""

    point: str
    calls: int
    total: int
    median: int
    """Of the latest calls, 500 at most."""
    slowest: int
    slowest_trace_id: bytes
    minutes: tuple[PluginMinute, ...]
    """In order; those without a call are left out."""
    slowdown: Slowdown | None
    outliers: Outliers | None
    """Of the latest calls; None where there are none, or a slowdown."""
    slow: SlowCalls | None
    """None where none is."""

    @property
    def too_few(self) -> bool:
        """Nobody can say of so few calls whether they became slow."""
        return self.calls < ENOUGH


@dataclass(slots=True)
class _PointRecord:
    calls: int = 0
    total: int = 0
    slowest: int = 0
    slowest_trace_id: bytes = b""
    recent: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    minutes: dict[int, PluginMinute] = field(default_factory=dict)
    known: PointTimes | None = None
    """What it comes to, until there is another call."""

    def note(self, trace_id: bytes, call: PluginCall) -> None:
        self.known = None
        self.calls += 1
        self.total += call.took
        if call.took > self.slowest or self.calls == 1:
            self.slowest, self.slowest_trace_id = call.took, trace_id
        self.recent.append((call.start_unix_nano, call.took))
        start = call.start_unix_nano // MINUTE * MINUTE
        known = self.minutes.get(start) or PluginMinute(start, 0, 0, 0)
        longest = max(known.longest, call.took)
        self.minutes[start] = PluginMinute(start, known.calls + 1, known.total + call.took, longest)
        if len(self.minutes) > _MINUTES:
            del self.minutes[min(self.minutes)]

    def told(self, point: str, slow_after: int) -> PointTimes:
        if self.known is None:
            recent = sorted(self.recent)
            usual = median([took for _, took in recent])
            minutes = tuple(sorted(self.minutes.values()))
            slowdown = _slowdown(recent)
            self.known = PointTimes(
                point=point,
                calls=self.calls,
                total=self.total,
                median=usual,
                slowest=self.slowest,
                slowest_trace_id=self.slowest_trace_id,
                minutes=minutes,
                slowdown=slowdown,
                outliers=None if slowdown else _outliers(recent, usual),
                slow=_slow(recent, slow_after),
            )
        return self.known


@dataclass(slots=True)
class _PluginRecord:
    points: dict[str, _PointRecord] = field(default_factory=dict)
    slowest: list[SlowCall] = field(default_factory=list)
    """A heap."""


class PluginTimes:
    """Is told of every call that a kept span records. Bounded in plugins, the calls held of each, and minutes."""

    def __init__(self, slow_after: int = 1_000_000_000) -> None:
        """`slow_after`: nanoseconds from which on a call is slow, whatever is usual."""
        self._slow_after = slow_after
        self._plugins: Lru[str, _PluginRecord] = Lru(_MOST_PLUGINS)

    def note(self, trace_id: bytes, calls: Iterable[PluginCall]) -> None:
        """Take note of the calls that a trace tells of for the first time."""
        for call in calls:
            plugin = call.plugin[:_LONGEST_NAME]
            record = self._plugins.get(plugin)
            if record is None:
                record = _PluginRecord()
                self._plugins.put(plugin, record)
            record.points.setdefault(call.point, _PointRecord()).note(trace_id, call)
            slow = SlowCall(call.took, call.start_unix_nano, trace_id, call.point)
            if len(record.slowest) < _SLOWEST:
                heappush(record.slowest, slow)
            elif slow > record.slowest[0]:
                heappushpop(record.slowest, slow)

    def plugins(self) -> Mapping[str, tuple[PointTimes, ...]]:
        """Return what the calls of each plugin took."""
        return {plugin: self.points(plugin) for plugin in self._plugins}

    def recent(self) -> Mapping[tuple[str, str], tuple[tuple[int, int], ...]]:
        """Return the latest calls, 500 at most, of each plugin at each extension point: when they began, and took."""
        return {
            (plugin, point): tuple(one.recent)
            for plugin, record in self._plugins.items()
            for point, one in record.points.items()
        }

    def points(self, plugin: str) -> tuple[PointTimes, ...]:
        """Return what the calls of a plugin took, the extension point that took most of the time first."""
        record = self._plugins.get(plugin)
        told = [one.told(point, self._slow_after) for point, one in record.points.items()] if record else []
        return tuple(sorted(told, key=lambda one: -one.total))

    def slowest(self, plugin: str) -> tuple[SlowCall, ...]:
        """Return the calls of a plugin that took longest, the longest first."""
        record = self._plugins.get(plugin)
        return tuple(sorted(record.slowest, reverse=True)) if record else ()


def _slowdown(recent: Sequence[tuple[int, int]]) -> Slowdown | None:
    """Return since when calls, each with its start, take several times as long as before."""
    took = [length for _, length in recent]
    at = turning(took)
    return Slowdown(recent[at][0], median(took[:at]), median(took[at:])) if at else None


def _outliers(recent: Sequence[tuple[int, int]], usual: int) -> Outliers | None:
    found = [start for start, length in recent if length >= max(_OUTLIER * usual, LEAST_SLOW)]
    return Outliers(len(found), found[0], found[-1]) if found else None


def _slow(recent: Sequence[tuple[int, int]], slow_after: int) -> SlowCalls | None:
    found = [start for start, length in recent if length >= slow_after]
    return SlowCalls(len(found), len(recent), slow_after, found[0], found[-1]) if found else None


def slow_in_short(times: PointTimes) -> str:
    """Return since when, or when, calls were slow; that they are too few to say; "" where none was."""
    if since := times.slowdown:
        return f"since {clock(since.since_unix_nano)} UTC, {duration(since.before)} before"
    if slow := times.slow:
        return f"≥ {duration(slow.at_least)}: {slow.share}, {slow.between}"
    if few := times.outliers:
        first, last = clock(few.first_unix_nano), clock(few.last_unix_nano)
        return f"{several(few.calls, 'call')}, first {first}, last {last} UTC"
    return "too few to say" if times.too_few else ""


def usual_pace(points: Sequence[PointTimes]) -> str:
    """Return when a plugin was slow, or how long it usually takes, where no moment is told since which it is slower."""
    if not points:
        return "no span that was kept tells of its calls"
    slowest = max((one for one in points if one.slow), key=lambda one: one.slow.calls if one.slow else 0, default=None)
    if slowest is not None and (slow := slowest.slow):
        where = f" at {slowest.point}" if slowest.point else ""
        calls = f"{slow.share} held, {slow.between}"
        return f"slow (≥ {duration(slow.at_least)}){where} in {calls}; median {duration(slowest.median)}"
    most = max(points, key=lambda one: one.median)
    at = f" at {most.point}" if most.point else ""
    if most.too_few:
        return f"{duration(most.median)}{at}, {several(most.calls, 'call')}: too few to say since when it is slow"
    return f"usually {duration(most.median)}{at}, and no moment since which it is slower"
