"""Pieces of a file to lines, none longer than a limit: what stands behind it in a line is dropped."""

from collections.abc import Iterable, Iterator

LONGEST_LINE = 1 << 20
"""Bytes. kube-scheduler's longest lines, with a Pod written out in JSON, take some ten thousand."""


def split_lines(pieces: Iterable[bytes], longest: int = LONGEST_LINE) -> Iterator[bytes]:
    """Yield lines without their ends. One longer than `longest` comes with that many bytes and one more."""
    rest = b""
    skipping = False
    for piece in pieces:
        head, *more = piece.split(b"\n")
        if not skipping:
            rest += head
        if more:
            if not skipping:
                yield _cut(rest, longest)
            skipping = False
            for line in more[:-1]:
                yield _cut(line, longest)
            rest = more[-1]
        if len(rest) > longest:
            yield _cut(rest, longest)
            rest, skipping = b"", True
    if rest:
        yield _cut(rest, longest)


def _cut(line: bytes, longest: int) -> bytes:
    if len(line) > longest:
        return line[: longest + 1]
    return line[:-1] if line.endswith(b"\r") else line
