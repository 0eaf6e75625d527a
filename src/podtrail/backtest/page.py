"""A report as one HTML file that needs nothing else: style, script and charts are inline, and no data is script.

The same report gives the same bytes. Text from spans passes `finalize` (nothing in it can turn text around) and is
escaped by jinja2; nothing here marks text as safe.
"""

from dataclasses import replace
from typing import Final

from jinja2 import Environment

from podtrail.backtest.budget import size
from podtrail.backtest.report import Report
from podtrail.backtest.sentence import percent
from podtrail.backtest.text import only, plain_number, tells_nothing
from podtrail.pages import environment as kit
from podtrail.pages.chart import chart
from podtrail.pages.environment import inline_hash
from podtrail.story import duration

LARGEST: Final = 5 << 20
"""Bytes of a page."""
_WIDTH: Final = 200
_MOST_PARTS: Final = 200


def page(report: Report) -> bytes:
    """Return the page, with fewer examples where it would be too large."""
    environment = _environment()
    template = environment.get_template("report.html")
    hashes = {f"{kind}_hash": inline_hash(environment, f"report.{kind}") for kind in ("css", "js")}
    while True:
        anchors = {pod.uid or pod.pod: at for at, pod in reversed(list(enumerate(report.broken_pods, 1)))}
        made = template.render(report=report, anchors=anchors, **hashes).encode()
        if len(made) <= LARGEST or not (report.examples or report.broken_pods):
            return made
        report = replace(
            report,
            examples=report.examples[: len(report.examples) // 2],
            broken_pods=report.broken_pods[: len(report.broken_pods) // 2],
        )


def _environment() -> Environment:
    made = kit.environment(__package__, _WIDTH)
    made.filters |= {
        "rate": lambda value: "-" if value is None else plain_number(value),
        "size": lambda value: "-" if value is None else size(value),
        "percent": percent,
        "duration": lambda value: duration(max(0, value)),
    }
    made.globals |= {
        "chart": chart,
        "only": only,
        "tells_nothing": tells_nothing,
        "percent": percent,
        "plain_number": plain_number,
        "size": size,
        "most_parts": _MOST_PARTS,
    }
    return made
