"""Backtest: what a configuration would have kept of a recording, compared with another or with everything."""

from podtrail.backtest.budget import Budget, parse_budget, size
from podtrail.backtest.comparison import Comparison
from podtrail.backtest.report import Gate, Report
from podtrail.backtest.side import Contender
from podtrail.backtest.summarize import Frame, summarize

__all__ = ["Budget", "Comparison", "Contender", "Frame", "Gate", "Report", "parse_budget", "size", "summarize"]
