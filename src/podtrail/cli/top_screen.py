"""What `podtrail top` draws: lines of text, made of one answer of the page. What the page says is made harmless."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.cells import cell_len, set_cell_size

from podtrail.cli.cutting import fit, fit_apart
from podtrail.story import clip, clock, duration, visible

SORTS: Final = ("longest", "median", "attempts", "name")
_ROWS: Final = 8
"""Rows of a table where there is no height to fit."""
_MIB: Final = 1 << 20
_RED, _YELLOW, _BOLD, _DIM, _OFF = "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"

Row = Sequence[str]
Told = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Look:
    """How it is drawn."""

    width: int | None = None
    """Columns; None: nothing is cut."""
    height: int | None = None
    sort: str = "longest"
    filter: str = ""
    """Part of a name or reason that rows of the tables have; capitals don't matter."""
    colour: bool = False
    problem: str = ""
    """Why nothing later is known."""


@dataclass(frozen=True, slots=True)
class _Table:
    head: Row
    rows: Sequence[Row]
    right: int
    """So many of the last columns are numbers."""


def draw(told: Told, look: Look) -> list[str]:
    """Return the screen. A page of another version may leave things out."""
    head = list(_head(told, look))
    filtered = [table for table in _tables(told, look) if table.rows]
    if look.filter and not filtered:
        wanted = visible(look.filter)
        head.append(_fit(f"Filter    no reason to wait, plugin or refusal has {wanted} in it", look))
    tables = [*filtered, *(table for table in _pipeline_tables(told) if table.rows)]
    lines = head
    rooms = _rooms([len(table.rows) for table in tables], None if look.height is None else look.height - len(head))
    for table, room in zip(tables, rooms, strict=True):
        lines += ["", *_columns(table, room, look)]
    return lines if look.height is None else lines[: look.height]


def _rooms(rows: Sequence[int], height: int | None) -> list[int]:
    """Return how many rows of each table are shown; what one does not need is for the others."""
    if height is None:
        return [min(count, _ROWS) for count in rows]
    spare = height - 2 * len(rows)
    rooms = [min(count, 1) for count in rows]
    while spare > sum(rooms) and rooms != list(rows):
        at = min((at for at, count in enumerate(rows) if rooms[at] < count), key=lambda at: rooms[at])
        rooms[at] += 1
    return rooms


def _head(told: Told, look: Look) -> Iterable[str]:
    pipeline = _mapping(told.get("pipeline"))
    stands = "" if told.get("live") else ", where the simulation or recording stands"
    window = duration(_whole(told.get("window")))
    results = _counts(told.get("results"))
    pods, pending = _mapping(told.get("pods")), _whole(told.get("pending"))
    lines = [
        ("Attempts", _silence(told, window) + (f": {results}" if results else "")),
        ("Pods", f"{sum(map(_whole, pods.values())):,}, {pending:,} pending" + (f": {_counts(pods)}" if pods else "")),
        ("Traces", _traces(told, pipeline)),
    ]
    if (memory := pipeline.get("memoryBytes")) is not None:
        up = pipeline.get("uptimeSeconds")
        since = f", up {duration(int(_number(up)) * 1_000_000_000)}" if up is not None else ""
        lines.append(("Memory", f"{_number(memory) / _MIB:,.0f} MiB{since}"))
    late = f", nothing later: {look.problem}" if look.problem else ""
    title = f"podtrail top  {clock(_whole(told.get('nowUnixNano')))} UTC{late or stands}"
    yield _styled(_fit(title, look), _RED if late else "", look)
    for name, words in lines:
        yield _fit(f"{name:<9} {words}", look)
    yield from _trouble(pipeline, look)


def _silence(told: Told, window: str) -> str:
    """Return how many attempts come; where none does, since when, and of when the tables are."""
    now, until = _whole(told.get("nowUnixNano")), _whole(told.get("windowEndUnixNano"))
    if 0 < until < now:
        return f"none for {duration(now - until)}; plugins and refusals are of the {window} until {clock(until)}"
    rate, moment = (_number(told.get(name)) for name in ("attemptsPerSecond", "attemptsPerSecondLately"))
    return f"{rate:,.1f}/s in {window}, {moment:,.1f}/s in 10 s"


def _traces(told: Told, pipeline: Told) -> str:
    decided, kept = _whole(told.get("decided")), _whole(told.get("kept"))
    share = f" ({100 * kept / decided:.0f} %)" if decided else ""
    words = f"{decided:,} decided in the last hour, {kept:,} kept{share}"
    if (undecided := pipeline.get("undecided")) is not None:
        words += f", {_whole(undecided):,} undecided"
    if (after := told.get("decidedAfter")) is not None:
        words += f"; decided {duration(_whole(after))} after the first span"
    if (behind := pipeline.get("oldestUndecidedSeconds")) is not None:
        words += f"; partitions {_number(behind):,.1f} s behind"
    return words


