"""A report in plain words and columns, for a terminal."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from podtrail.backtest.breakdown import NOBODY
from podtrail.backtest.budget import size
from podtrail.backtest.report import (
    BreakdownTable,
    ChangedAttempt,
    DailyRate,
    Direction,
    PolicyFigures,
    Report,
    ReportedDecision,
)
from podtrail.backtest.sentence import percent
from podtrail.backtest.weight import Interval
from podtrail.story import VOTE_WORDS, Line, clip, duration, plain, several, shell_word, visible
from podtrail.story.lines import TextPiece, columns, dim, line, strong

_NAME: Final = 28
_REASON: Final = 200
_MOST_PARTS: Final = 8
_MOST_EXAMPLES: Final = 3
_ENOUGH: Final = 5
"""Pods with a broken story that are shown."""
_NO_VOTE: Final = "-"


def lines(report: Report) -> Iterator[Line]:
    """Yield the report, line by line."""
    yield line(strong(report.sentence))
    yield line(_came(report))
    yield from (line(dim(note)) for note in (report.sampling, *report.notes))
    if not report.came.spans:
        return
    yield ()
    yield from columns(_overview(report), indent=0)
    yield from _policies(report)
    yield from _tables(report)
    yield from _examples(report)
    yield from _pods(report)
    if report.gates:
        yield ()
        for gate in report.gates:
            word = TextPiece("held" if gate.held else "NOT HELD", "good" if gate.held else "bad")
            yield line("expected ", strong(gate.option), ": ", word, f", {gate.got}")


def _came(report: Report) -> str:
    came = report.came
    slow = f"{came.slow:,} slow (longer than {duration(report.slow_threshold_nanos)}: {report.slow_chosen})"
    return (
        f"{several(came.requests, 'request')}, {several(came.spans, 'span')} in {duration(came.length)}; "
        f"{several(came.attempts, 'attempt')}: {came.failed:,} failed, {slow}"
    )


def _overview(report: Report) -> Iterator[Sequence[str | TextPiece]]:
    """Yield the rows of the table of both sides."""
    sides = report.sides
    yield ("", *(TextPiece(side.name.upper(), "strong") for side in sides))
    yield (
        "attempts kept",
        *(f"{s.kept_attempts:,} ({percent(s.attempts_share)}{_between(s.attempts_interval)})" for s in sides),
    )
    yield ("failed attempts lost", *(f"{side.lost_failed:,}{_lost_range(side.lost_failed_interval)}" for side in sides))
    yield ("slow attempts lost", *(f"{side.lost_slow:,}" for side in sides))
    yield ("spans that leave", *(f"{side.spans:,}" for side in sides))
    yield ("spans a day", *(_rate(side.spans_a_day, plain_number) for side in sides))
    yield ("bytes a day", *(_rate(side.bytes_a_day, size) for side in sides))
    if report.budget is not None:
        yield (f"budget, {report.budget}", *("EXCEEDED" if side.over_budget else "kept to" for side in sides))
    yield (
        "stories of Pods",
        *(f"{s.pods_whole:,} whole, {s.pods_broken:,} broken, {s.pods_gone:,} gone" for s in sides),
    )
    if any(side.links for side in sides):
        yield ("links of kept spans", *(_links(s.links, s.links_dangling, s.links_unknown) for s in sides))


def _links(all_of_them: int, dangling: int, unknown: int) -> str:
    if not all_of_them:
        return "-"
    elsewhere = f", {unknown:,} to traces not in the recording" if unknown else ""
    return f"{all_of_them:,}: {dangling:,} to traces not kept{elsewhere}"


def plain_number(amount: float) -> str:
    """Return a rate as people read it: three digits count."""
    return f"{float(f'{amount:.3g}'):,.0f}" if amount >= 100 else f"{amount:.3g}"


def _rate(figure: DailyRate | None, words: Callable[[float], str]) -> str:
    if figure is None:
        return "-"
    between = figure.interval
    return words(figure.a_day) + (f" ({words(between.low)} to {words(between.high)})" if between else "")


def _between(interval: Interval | None) -> str:
    return f"; {percent(interval.low)} to {percent(interval.high)}" if interval else ""


def _lost_range(interval: Interval | None) -> str:
    return f" ({percent(interval.low)} to {percent(interval.high)} of all)" if interval else ""


def _policies(report: Report) -> Iterator[Line]:
    if not report.policies:
        return
    shown = [at for at, side in enumerate(report.sides) if side.decides]
    yield ()
    if len(shown) > 1:
        yield line("Policies, ", " → ".join(report.sides[at].name for at in shown))
    rows: list[Sequence[str]] = [("POLICY", "VOTED YES", "DECIDED", "ONLY IT", "SPANS")]
    for policy in report.policies:
        cells = zip(*(policy_cells(policy.sides[at]) for at in shown), strict=True)
        rows.append((visible(clip(policy.name, _NAME)), *map(_change, cells)))
    yield from right(rows)


def _change(cells: Sequence[str]) -> str:
    """Return the figures of all sides, once where they are the same."""
    return cells[0] if len(set(cells)) == 1 and cells[0] != "-" else " → ".join(cells)


def policy_cells(row: PolicyFigures) -> list[str]:
    """Return the figures of a policy, `-` where there is none."""
    return ["-" if value is None else f"{value:,}" for value in row]


def right(rows: Sequence[Sequence[str]]) -> list[Line]:
    """Return rows with all columns but the first aligned to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for name, *cells in rows:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append(line("  ".join([name.ljust(widths[0]), *padded])))
    return lines


