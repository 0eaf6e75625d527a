"""What CI expects of a report (`--fail-on-lost-failed` and its like), each with what was got instead."""

from dataclasses import dataclass

from podtrail.backtest.budget import DailyBudget
from podtrail.backtest.report import CheckedExpectation, Report
from podtrail.backtest.sentence import change
from podtrail.story import several


@dataclass(frozen=True, slots=True)
class Expectations:
    """Which expectations were asked for. Called with a report, says which of them hold."""

    no_lost_failed: bool = False
    no_lost_slow: bool = False
    max_spans_increase: float | None = None
    """As a share of the baseline's spans."""
    within_budget: bool = False

    def __call__(self, report: Report) -> list[CheckedExpectation]:
        """Return each expectation with whether it holds."""
        before, after = report.sides[0], report.sides[-1]
        gates: list[CheckedExpectation] = []
        if self.no_lost_failed:
            lost = report.lost["failed"]
            gates.append(
                CheckedExpectation("--fail-on-lost-failed", lost == 0, f"{several(lost, 'failed attempt')} lost")
            )
        if self.no_lost_slow:
            lost = report.lost["slow"]
            gates.append(CheckedExpectation("--fail-on-lost-slow", lost == 0, f"{several(lost, 'slow attempt')} lost"))
        if self.max_spans_increase is not None:
            most = before.spans * (1 + self.max_spans_increase)
            got = f"{change(before.spans, after.spans)} spans"
            gates.append(
                CheckedExpectation(f"--max-spans-increase {100 * self.max_spans_increase:g}%", after.spans <= most, got)
            )
        if self.within_budget and report.budget is not None:
            figure = after.bytes_a_day if report.budget.unit == "bytes" else after.spans_a_day
            if figure is None:
                gates.append(
                    CheckedExpectation(
                        "--fail-over-budget", held=False, got="the recording has no length to scale from"
                    )
                )
            else:
                spent = DailyBudget(figure.a_day, report.budget.unit)
                gates.append(
                    CheckedExpectation("--fail-over-budget", not after.over_budget, f"{spent} of {report.budget}")
                )
        return gates