def _trouble(pipeline: Told, look: Look) -> Iterable[str]:
    """Yield what should not be, in red; a word says it as well."""
    missing = [one for one in _list(pipeline.get("exporters")) if _whole(one.get("missing"))]
    said = [f"{_safe(one.get('exporter'))}: {_whole(one.get('missing')):,} spans are missing" for one in missing]
    if dropped := _counts(pipeline.get("dropped")):
        said.append(f"spans lost: {dropped}")
    for words in said:
        yield _styled(_fit(f"!         {words}", look), _RED, look)


def _tables(told: Told, look: Look) -> Iterable[_Table]:
    """Yield those that are filtered."""
    wanted = look.filter.casefold()

    def chosen(rows: Iterable[Row], names: int) -> list[Row]:
        return [row for row in rows if wanted in " ".join(row[:names]).casefold()]

    waiting = [(_safe(one.get("reason")), f"{_whole(one.get('pods')):,}") for one in _list(told.get("waiting"))]
    yield _Table(("WAITING FOR", "PODS"), chosen(waiting, 1), 1)
    plugins = sorted(_list(told.get("plugins")), key=_order(look.sort))
    slow = [
        (
            _safe(one.get("plugin")),
            _safe(one.get("point")),
            *(duration(_whole(one.get(name))) for name in ("longest", "median")),
            f"{_whole(one.get('attempts')):,}",
        )
        for one in plugins
    ]
    yield _Table(("SLOWEST PLUGIN", "POINT", "LONGEST", "MEDIAN", "ATTEMPTS"), chosen(slow, 2), 3)
    by_name = look.sort == "name"
    refusing = sorted(_list(told.get("refusals")), key=_order("name" if by_name else "attempts"))
    refused = [
        (_safe(one.get("plugin")) or "-", _safe(one.get("reason")), *_numbers(one, "attempts", "pods"))
        for one in refusing
    ]
    yield _Table(("REFUSED BY", "REASON", "ATTEMPTS", "PODS"), chosen(refused, 2), 2)


def _pipeline_tables(told: Told) -> Iterable[_Table]:
    """Yield those of policies and exporters: no filter hides what is wrong there."""
    kept = [
        (
            (_safe(one.get("policy")) or "(another reason)") + (" (shadow)" if one.get("shadow") else ""),
            *_numbers(one, "votedYes", "kept", "spans"),
        )
        for one in _list(told.get("policies"))
    ]
    yield _Table(("POLICY, LAST HOUR", "VOTED YES", "KEPT", "SPANS"), kept, 3)
    exporters = _list(_mapping(told.get("pipeline")).get("exporters"))
    names = ("received", "created", "delivered", "sampledOut", "rejected", "dropped", "inMemory", "inQueue")
    sent = [(_safe(one.get("exporter")), *_numbers(one, *names), _queue(one)) for one in exporters]
    heads = ("EXPORTER", "IN", "CREATED", "OUT", "SAMPLED OUT", "REJECTED", "LOST", "HELD", "QUEUED", "QUEUE")
    yield _Table(heads, sent, 9)


def _queue(one: Told) -> str:
    size, capacity = one.get("queueSize"), one.get("queueCapacity")
    return "-" if size is None or not capacity else f"{100 * _number(size) / _number(capacity):.0f} %"


def _order(sort: str) -> Callable[[Told], tuple[int, str]]:
    def key(one: Told) -> tuple[int, str]:
        return (0 if sort == "name" else -_whole(one.get(sort))), str(one.get("plugin")).casefold()

    return key


def _columns(table: _Table, room: int, look: Look) -> list[str]:
    rows = [table.head, *table.rows[:room]]
    widths = [max(cell_len(row[at]) for row in rows) for at in range(len(table.head))]
    if look.width is not None:
        # The widest column of words gives way first: numbers are not cut; columns at the end go if need be.
        words = len(widths) - table.right
        over = sum(widths) + 2 * (len(widths) - 1) - look.width
        while over > 0 and max(widths[:words]) > 12:
            at = widths.index(max(widths[:words]))
            widths[at] -= 1
            over -= 1
    lines = []
    numbers = len(widths) - table.right
    cut = [
        [cell.rjust(width) if at >= numbers else set_cell_size(cell, width) for cell in told]
        for at, width in enumerate(widths)
        for told in [fit_apart([row[at] for row in rows], width)]
    ]
    for number, cells in enumerate(zip(*cut, strict=True)):
        line = _fit("  ".join(cells).rstrip(), look)
        lines.append(line if number else _styled(line, _BOLD, look))
    left = len(table.rows) - room
    if left > 0 and look.height is None:
        lines.append(f"and {left:,} more")
    return lines


def _fit(line: str, look: Look) -> str:
    return line if look.width is None else fit(line, look.width)


def _styled(line: str, style: str, look: Look) -> str:
    return f"{style}{line}{_OFF}" if look.colour and style else line


def _counts(told: object) -> str:
    return ", ".join(f"{_whole(count):,} {_safe(name)}" for name, count in _mapping(told).items())


def _numbers(one: Told, *names: str) -> list[str]:
    return [f"{_whole(one.get(name)):,}" for name in names]


def _mapping(value: object) -> Told:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Told]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _whole(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        return int(value)
    return int(value) if isinstance(value, int | float) and abs(value) < 1e20 else 0


def _safe(value: object) -> str:
    return clip(visible(str(value or "")))
