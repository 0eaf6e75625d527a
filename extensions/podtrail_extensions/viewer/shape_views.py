"""The shape of attempts over time as it is drawn: paths for SVG, and words for who can't see them."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from podtrail.story import AttemptsShape, HeardBetween, Library, clock, duration, several, stamp
from podtrail.story.configuration_runs import SeenChange
from podtrail.story.shape import EDGES, OUTCOMES, ROWS, AttemptShape, ShapeCell, ShapeColumn, of_attempts, of_plugin

_SECOND: Final = 1_000_000_000
_CELL: Final = 10
"""Of a cell each way, in the units of the drawing."""
_DEPTH: Final = 40
"""Height of the drawing of those who wait, in its units."""
_STRENGTHS: Final = (1, 4, 16)
"""A cell of more attempts than each of these is drawn stronger by one."""
MARKS: Final = {"Error": "m2 2l5 5m0-5l-5 5", "Unschedulable": "m2 7l5-5", "other": "m4 4.5h1"}
"""A shape on the worst end of a cell's attempts, so that its colour does not tell it alone."""
_TICKS: Final = 4
_MOST_TOLD: Final = 3
_ALL: Final = HeardBetween()
_MANY: Final = 1_000
"""Pods from which on a thread looks who waited."""


class Layer(NamedTuple):
    """Cells that look alike, as one path."""

    outcome: str
    """A name of `OUTCOMES`."""
    strength: int
    """From 1 for a single attempt to 4."""
    path: str


class Tick(NamedTuple):
    """A word beside the drawing."""

    at: int
    words: str


@dataclass(frozen=True, slots=True)
class ShapeDrawing:
    """What the template needs of a shape."""

    shape: AttemptsShape
    first: int
    """The lowest row that is drawn, and the last."""
    last: int
    layers: tuple[Layer, ...]
    marks: tuple[tuple[str, str], ...]
    """By outcome, a path of strokes."""
    waiting: str
    """A path: the area below those who wait."""
    most_waiting: int
    results: Mapping[str, int]
    rows: tuple[Tick, ...]
    """Where decades of durations begin, in rows from the top."""
    times: tuple[str, ...]
    words: str
    """All of it in a sentence or two."""
    chosen: tuple[int, int] | None
    """Start and width of the range that is chosen, in columns; None for none that is drawn."""
    changes: tuple[SeenChange, ...]
    """Of the scheduler's configuration, those in the columns."""
    change_lines: str
    """A path: a line from top to bottom at each of them."""


class ShapeViews:
    """The shapes of all attempts, of a Pod's and of a plugin's."""

    def __init__(self, library: Library) -> None:
        self._stories = library.stories
        self._known: tuple[int, HeardBetween, AttemptsShape] | None = None
        """The last shape of all attempts, with what it was made of: whoever watches asks for the same."""

    async def asked(self, plugin: str, pod: str, within: HeardBetween) -> AttemptsShape | None:
        """Return the shape of a plugin's or a Pod's attempts, or of all; None for an unknown Pod."""
        if pod:
            return self.pod(pod, within)
        return await self.plugin(plugin, within) if plugin else await self.everyone(within)

    async def everyone(self, within: HeardBetween = _ALL) -> AttemptsShape:
        """Return the shape of all attempts since the start."""
        stories, changes = self._stories, self._stories.changes
        if self._known is None or self._known[:2] != (changes, within):
            shape, pods = stories.shape.told((), *within), stories.pods()
            known = await asyncio.to_thread(shape.with_waiting, pods) if len(pods) > _MANY else shape.with_waiting(pods)
            self._known = changes, within, known
            return known
        return self._known[2]

    async def around(self, chosen: HeardBetween, plugin: str = "") -> AttemptsShape:
        """Return the shape of all attempts, or of a plugin's, around a range that is chosen: as much on either side."""
        since, until = chosen
        if since is not None and until is not None:
            length = until - since + 1
            chosen = HeardBetween(max(0, since - length), until + length)
        return await self.plugin(plugin, chosen) if plugin else await self.everyone(chosen)

    def pod(self, key: str, within: HeardBetween = _ALL) -> AttemptsShape | None:
        """Return the shape of a Pod's attempts, as far as they are held; None for an unknown Pod."""
        pod = self._stories.pod(key)
        return AttemptShape.of(of_attempts(pod.attempts)).told((), *within) if pod else None

    async def plugin(self, plugin: str, within: HeardBetween = _ALL) -> AttemptsShape:
        """Return the shape of the attempts since the start in which a plugin said no or took longest."""
        if (known := self._stories.plugin_shapes.of(plugin)) is not None:
            return known.told((), *within)
        pods = self._stories.unordered()

        def told() -> AttemptsShape:
            return AttemptShape.of(of_plugin(pods, plugin)).told((), *within)

        return await asyncio.to_thread(told)


