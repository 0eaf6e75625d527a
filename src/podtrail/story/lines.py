"""Lines of an answer: pieces of text, each with what it is, so that page and terminal mark them alike.

What comes from elsewhere goes through `safe` first: columns line up only if it is done before they are measured.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from podtrail.story.words import clip, visible

Style = Literal["", "strong", "bad", "held", "good", "dim", "command"]
"""How a piece stands out: `bad`, `held` and `good` are what red, yellow and green say; a word says it as well."""
MOST_LINES = 12
_WIDTH = 200


class TextPiece(NamedTuple):
    """Text in one style."""

    text: str
    style: Style = ""


Line = tuple[TextPiece, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer in plain words."""

    lines: tuple[Line, ...]
    """At most twelve."""
    details: tuple[Line, ...] = ()
    """More, for who asks for it."""


def line(*pieces: str | TextPiece) -> Line:
    """Return a line of pieces; plain text has no style."""
    return tuple(piece if isinstance(piece, TextPiece) else TextPiece(piece) for piece in pieces if piece)


def plain(line: Line) -> str:
    """Return a line's text."""
    return "".join(piece.text for piece in line)


def safe(text: str, width: int = _WIDTH) -> str:
    """Return text from elsewhere as it may be shown: in one line, harmless, cut in the middle."""
    return visible(clip(text, width))


def strong(text: str) -> TextPiece:
    """Return names and numbers that matter."""
    return TextPiece(text, "strong")


def dim(text: str) -> TextPiece:
    """Return what matters less."""
    return TextPiece(text, "dim")


def columns(rows: Iterable[Sequence[str | TextPiece]], *, right: int = 0, indent: int = 2, gap: int = 2) -> list[Line]:
    """Return rows as lines with aligned columns, the first `right` of them to the right; nothing trails."""
    cells = [[cell if isinstance(cell, TextPiece) else TextPiece(cell) for cell in row] for row in rows]
    widths = [max(len(row[at].text) for row in cells if at < len(row)) for at in range(max(map(len, cells), default=0))]
    lines = []
    for row in cells:
        while row and not row[-1].text:
            row.pop()
        pieces: list[TextPiece] = [TextPiece(" " * indent)]
        for at, cell in enumerate(row):
            space = " " * (widths[at] - len(cell.text))
            last = at == len(row) - 1
            pieces += [TextPiece(space), cell] if at < right else [cell, TextPiece("" if last else space)]
            pieces.append(TextPiece("" if last else " " * gap))
        lines.append(tuple(piece for piece in pieces if piece.text))
    return lines
