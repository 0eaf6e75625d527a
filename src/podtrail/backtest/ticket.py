"""A backtest as a report for a ticket: the figures, what is lost and gained, no votes."""

from collections.abc import Iterator, Mapping, Sequence

from podtrail.backtest.budget import size
from podtrail.backtest.report import DailyRate, Direction, Report, SideReport
from podtrail.backtest.sentence import percent
from podtrail.backtest.text import only, plain_number
from podtrail.reports.document import (
    ForeignText,
    ReportCell,
    ReportDocument,
    ReportTable,
    TraceCell,
    heads,
    left_out,
    numbers,
    table,
)
from podtrail.story import clock, duration, several, stamp

_MOST_EXAMPLES = 20


def backtest_report(report: Report) -> ReportDocument:
    """Return a backtest as a document."""
    shown = report.sides[1:] if report.alone else report.sides
    came = report.came
    facts: list[tuple[str, ReportCell]] = [(side.name, ForeignText(side.source)) for side in shown]
    facts.append(("recorded", ForeignText(", ".join(report.recordings))))
    facts.append(
        ("came", f"{several(came.spans, 'span')}, {several(came.attempts, 'attempt')}: {came.failed:,} failed")
    )
    if came.requests:
        facts.append(("from", f"{stamp(came.first_unix_nano)} to {stamp(came.last_unix_nano)}"))
    facts += [(gate.option, f"{'held' if gate.held else 'NOT HELD'}: {gate.got}") for gate in report.gates]
    return ReportDocument(
        kind="Backtest",
        title=", ".join(side.name for side in shown),
        lead=report.sentence,
        facts=facts,
        parts=[*_figures(shown), *_policies(report), *_examples(report)] if came.spans else [],
        notes=[report.sampling, *report.notes],
    )


def _figures(shown: Sequence[SideReport]) -> Iterator[ReportTable]:
    rows: list[list[ReportCell]] = [
        ["spans a day", *(_rate(side.spans_a_day, bytes_of=False) for side in shown)],
        ["bytes a day", *(_rate(side.bytes_a_day, bytes_of=True) for side in shown)],
        ["attempts kept", *(f"{side.kept_attempts:,} ({percent(side.attempts_share)})" for side in shown)],
        ["failed attempts not kept", *(f"{side.lost_failed:,}" for side in shown)],
        ["slow attempts not kept", *(f"{side.lost_slow:,}" for side in shown)],
        ["Pods kept whole", *(f"{side.pods_whole:,}" for side in shown)],
        ["Pods whose story is broken", *(f"{side.pods_broken:,}" for side in shown)],
    ]
    yield from table("Figures", heads("", *numbers(*(side.name for side in shown))), rows)


def _rate(rate: DailyRate | None, *, bytes_of: bool) -> str:
    if rate is None:
        return "-"
    return size(rate.a_day) if bytes_of else plain_number(rate.a_day)


def _policies(report: Report) -> Iterator[ReportTable]:
    sides = [at for at, side in enumerate(report.sides) if side.decides]
    rows: list[list[ReportCell]] = [
        [ForeignText(policy.name), *(_count(policy.sides[at].decided) for at in sides)] for policy in report.policies
    ]
    columns = heads("Policy", *numbers(*(f"{report.sides[at].name} decided" for at in sides)))
    yield from table("Policies", columns, rows)


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _examples(report: Report) -> Iterator[ReportTable]:
    directions: Mapping[Direction, int] = {"lost": sum(report.lost.values()), "gained": sum(report.gained.values())}
    for direction, total in directions.items():
        examples = [one for one in report.examples if one.direction == direction][:_MOST_EXAMPLES]
        rows: list[list[ReportCell]] = [
            [
                ForeignText(one.pod),
                one.kind,
                ForeignText(one.result),
                ForeignText(", ".join(one.plugins)),
                duration(one.duration_nanos),
                clock(one.started_unix_nano),
                TraceCell(one.trace_id),
            ]
            for one in examples
        ]
        what = "Attempts it does not keep" if report.alone else f"Attempts only the {only(report, direction)} keeps"
        columns = heads("Pod", "Kind", "Result", "Rejected by", *numbers("Took"), "Started", "Trace")
        yield from table(f"{what}: {total:,}", columns, rows, left_out(len(rows), total, "attempts"))
