"""Words cut to the columns of a terminal."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size

_LEAST: Final = 16
"""Columns from which on words are cut at two places."""
_BEFORE: Final = 6


def fit(words: str, width: int) -> str:
    """Return what fits: a terminal gives two columns to some characters, and none to others."""
    return words if cell_len(words) <= width else set_cell_size(words, max(0, width - 1)).rstrip() + "…"


def fit_apart(cells: Sequence[str], width: int) -> list[str]:
    """Return what fits of each; of those that would look the same and are not, where they begin to differ as well."""
    fitted = [fit(cell, width) for cell in cells]
    same: dict[str, set[str]] = {}
    for short, cell in zip(fitted, cells, strict=True):
        same.setdefault(short, set()).add(cell)
    if width < _LEAST or len(same) == len(set(cells)):
        return fitted
    return [
        short if len(same[short]) == 1 else _from_where_they_differ(cell, same[short], width)
        for short, cell in zip(fitted, cells, strict=True)
    ]


def _from_where_they_differ(cell: str, alike: set[str], width: int) -> str:
    room = width - width // 2
    differs = next((at for at, letters in enumerate(zip(*alike, strict=False)) if len(set(letters)) > 1), len(cell))
    start = max(0, min(differs - _BEFORE, len(cell) - room))
    return fit(cell, width // 2) + fit(cell[start:], room)