def _tables(report: Report) -> Iterator[Line]:
    shown = [at for at in range(len(report.sides)) if at or not report.alone]
    for table in report.tables:
        if tells_nothing(table):
            continue
        yield ()
        rows: list[Sequence[str]] = [(f"BY {table.by.upper()}", "ATTEMPTS", "KEPT", "KEPT BYTES A DAY")]
        for part in table.parts[:_MOST_PARTS]:
            kept = [f"{part.kept[at]:,} ({percent(part.kept[at] / part.attempts)})" for at in shown]
            costs = [_cost(part.bytes_a_day[at]) for at in shown]
            rows.append((visible(clip(part.name, _NAME)), f"{part.attempts:,}", _change(kept), _change(costs)))
        yield from right(rows)
        if len(table.parts) > _MOST_PARTS:
            yield line(dim(f"{len(table.parts) - _MOST_PARTS:,} more (--json, --html)"))


def tells_nothing(table: BreakdownTable) -> bool:
    """Return whether a table has no row, or only that of attempts without any such name."""
    return all(part.name == NOBODY for part in table.parts)


def _cost(cost: float | None) -> str:
    return "-" if cost is None else size(cost)


def _examples(report: Report) -> Iterator[Line]:
    directions: tuple[Direction, ...] = ("lost", "gained")
    for direction in directions:
        counts = report.lost if direction == "lost" else report.gained
        told = [example for example in report.examples if example.direction == direction]
        if direction == "lost" and not counts["failed"] and not counts["slow"]:
            continue
        if not told:
            continue
        yield ()
        words = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
        yield line(f"Attempts only the {only(report, direction)} keeps: {words}. For example:")
        for example in told[:_MOST_EXAMPLES]:
            yield from _example(report, example)


def only(report: Report, direction: Direction) -> str:
    """Return the name of the side that alone keeps what is lost or gained."""
    return report.sides[0 if direction == "lost" else 1].name


def _example(report: Report, example: ChangedAttempt) -> Iterator[Line]:
    result = visible(clip(example.result or "no result", _NAME))
    plugins = f" by {visible(clip(', '.join(example.plugins), 80))}" if example.plugins else ""
    took = duration(max(0, example.duration_nanos))
    pod = shell_word(clip(example.pod, 100))
    yield line("  ", strong(pod), f"  {example.kind}: {result}{plugins}, took {took}, trace {example.trace_id.hex()}")
    for side, decided in zip(report.sides, example.decided, strict=True):
        if side.decides:
            yield line(f"    {side.name}: {decided_words(decided)}")


def decided_words(decided: ReportedDecision) -> str:
    """Return a decision with the votes that led to it."""
    said = [
        f"{visible(clip(vote.policy, _NAME))} {VOTE_WORDS.get(vote.decision or '', _NO_VOTE)}{_why(vote.why)}"
        for vote in decided.votes
        if vote.decision != "sampled" or decided.decision != "sampled" or vote.policy == decided.policy
    ]
    if decided.decision == "sampled":
        reason = f": {visible(clip(decided.reason, _REASON))}" if decided.reason else ""
        return f"kept by {visible(clip(decided.policy, _NAME))}{reason}" if decided.policy else "kept"
    verb = "dropped" if decided.decision == "dropped" else "not kept"
    return f"{verb}. {'; '.join(said[:4])}{f'; {len(said) - 4} more' if len(said) > 4 else ''}".rstrip(". ")


def _why(why: str) -> str:
    return f" ({visible(clip(why, 120))})" if why else ""


def _pods(report: Report) -> Iterator[Line]:
    broken = [pod for pod in report.broken_pods if pod.stories[-1] == "broken"]
    if not broken:
        return
    yield ()
    count = report.sides[-1].pods_broken
    newly = "" if report.alone else f", {report.newly_broken:,} of them whole with the baseline"
    yield line(f"Pods of which the candidate keeps some attempts and loses others: {count:,}{newly}. For example:")
    for pod in broken[:_ENOUGH]:
        kept = ", ".join(f"{side.name} keeps {kept:,}" for side, kept in zip(report.sides, pod.kept, strict=True))
        links = f"; {several(pod.dangling[-1], 'link')} to what is not kept" if pod.dangling[-1] else ""
        yield line("  ", strong(visible(clip(pod.pod, 100))), f"  {several(pod.attempts, 'attempt')}: {kept}{links}")


def text(report: Report) -> str:
    """Return the report without any marks."""
    return "\n".join(map(plain, lines(report)))
