"""Backtest: what a configuration would have kept of a recording, compared with another or with everything."""

from podtrail.backtest.budget import DailyBudget, parse_budget, size
from podtrail.backtest.comparison import Backtest
from podtrail.backtest.report import CheckedExpectation, Report
from podtrail.backtest.side import Contender
from podtrail.backtest.summarize import ReportContext, summarize

__all__ = [
    "Backtest",
    "CheckedExpectation",
    "Contender",
    "DailyBudget",
    "Report",
    "ReportContext",
    "parse_budget",
    "size",
    "summarize",
]
