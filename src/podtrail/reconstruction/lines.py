"""Pieces of a file to lines, none longer than a limit: what stands behind it in a line is dropped."""

from collections.abc import Iterable, Iterator

LONGEST_LINE = 1 << 20
"""Bytes. kube-scheduler's longest lines, with a Pod written out in JSON, take some ten thousand."""


class LineSplitter:
    """Takes a file piece by piece. A line that is too long comes with as many bytes as allowed and one more."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._rest = b""
        self._skipping = False

    def take(self, piece: bytes) -> list[bytes]:
        """Return the lines that a piece completes, without their ends."""
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
        rest, self._rest, self._skipping = self._rest, b"", False
        return [self._cut(rest)] if rest else []

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
