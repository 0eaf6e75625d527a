"""The shape of attempts over time: how many began when, how long they took, and how they ended. Bounded in memory.

Times are Unix nanoseconds, lengths of time nanoseconds. Nothing that was counted is ever lost from the sums.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, NamedTuple, Self

from podtrail.story.attempt import AttemptStory
from podtrail.story.pod import PodStory
from podtrail.story.pod_state import POD_STATES

_SECOND: Final = 1_000_000_000
_MOST_COLUMNS: Final = 240
"""Moments of time that are told from each other, until two become one."""
_LATELY: Final = (_SECOND, 15 * _SECOND, 180 * _SECOND)
"""Widths of columns in which the latest attempts are counted besides: four minutes at least, an hour, half a day."""
_MOST_PLUGINS: Final = 64
_DRAWN: Final = 60
"""Columns of a picture, at most."""
_FAR: Final = 7 * 86_400 * _SECOND
"""So far apart, attempts are on one picture whatever its columns; a clock that is wrong is wrong by more."""
EDGES: Final = tuple(digit * 10**power for power in range(4, 12) for digit in (1, 3))[1:-1]
"""Where one row of durations ends and the next begins: 30 us, 100 us, 300 us, … 100 s."""
ROWS: Final = len(EDGES) + 2
"""Rows from the shortest to the longest, and one before them for attempts that do not say how long they took."""
OUTCOMES: Final = ("Error", "Unschedulable", "other", "Success")
"""How an attempt ended, the worst first."""
_OTHER: Final = OUTCOMES.index("other")
_OUTCOME: Final = {name: at for at, name in enumerate(OUTCOMES)}


class ShapeAttempt(NamedTuple):
    """What the shape asks of an attempt."""

    start: int
    took: int | None
    """None where nothing tells."""
    result: str


class ShapeCell(NamedTuple):
    """Attempts of one row and column."""

    row: int
    """0 for attempts that do not say how long they took, else the row of durations from 1, the shortest."""
    results: dict[str, int]
    """Attempts by how they ended, the worst first; only those that there are."""

    @property
    def attempts(self) -> int:
        """How many there are."""
        return sum(self.results.values())

    @property
    def worst(self) -> str:
        """The worst of their ends."""
        return next(iter(self.results))


class ShapeColumn(NamedTuple):
    """Attempts that began in one stretch of time."""

    start_unix_nano: int
    cells: tuple[ShapeCell, ...]
    waiting: int
    """Pods that waited for a node at its end, of those held."""

    @property
    def results(self) -> dict[str, int]:
        """Attempts by how they ended, the worst first."""
        sums = Counter[str]()
        for cell in self.cells:
            sums.update(cell.results)
        return {name: sums[name] for name in OUTCOMES if sums[name]}

    @property
    def longest(self) -> int:
        """The row of the longest of its attempts."""
        return max((cell.row for cell in self.cells), default=0)


@dataclass(frozen=True, slots=True)
class AttemptsShape:
    """A picture of attempts over time."""

    width: int
    """Nanoseconds of a column."""
    columns: tuple[ShapeColumn, ...]
    """In order and without a gap; none without an attempt."""
    attempts: int
    """Attempts in the columns."""
    outside: int
    """Attempts before and behind them: not asked for, or of a clock that is wrong."""

    @property
    def end_unix_nano(self) -> int:
        """The last nanosecond of the last column: what began then is in it."""
        return self.columns[-1].start_unix_nano + self.width - 1 if self.columns else 0

    def with_waiting(self, pods: Iterable[PodStory]) -> Self:
        """Return it with how many of these Pods waited; for 10,000 of them some ms, a thread may."""
        if not self.columns:
            return self
        waiting = _waiting(pods, self.columns[0].start_unix_nano, self.width, len(self.columns))
        columns = (column._replace(waiting=depth) for column, depth in zip(self.columns, waiting, strict=True))
        return replace(self, columns=tuple(columns))


def row_of(took: int | None) -> int:
    """Return the row of a duration; 0 for None."""
    return 0 if took is None else 1 + bisect_right(EDGES, took)


class AttemptShape:
    """Counts attempts by time, duration and end, in a bounded number of columns.

    Where they no longer suffice columns become twice as wide, and two become one: no count is lost. Or, where it
    `forgets`, the oldest goes, and its attempts are outside of every picture.
    """

    __slots__ = ("_columns", "_forgets", "attempts", "begins", "width")

    def __init__(self, width: int = _SECOND, *, forgets: bool = False) -> None:
        self.width = width
        """Nanoseconds of a column; they begin at multiples of it."""
        self.attempts = 0
        """All that were counted."""
        self.begins: int | None = None
        """All that began from then on are in columns; None where nothing was forgotten."""
        self._forgets = forgets
        self._columns: dict[int, Counter[int]] = {}

    @classmethod
    def of(cls, attempts: Iterable[ShapeAttempt]) -> Self:
        """Return the shape of attempts."""
        shape = cls()
        for attempt in attempts:
            shape.add(attempt)
        return shape

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, attempt: ShapeAttempt) -> None:
        """Count an attempt."""
        self.attempts += 1
        cell = row_of(attempt.took) * len(OUTCOMES) + _OUTCOME.get(attempt.result, _OTHER)
        at = attempt.start // self.width
        column = self._columns.get(at)
        if column is None:
            column = self._columns[at] = Counter()
        column[cell] += 1
        while len(self._columns) > _MOST_COLUMNS:
            if self._forgets:
                oldest = min(self._columns)
                del self._columns[oldest]
                self.begins = max(self.begins or 0, (oldest + 1) * self.width)
                continue
            self.width *= 2
            self._columns = _joined(self._columns, 2)

    def remove(self, attempt: ShapeAttempt) -> None:
        """Take back an attempt that was counted: more is known of it now."""
        self.attempts -= 1
        cell = row_of(attempt.took) * len(OUTCOMES) + _OUTCOME.get(attempt.result, _OTHER)
        at = attempt.start // self.width
        column = self._columns.get(at)
        if column is None:  # forgotten meanwhile
            return
        column[cell] -= 1
        if not column[cell]:
            del column[cell]
        if not column:
            del self._columns[at]

    def told(
        self, pods: Iterable[PodStory] = (), since: int | None = None, until: int | None = None, drawn: int = _DRAWN
    ) -> AttemptsShape:
        """Return the picture, or that from `since` to `until`, both included, as far as columns tell them apart.

        With neither it is of where most attempts are: one whose clock is years off is outside.

        Args:
            pods: of whom to tell how many waited.
            since: begins with the column that this is in.
            until: ends with the column that this is in.
            drawn: columns at most.
        """
        first, last = self._stretch(since, until)
        if first > last:
            return AttemptsShape(self.width, (), 0, self.attempts)
        step = -((first - last - 1) // drawn)
        while last // step - first // step + 1 > drawn:
            step += 1
        joined = _joined({at: cells for at, cells in self._columns.items() if first <= at <= last}, step)
        width, numbers = self.width * step, range(first // step, last // step + 1)
        columns = tuple(ShapeColumn(at * width, _cells(joined.get(at, Counter())), 0) for at in numbers)
        shown = sum(cells.total() for cells in joined.values())
        return AttemptsShape(width, columns, shown, self.attempts - shown).with_waiting(pods)

    def _stretch(self, since: int | None, until: int | None) -> tuple[int, int]:
        """Return the first and the last column of what is asked for, else of where most attempts are."""
        known = sorted(self._columns)
        if not known:
            return 0, -1
        if since is None and until is None:
            return _densest(known, self._columns, max(_FAR // self.width, 4 * _MOST_COLUMNS))
        low = known[0] if since is None else max(since // self.width, known[0])
        high = known[-1] if until is None else min(until // self.width, known[-1])
        return low, high


class ShapeOverTime:
    """The shape of all attempts since the start, in columns that widen with it, and that of lately in narrow ones."""

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        lately = [AttemptShape(width, forgets=True) for width in _LATELY]
        self._levels = (*lately, AttemptShape())

    def add(self, attempt: ShapeAttempt) -> None:
        """Count an attempt."""
        for level in self._levels:
            level.add(attempt)

    def remove(self, attempt: ShapeAttempt) -> None:
        """Take back an attempt that was counted."""
        for level in self._levels:
            level.remove(attempt)

    def told(self, pods: Iterable[PodStory] = (), since: int | None = None, until: int | None = None) -> AttemptsShape:
        """Return the picture of `AttemptShape.told`, of the narrowest columns that reach back so far.

        From no moment it is of all attempts where columns of some minutes hold them all, else of the latest.
        """
        reach_back = [
            level
            for level in self._levels[:-1]
            if level.begins is None or (since is not None and level.begins <= since)
        ]
        usual = self._levels[-2 if since is None else -1]
        return (reach_back[0] if reach_back else usual).told(pods, since, until)


def _densest(known: Sequence[int], columns: dict[int, Counter[int]], most: int) -> tuple[int, int]:
    """Return the first and the last of the columns, at most so many apart, that have most attempts, the latest such."""
    best, found, held, left = (known[0], known[-1]), -1, 0, 0
    for at in known:
        held += columns[at].total()
        while at - known[left] >= most:
            held -= columns[known[left]].total()
            left += 1
        if held >= found:
            best, found = (known[left], at), held
    return best


def _joined(columns: dict[int, Counter[int]], step: int) -> dict[int, Counter[int]]:
    joined: dict[int, Counter[int]] = {}
    for at, cells in columns.items():
        joined.setdefault(at // step, Counter()).update(cells)
    return joined


def _cells(counted: Counter[int]) -> tuple[ShapeCell, ...]:
    rows: dict[int, dict[str, int]] = {}
    for cell, count in sorted(counted.items()):
        row, outcome = divmod(cell, len(OUTCOMES))
        rows.setdefault(row, {})[OUTCOMES[outcome]] = count
    return tuple(ShapeCell(row, results) for row, results in rows.items())


def _waiting(pods: Iterable[PodStory], start: int, width: int, columns: int) -> list[int]:
    """Return how many Pods waited for a node at the end of each column."""
    change = [0] * (columns + 1)
    for pod in pods:
        since = pod.since_unix_nano
        if since is None:
            continue
        until = pod.until_unix_nano
        if until is None and POD_STATES[pod.state].settled:
            until = pod.on_node.since_unix_nano if pod.on_node else since
        begun = max(0, (since - start) // width)
        ended = columns if until is None else min(columns, (until - start) // width)
        if begun < ended:
            change[begun] += 1
            change[ended] -= 1
    return list(accumulate(change[:columns]))


def tried_during(pod: PodStory, since: int | None, until: int | None) -> bool:
    """Return whether an attempt of a Pod began from `since` to `until`, both included; None for no end."""
    starts = [one.start_unix_nano for one in pod.attempts]
    if any((since is None or since <= at) and (until is None or at <= until) for at in starts):
        return True
    # Those that are forgotten lie between the first and the second of those held.
    return (
        bool(pod.forgotten)
        and len(starts) > 1
        and (until is None or starts[0] < until)
        and (since is None or since < starts[1])
    )


def of_attempts(attempts: Iterable[AttemptStory]) -> Iterator[ShapeAttempt]:
    """Yield attempts as the shape counts them."""
    for one in attempts:
        yield ShapeAttempt(one.start_unix_nano, one.duration, one.result)


class PluginShapes:
    """The shape of each plugin's attempts since the start, those that are no longer held among them. Bounded."""

    def __init__(self) -> None:
        self._shapes: dict[str, ShapeOverTime] = {}

    def note(self, before: AttemptStory | None, after: AttemptStory) -> None:
        """Count an attempt as it is now known instead of as it was; None: not yet."""
        old, new = dict(by_plugin(before)) if before else {}, dict(by_plugin(after))
        if old == new:
            return
        for plugin, attempt in old.items():
            if new.get(plugin) != attempt and plugin in self._shapes:
                self._shapes[plugin].remove(attempt)
        for plugin, attempt in new.items():
            if old.get(plugin) != attempt and (plugin in self._shapes or len(self._shapes) < _MOST_PLUGINS):
                self._shapes.setdefault(plugin, ShapeOverTime()).add(attempt)

    def of(self, plugin: str) -> ShapeOverTime | None:
        """Return the shape of a plugin's attempts; None if it is not known, or beyond the first 64."""
        return self._shapes.get(plugin)


def by_plugin(attempt: AttemptStory) -> Iterator[tuple[str, ShapeAttempt]]:
    """Yield the plugins that said no in an attempt, or took longest in a phase, with the time that each took there.

    It counts as Unschedulable where the plugin said no, as Error where it failed otherwise, else as Success.
    """
    took: dict[str, int] = {}
    for phase in attempt.phases:
        took[phase.plugin] = took.get(phase.plugin, 0) + phase.plugin_took
    refused = {no.plugin for no in attempt.why.rejections}
    for plugin in {*took, *refused} - {""}:
        if took.get(plugin) or plugin in refused:
            result = "Unschedulable" if plugin in refused else "Error" if attempt.result == "Error" else "Success"
            yield plugin, ShapeAttempt(attempt.start_unix_nano, took.get(plugin) or None, result)


def of_plugin(pods: Iterable[PodStory], plugin: str) -> Iterator[ShapeAttempt]:
    """Yield the attempts of a plugin of these Pods, as `by_plugin` counts them."""
    for pod in pods:
        for one in pod.attempts:
            yield from (attempt for name, attempt in by_plugin(one) if name == plugin)
