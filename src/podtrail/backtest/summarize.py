"""From what a comparison counted to a report: figures a day, intervals, the sentence that says it all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from podtrail.backtest.breakdown import BreakdownCount
from podtrail.backtest.budget import DailyBudget
from podtrail.backtest.comparison import KINDS, Backtest
from podtrail.backtest.report import (
    BreakdownRow,
    BreakdownTable,
    CheckedExpectation,
    DailyRate,
    PolicyComparison,
    PolicyFigures,
    RecordingFigures,
    Report,
    SideReport,
)
from podtrail.backtest.sentence import sentence
from podtrail.backtest.side import Side
from podtrail.backtest.weight import Interval
from podtrail.story import duration, several

_DAY_NANOS: Final = 86_400 * 1_000_000_000
_SHORT: Final = 3_600 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class ReportContext:
    """What a report tells besides the figures."""

    recordings: Sequence[str]
    slow_chosen: str
    budget: DailyBudget | None
    sampled: float | None
    """What was given as the probability of the recording, if anything."""


def summarize(done: Backtest, frame: ReportContext, gates: Callable[[Report], Sequence[CheckedExpectation]]) -> Report:
    """Return the report of a comparison that is finished; `gates` look at it and are added."""
    sides = [_side(done, at, side, frame.budget) for at, side in enumerate(done.sides)]
    came = _came(done)
    alone = done.sides[0].contender is None
    report = Report(
        sentence="",
        alone=alone,
        recordings=frame.recordings,
        came=came,
        slow_threshold_nanos=done.slow,
        slow_chosen=frame.slow_chosen,
        sampling=_sampling(done, frame.sampled),
        budget=frame.budget,
        sides=sides,
        lost={kind: done.changes["lost"][kind] for kind in KINDS},
        gained={kind: done.changes["gained"][kind] for kind in KINDS},
        newly_broken=done.pods.newly_broken,
        mended=done.pods.mended,
        policies=_policies(done.sides),
        tables=[BreakdownTable(table.by, [_part(row, came.length) for row in table.rows]) for table in done.tables],
        examples=done.examples,
        broken_pods=done.pods.broken,
        gates=(),
        notes=_notes(done, came),
    )
    report = replace(report, sentence=sentence(report))
    return replace(report, gates=tuple(gates(report)))


def _came(done: Backtest) -> RecordingFigures:
    intakes, all_kept = done.intakes, done.kept[0]
    return RecordingFigures(
        intakes.requests,
        intakes.spans,
        intakes.rejected,
        intakes.damages,
        intakes.untimed,
        intakes.first,
        intakes.last,
        all_kept.attempts.count,
        all_kept.failed.count,
        all_kept.slow.count,
    )


def _side(done: Backtest, at: int, side: Side, budget: DailyBudget | None) -> SideReport:
    kept, output, stories = done.kept[at], side.output, done.pods.stories[at]
    length = done.intakes.last - done.intakes.first
    figures = [
        _figure(amount, output.weighed.ratio, output.weighed.error, length) for amount in (output.spans, output.size)
    ]
    spans_a_day, bytes_a_day = figures
    spent = None if budget is None else bytes_a_day if budget.unit == "bytes" else spans_a_day
    failed = kept.failed.interval
    return SideReport(
        name=side.name,
        source=side.contender.source if side.contender is not None else "",
        decides=side.decides,
        traces=side.policies.traces,
        kept_traces=side.policies.kept,
        spans=output.spans,
        bytes=output.size,
        spans_a_day=spans_a_day,
        bytes_a_day=bytes_a_day,
        kept_attempts=kept.attempts.within,
        attempts_share=kept.attempts.value,
        attempts_interval=kept.attempts.interval,
        lost_failed=kept.failed.count - kept.failed.within,
        lost_failed_interval=Interval(1 - failed.high, 1 - failed.low) if failed is not None else None,
        lost_slow=kept.slow.count - kept.slow.within,
        pods_whole=stories["whole"],
        pods_broken=stories["broken"],
        pods_gone=stories["gone"],
        links=kept.links.all,
        links_dangling=kept.links.dangling,
        links_unknown=kept.links.unknown,
        over_budget=budget is not None and spent is not None and spent.a_day > budget.a_day,
    )


def _figure(amount: int, ratio: float, error: float, length: int) -> DailyRate | None:
    if length <= 0:
        return None
    a_day = amount * ratio * _DAY_NANOS / length
    return DailyRate(a_day, Interval(max(0.0, a_day * (1 - error)), a_day * (1 + error)) if error else None)


def _part(row: BreakdownCount, length: int) -> BreakdownRow:
    factor = _DAY_NANOS / length if length > 0 else None
    spans = [None if factor is None else total.estimate * factor for total in row.spans]
    size = [None if factor is None else total.estimate * factor for total in row.size]
    return BreakdownRow(row.name, row.attempts, row.kept, spans, size)


def _policies(sides: Sequence[Side]) -> list[PolicyComparison]:
    names = dict.fromkeys(name for side in sides for name in side.policies.rows)
    return [PolicyComparison(name, [_policy(side, name) for side in sides]) for name in names]


def _policy(side: Side, name: str) -> PolicyFigures:
    row = side.policies.rows.get(name)
    if row is None:
        return PolicyFigures(None, None, None, None)
    voted = row.voted_yes if name in side.policies.named else None
    return PolicyFigures(voted, row.decided, row.only_it if side.policies.asks_all else None, row.spans)


def _sampling(done: Backtest, sampled: float | None) -> str:
    if done.thinned.interval is None:
        return (
            "The recording is taken as everything that was sent: no span bears a sampling threshold (ot=th), and "
            "--sampled was not given. Its figures are exact and have no interval; other days may differ."
        )
    given = f"taken as a sample of {sampled:.3%}".replace(".000%", "%") if sampled is not None else "a sample"
    stands = done.thinned.whole / done.thinned.count
    return (
        f"The recording is {given}: its {several(done.thinned.count, 'trace')} stand for about "
        f"{done.thinned.whole:,.0f} (one for {stands:,.3g}). Shares and figures a day are estimates, with 95 % "
        "intervals (Wilson's for shares, normal ones for sums); counts are those of the recording."
    )


def _notes(done: Backtest, came: RecordingFigures) -> list[str]:
    notes: list[str] = []
    if came.damages:
        notes.append(f"{several(came.damages, 'damaged place')} of the recording skipped.")
    if came.rejected:
        notes.append(f"{several(came.rejected, 'invalid span')} rejected.")
    if came.untimed:
        whose = "The recording has" if came.untimed == came.requests else f"{came.untimed:,} requests have"
        notes.append(f"{whose} no arrival times: those of the spans' ends are used.")
    if came.requests and 0 < came.length < _SHORT:
        notes.append(f"Figures a day are scaled from {duration(came.length)}: a day has busier and quieter hours.")
    if came.requests and came.length <= 0:
        notes.append("All came at one moment: there are no figures a day.")
    for side, undecided in zip(done.sides, done.fates.undecided, strict=True):
        if undecided:
            never = f"{several(undecided, 'attempt')} never reached the sampler of the {side.name}"
            notes.append(f"{never}: a processor ahead of it took them, or they came too late. They count as not kept.")
        if told := side.rootless.told:
            notes.append(f"The {side.name}: {told}.")
        if side.contender is not None and not side.decides:
            notes.append(f"The {side.name} has no tail sampler in every pipeline: each trace counts as kept by it.")
        if side.output.dry_runs:
            notes.append(f"The {side.name} is a dry run: all its spans leave, and what it keeps is what it would keep.")
    return notes
