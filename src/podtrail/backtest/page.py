"""A report as one HTML file that needs nothing else: style, script and charts are inline, and no data is script.

The same report gives the same bytes. Text from spans passes `finalize` (nothing in it can turn text around) and is
escaped by jinja2; nothing here marks text as safe.
"""

from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from typing import Final

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from podtrail.backtest.budget import size
from podtrail.backtest.chart import AXIS, chart
from podtrail.backtest.report import Report
from podtrail.backtest.sentence import percent
from podtrail.backtest.text import only, plain_number, tells_nothing
from podtrail.story import clip, duration, several, stamp, visible

LARGEST: Final = 5 << 20
"""Bytes of a page."""
_WIDTH: Final = 200
_MOST_PARTS: Final = 200


class Whole(str):
    """Text that is shown in full length."""

    __slots__ = ()


def page(report: Report) -> bytes:
    """Return the page, with fewer examples where it would be too large."""
    environment = _environment()
    template = environment.get_template("report.html")
    hashes = {f"{kind}_hash": _hash(environment, f"report.{kind}") for kind in ("css", "js")}
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
    folder = files(__package__) / "templates"
    sources = {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.is_file()}
    environment = Environment(
        loader=DictLoader(sources),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": lambda value: "-" if value is None else f"{value:,}",
        "rate": lambda value: "-" if value is None else plain_number(value),
        "size": lambda value: "-" if value is None else size(value),
        "percent": percent,
        "whole": Whole,
        "duration": lambda value: duration(max(0, value)),
        "stamp": stamp,
    }
    environment.globals |= {
        "axis": AXIS,
        "chart": chart,
        "several": several,
        "only": only,
        "tells_nothing": tells_nothing,
        "percent": percent,
        "plain_number": plain_number,
        "size": size,
        "decisions": {"sampled": "kept", "not_sampled": "not kept", "dropped": "dropped"},
        "said": {"sampled": "yes", "not_sampled": "no", "dropped": "drop", None: "no vote"},
        "most_parts": _MOST_PARTS,
    }
    return environment


def _finalize(value: object) -> object:
    """Return what a template may put out in place of a value."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(value if isinstance(value, Whole) else clip(value, _WIDTH))


def _hash(environment: Environment, name: str) -> str:
    """Return how a Content-Security-Policy names an inline element by what stands in it."""
    return "sha256-" + b64encode(sha256(environment.get_template(name).render().encode()).digest()).decode()
