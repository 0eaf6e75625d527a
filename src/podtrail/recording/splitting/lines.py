"""Requests as lines of JSON."""

from collections.abc import Iterator

from podtrail.otlp import MalformedRequest
from podtrail.recording.splitting.splitter import LARGEST, Decode, FoundRequest, LostStretch

_BEGINS = (b'{"resourceSpans"', b'{"resource_spans"')


class JsonLineSplitter:
    """Parts at line feeds; a line that is no request costs itself alone."""

    unit = "line"

    def __init__(self, decode: Decode, number: int = 0, offset: int = 0) -> None:
        """`number` lines, `offset` bytes of them, were read before."""
        self._decode = decode
        self._number = number
        self._offset = offset
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[FoundRequest | LostStretch]:
        """Take more bytes; yield the lines that end in them."""
        *ends, begin = data.split(b"\n")
        for end in ends:
            self._append(end)
            self._offset += 1
            yield from self._line()
        self._append(begin)

    def gap(self, reason: str) -> Iterator[FoundRequest | LostStretch]:
        """Give up the line that is begun."""
        self._offset += self._size
        self._begun, self._size = [], 0
        yield LostStretch(self._number + 1, reason)

    def finish(self) -> Iterator[FoundRequest | LostStretch]:
        """Yield the last line, if no line feed ended it."""
        yield from self._line()

    def _append(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= LARGEST:
            self._begun.append(part)
        else:
            self._begun.clear()

    def _line(self) -> Iterator[FoundRequest | LostStretch]:
        line = b"".join(self._begun)
        size = self._size
        self._begun, self._size = [], 0
        self._number += 1
        self._offset += size
        if size > LARGEST:
            yield LostStretch(self._number, f"a line of {size} bytes, more than {LARGEST}", self._offset)
        elif line.strip():
            try:
                yield FoundRequest(self._number, self._decode(line), self._offset)
            except MalformedRequest as error:
                yield LostStretch(self._number, str(error))
                yield from self._behind_a_torn_line(line)

    def _behind_a_torn_line(self, line: bytes) -> Iterator[FoundRequest | LostStretch]:
        """Yield the request that a writer put right behind the half line which its predecessor left."""
        begin = max(line.rfind(begin, 1) for begin in _BEGINS)
        if begin > 0:
            try:
                yield FoundRequest(self._number, self._decode(line[begin:]), self._offset)
            except MalformedRequest:
                return  # the line is reported as lost already
