"""Splits pieces of a file into lines, decodes UTF-16, and cuts lines to a limit."""

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Final

LONGEST_LINE = 1 << 20
"""Bytes. kube-scheduler's longest lines, with a Pod written out in JSON, take some ten thousand."""


_MARKS: Final = (
    (codecs.BOM_UTF8, ""),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNMARKED: Final = (
    (re.compile(rb"(?:[\t\n\r -~]\0){4}"), "utf-16-le"),
    (re.compile(rb"(?:\0[\t\n\r -~]){4}"), "utf-16-be"),
)
_DETECT: Final = 8
"""Bytes of a file that show its encoding."""


class LineSplitter:
    """Takes a file piece by piece. A line that is too long comes with as many bytes as allowed and one more.

    Files in UTF-16 and UTF-32, as PowerShell writes them, become UTF-8. NUL bytes are left out: a file that was emptied
    while it was open, or that a power loss cut, begins or ends with any number of them.
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._rest = b""
        self._skipping = False
        self._head: bytes | None = b""
        """The first bytes of the file, until they show its encoding."""
        self._decoder: codecs.IncrementalDecoder | None = None

    def take(self, piece: bytes) -> list[bytes]:
        """Return the lines that a piece completes, without their ends."""
        if self._head is not None:
            self._head += piece
            if len(self._head) < _DETECT and b"\n" not in self._head:
                return []
            piece = self._detect()
        return self._split(self._decoded(piece))

    def _detect(self) -> bytes:
        """Choose the decoder by the first bytes; return them without their mark."""
        head, self._head = self._head or b"", None
        mark, encoding = next((known for known in _MARKS if head.startswith(known[0])), (b"", ""))
        if not mark:
            encoding = next((name for pattern, name in _UNMARKED if pattern.match(head)), "")
        if encoding:
            self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        return head[len(mark) :]

    def _decoded(self, piece: bytes) -> bytes:
        if self._decoder is None:
            return piece.replace(b"\0", b"") if b"\0" in piece else piece
        return self._decoder.decode(piece).encode("utf-8", "replace")

    def _split(self, piece: bytes) -> list[bytes]:
        head, *more = piece.split(b"\n")
        lines = []
        if not self._skipping:
            self._rest += head
        if more:
            if not self._skipping:
                lines.append(self._cut(self._rest))
            self._skipping = False
            lines += map(self._cut, more[:-1])
            self._rest = more[-1]
        if len(self._rest) > self._longest:
            lines.append(self._cut(self._rest))
            self._rest, self._skipping = b"", True
        return lines

    def end(self) -> list[bytes]:
        """Return the line that has no end, if there is one: what comes next begins another."""
        lines = self._split(self._decoded(self._detect())) if self._head else []
        rest, self._rest, self._skipping = self._rest, b"", False
        self._head, self._decoder = b"", None
        return [*lines, self._cut(rest)] if rest else lines

    def _cut(self, line: bytes) -> bytes:
        if len(line) > self._longest:
            return line[: self._longest + 1]
        return line[:-1] if line.endswith(b"\r") else line


def split_lines(pieces: Iterable[bytes], longest: int = LONGEST_LINE) -> Iterator[bytes]:
    """Yield the lines of a whole file."""
    splitter = LineSplitter(longest)
    for piece in pieces:
        yield from splitter.take(piece)
    yield from splitter.end()