def drawing(shape: AttemptsShape, chosen: HeardBetween = _ALL, changes: Sequence[SeenChange] = ()) -> ShapeDrawing:
    """Return what to draw of a shape, with a range in it that is chosen, and changes of the configuration."""
    start = shape.columns[0].start_unix_nano if shape.columns else 0
    seen = tuple(change for change in changes if start <= change.at_unix_nano <= shape.end_unix_nano)
    used = [cell.row for column in shape.columns for cell in column.cells]
    first, last = min(used, default=0), max(used, default=0)
    most = max((column.waiting for column in shape.columns), default=0)
    results = Counter[str]()
    for column in shape.columns:
        results.update(column.results)
    return ShapeDrawing(
        shape=shape,
        first=first,
        last=last,
        layers=_layers(shape.columns, last),
        marks=_marks(shape.columns, last),
        waiting=_area(shape.columns, most),
        most_waiting=most,
        results={name: results[name] for name in OUTCOMES if results[name]},
        rows=tuple(Tick(last - row, row_words(row)) for row in range(max(first, 1), last + 1) if row % 2 == last % 2),
        times=_times(shape),
        words=_words(shape, results, most, seen),
        chosen=_columns(shape, chosen),
        changes=seen,
        change_lines="".join(
            f"M{(change.at_unix_nano - start) * _CELL // shape.width} 0V{(last - first + 1) * _CELL}" for change in seen
        ),
    )


def row_words(row: int) -> str:
    """Return from where on durations are in a row."""
    if not row:
        return "not told"
    return "0" if row == 1 else duration(EDGES[row - 2])


def row_range(row: int) -> str:
    """Return between what the durations of a row lie."""
    if not row:
        return "not told"
    if row == ROWS - 1:
        return f"{duration(EDGES[-1])} or longer"
    return f"{row_words(row)} to {duration(EDGES[row - 1])}"


def _columns(shape: AttemptsShape, chosen: HeardBetween) -> tuple[int, int] | None:
    if chosen == _ALL or not shape.columns:
        return None
    start, end = shape.columns[0].start_unix_nano, shape.end_unix_nano
    since = max(start, start if chosen.since is None else chosen.since)
    until = min(end, end if chosen.until is None else chosen.until)
    if since > until:
        return None
    first, last = (since - start) // shape.width, (until - start) // shape.width
    return first, last - first + 1


def _layers(columns: Sequence[ShapeColumn], top: int) -> tuple[Layer, ...]:
    paths: dict[tuple[int, int], list[str]] = {}
    for at, column in enumerate(columns):
        for cell in column.cells:
            strength = 1 + sum(cell.attempts > most for most in _STRENGTHS)
            corner = _corner(at, cell, top)
            paths.setdefault((OUTCOMES.index(cell.worst), strength), []).append(f"{corner}h9v9h-9z")
    return tuple(Layer(OUTCOMES[worst], strength, "".join(path)) for (worst, strength), path in sorted(paths.items()))


def _marks(columns: Sequence[ShapeColumn], top: int) -> tuple[tuple[str, str], ...]:
    paths: dict[str, list[str]] = {}
    for at, column in enumerate(columns):
        for cell in column.cells:
            if cell.worst in MARKS:
                paths.setdefault(cell.worst, []).append(_corner(at, cell, top) + MARKS[cell.worst])
    return tuple((outcome, "".join(path)) for outcome, path in sorted(paths.items()))


def _corner(column: int, cell: ShapeCell, top: int) -> str:
    return f"M{column * _CELL} {(top - cell.row) * _CELL}"


def _area(columns: Sequence[ShapeColumn], most: int) -> str:
    heights = [_DEPTH - _DEPTH * column.waiting // most if most else _DEPTH for column in columns]
    steps = "".join(f"V{height}h{_CELL}" for height in heights)
    return f"M0 {_DEPTH}{steps}V{_DEPTH}z" if most else ""


def _times(shape: AttemptsShape) -> tuple[str, ...]:
    if not shape.columns:
        return ()
    start, whole = shape.columns[0].start_unix_nano, shape.width * len(shape.columns)
    say = stamp if whole > 86_400 * _SECOND else clock
    return tuple(say(start + whole * part // (_TICKS - 1)) for part in range(_TICKS))


def _words(shape: AttemptsShape, results: Mapping[str, int], most: int, changes: Sequence[SeenChange]) -> str:
    if not shape.columns:
        return "No attempts."
    rows = Counter[int]()
    for column in shape.columns:
        for cell in column.cells:
            rows[cell.row] += cell.attempts
    ends = ", ".join(f"{results[name]:,} {name}" for name in OUTCOMES if results[name])
    began, ended = stamp(shape.columns[0].start_unix_nano), stamp(shape.end_unix_nano)
    usual, longest = row_range(max(rows, key=lambda row: rows[row])), row_range(max(rows))
    said = [f"{several(shape.attempts, 'attempt')} from {began} to {ended}: {ends}."]
    said.append(f"Most took {usual}, the longest {longest}.")
    if most:
        when = next(column for column in shape.columns if column.waiting == most)
        said.append(f"At most {several(most, 'Pod')} waited, at {clock(when.start_unix_nano + shape.width)}.")
    if changes:
        when_changed = ", ".join(clock(change.at_unix_nano) for change in changes[-_MOST_TOLD:])
        said.append(f"The scheduler's configuration changed {several(len(changes), 'time')}, last at {when_changed}.")
    return " ".join(said)
