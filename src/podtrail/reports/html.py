"""A report as one HTML file that needs nothing else: its style is inline, it has no script.

What comes from elsewhere passes `finalize` (nothing in it can turn text around) and is escaped by jinja2.
"""

from collections.abc import Callable, Mapping
from functools import cache

from jinja2 import Environment

from podtrail.pages import environment as kit
from podtrail.pages.environment import inline_hash
from podtrail.reports.document import (
    DrawnBar,
    ForeignText,
    NodeCell,
    PluginCell,
    PodCell,
    ReportDocument,
    ReportLines,
    TraceCell,
)

_WIDTH = 600
CELL_TESTS: Mapping[str, Callable[[object], bool]] = {
    "drawn": lambda cell: isinstance(cell, DrawnBar),
    "foreign": lambda cell: isinstance(cell, ForeignText),
    "pod_cell": lambda cell: isinstance(cell, PodCell),
    "trace_cell": lambda cell: isinstance(cell, TraceCell),
    "plugin_cell": lambda cell: isinstance(cell, PluginCell),
    "node_cell": lambda cell: isinstance(cell, NodeCell),
    "lines": lambda part: isinstance(part, ReportLines),
}
"""What templates ask a part of a document, or a cell of it."""


def to_html(document: ReportDocument) -> str:
    """Return the page; the same report gives the same page."""
    environment = _environment()
    template = environment.get_template("ticket.html")
    return template.render(report=document, css_hash=inline_hash(environment, "ticket.css"))


@cache
def _environment() -> Environment:
    made = kit.environment(__package__, _WIDTH)
    made.tests |= CELL_TESTS
    return made
