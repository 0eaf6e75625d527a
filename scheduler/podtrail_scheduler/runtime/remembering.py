"""Answers about nodes that are remembered until the node changes.

Most Pods come in groups of equals, and between two attempts few nodes change. So the answers of plugins that look at
the Pod and at one node only are kept, a column for each kind of Pod with a place for each node, and asked for again
only where the node's index stands in the table's log of changes.
"""

from collections.abc import Hashable
from typing import Final

from .node_table import NodeTable


class Unknown:
    """The type of `UNKNOWN`."""


UNKNOWN: Final = Unknown()
"""Stands where no answer is remembered."""

KINDS_KEPT = 256
"""For how many kinds of Pods answers are kept; those that were not asked for longest go first."""


class _Column:
    __slots__ = ("answers", "layout", "seen")

    def __init__(self, size: int, layout: int, seen: int) -> None:
        self.answers: list[object] = [UNKNOWN] * size
        self.layout = layout
        self.seen = seen


class AnswerMemory:
    """Remembered answers, a column of the node table for each plugin and kind of Pod."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._columns: dict[Hashable, _Column] = {}

    def column(self, key: Hashable) -> list[object]:
        """An answer for each node by index, `UNKNOWN` where it must be asked for and put in."""
        table = self._table
        size, end = len(table.infos), table.position
        column = self._columns.pop(key, None)
        if column is None or column.layout != table.layout or column.seen < table.base:
            column = _Column(size, table.layout, end)
            if len(self._columns) >= KINDS_KEPT:
                del self._columns[next(iter(self._columns))]
        elif column.seen != end:
            answers = column.answers
            for index in table.log[column.seen - table.base :]:
                answers[index] = UNKNOWN
            column.seen = end
        self._columns[key] = column
        return column.answers
