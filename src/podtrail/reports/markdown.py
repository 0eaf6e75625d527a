"""A report as Markdown for a ticket: tables as GitHub and GitLab have them.

What comes from elsewhere stands in code spans and fenced blocks, in which nothing is markup: no HTML, no link, no
`@mention`, no `#1`. A span's fence is longer than any in the text, and a table's bars are escaped.
"""

import re
from collections.abc import Iterator, Sequence

from podtrail.reports.document import (
    DrawnBar,
    ForeignText,
    NodeCell,
    PluginCell,
    PodCell,
    ReportCell,
    ReportDocument,
    ReportLines,
    ReportTable,
    TraceCell,
)
from podtrail.story import clip, plain, visible

_LONGEST = 300
_POWERFUL = re.compile(r"([\\`*_\[\]<>|~&@])")
_FENCES = re.compile(r"`+")
_BAR = re.compile(r"(\\*)\|")


def to_markdown(document: ReportDocument) -> str:
    """Return the report; it ends with a line feed."""
    return "\n".join(_document(document)) + "\n"


def escaped(text: str) -> str:
    """Return a report's own words so that they read as they are."""
    return _POWERFUL.sub(r"\\\1", visible(text))


def code(text: str, *, in_table: bool = False) -> str:
    """Return text from elsewhere as a code span; `-` for nothing."""
    shown = visible(clip(text, _LONGEST))
    if not shown.strip():
        return "-"
    longest = max(map(len, _FENCES.findall(shown)), default=0)
    fence = "`" * (longest + 1)
    space = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return fence + space + (_BAR.sub(_barred, shown) if in_table else shown) + space + fence


def _barred(found: re.Match[str]) -> str:
    """Return a bar that parts no cells; behind a backslash, which would undo the escape, as its code."""
    return f"{found[1]}\\x7c" if found[1] else "\\|"


def fenced(lines: Sequence[str]) -> list[str]:
    """Return lines as a block in which nothing is markup."""
    shown = [visible(line) for line in lines]
    longest = max((len(found) for line in shown for found in _FENCES.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *shown, fence]


def _document(document: ReportDocument) -> Iterator[str]:
    yield f"# {escaped(document.kind)} {_cell(document.title)}"
    yield ""
    if document.lead:
        yield from fenced([document.lead])
        yield ""
    for what, value in document.facts:
        yield f"- {escaped(what)}: {_cell(value)}"
    if document.page:
        yield f"- page: {code(document.page)}" + (f", {document.page_opens}" if document.page_opens else "")
    for part in document.parts:
        yield ""
        yield f"## {escaped(part.title)}"
        yield ""
        yield from fenced([plain(line) for line in part.lines]) if isinstance(part, ReportLines) else _table(part)
    if document.notes:
        yield ""
        for note in document.notes:
            yield f"- {escaped(note)}"


def _table(table: ReportTable) -> Iterator[str]:
    drawn = {at for row in table.rows for at, cell in enumerate(row) if isinstance(cell, DrawnBar)}
    columns = [column for at, column in enumerate(table.columns) if at not in drawn]
    yield f"| {' | '.join(_cell(column.title, in_table=True) for column in columns)} |"
    yield f"|{'|'.join('---:' if column.right else '---' for column in columns)}|"
    for row in table.rows:
        yield f"| {' | '.join(_cell(cell, in_table=True) for at, cell in enumerate(row) if at not in drawn)} |"
    if table.note:
        yield ""
        yield _cell(table.note)


def _cell(cell: ReportCell, *, in_table: bool = False) -> str:
    match cell:
        case ForeignText():
            return code(cell, in_table=in_table)
        case PodCell(name) | PluginCell(name) | NodeCell(name):
            return code(name, in_table=in_table)
        case TraceCell(trace_id):
            return code(trace_id.hex(), in_table=in_table)
        case DrawnBar():
            return ""
        case words:
            return escaped(words)
