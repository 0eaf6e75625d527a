"""What a report says, without how it looks: HTML and Markdown are drawn from the same document.

Text is plain and not yet harmless: who draws a document makes it so. `ForeignText` marks what spans say, so that it
never reads as the report's own words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from podtrail.config.endpoint import is_loopback
from podtrail.story import Line


class ForeignText(str):
    """Text from elsewhere: a name, a reason, a message."""

    __slots__ = ()


class DrawnBar(NamedTuple):
    """A bar in a table, in the units of `podtrail.pages.chart`; only HTML draws it."""

    start: int
    width: int
    bad: bool = False


class PodCell(NamedTuple):
    """A Pod's name; where pages are at hand it leads to the Pod's."""

    name: str
    key: str


class TraceCell(NamedTuple):
    """A trace's id; where pages are at hand it leads to the trace's."""

    trace_id: bytes


class PluginCell(NamedTuple):
    """Words that name a plugin; where pages are at hand they lead to the plugin's."""

    words: str
    plugin: str


class NodeCell(NamedTuple):
    """A node's name; where pages are at hand it leads to the node's."""

    name: str


ReportCell = str | ForeignText | DrawnBar | PodCell | TraceCell | PluginCell | NodeCell


class ReportColumn(NamedTuple):
    """A column of a table."""

    title: ReportCell
    right: bool = False
    """Numbers stand to the right."""


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table with a heading."""

    title: str
    columns: Sequence[ReportColumn]
    rows: Sequence[Sequence[ReportCell]]
    note: ReportCell = ""
    """What is to be said of it: what was left out."""


@dataclass(frozen=True, slots=True)
class ReportLines:
    """Lines as a terminal has them, with a heading."""

    title: str
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """A report."""

    kind: str
    """What it is: `Pod`, `Incident`."""
    title: ReportCell
    lead: str
    """What happened, in a sentence or two; has words from elsewhere in it."""
    facts: Sequence[tuple[str, ReportCell]]
    parts: Sequence[ReportTable | ReportLines]
    page: str = ""
    """Address of the page that tells more; "" where there is none."""
    notes: Sequence[str] = ()
    """What to know about it: what was held, by whose clock."""

    @property
    def page_opens(self) -> str:
        """Where the page's address opens, if that is not everywhere: `localhost` is no help to who gets the ticket."""
        host = urlsplit(self.page).hostname or ""
        return "opens only where podtrail runs" if is_loopback(host) else ""


def table(
    title: str, columns: Sequence[ReportColumn], rows: Sequence[Sequence[ReportCell]], note: ReportCell = ""
) -> list[ReportTable]:
    """Return a table, or nothing where it would have no rows."""
    return [ReportTable(title, columns, rows, note)] if rows else []


def heads(*titles: ReportCell | ReportColumn) -> list[ReportColumn]:
    """Return columns; a title alone is that of one with words."""
    return [one if isinstance(one, ReportColumn) else ReportColumn(one) for one in titles]


def numbers(*titles: ReportCell) -> list[ReportColumn]:
    """Return columns of numbers."""
    return [ReportColumn(title, right=True) for title in titles]


def left_out(shown: int, in_all: int, what: str) -> str:
    """Return what is said of rows that are not shown; "" where all are."""
    return f"{in_all - shown:,} more {what} are left out." if in_all > shown else ""
