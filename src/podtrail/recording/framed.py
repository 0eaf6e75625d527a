"""Requests in protobuf, each behind its length (4 bytes, big-endian).

Nothing marks where a frame begins. Behind damage the next one is looked for: four bytes that are a possible length, in
front of just so many bytes that are a request.
"""

from collections.abc import Iterator

from podtrail.otlp import MalformedRequest
from podtrail.recording.record import LARGEST
from podtrail.recording.splitting import Content, Decode, Found, Lost

_LENGTH = 4
_REQUEST_BEGIN = b"\x0a"
_BEGINS = frozenset(b"\x0a\x28{\xc1")
"""First bytes of a request: protobuf, compressed by itself with zstd, JSON, or with nothing in it but its arrival."""


def may_begin(head: bytes) -> bool:
    """Say whether a frame may begin with these five or more bytes."""
    return len(head) > _LENGTH and 0 < int.from_bytes(head[:_LENGTH], "big") <= LARGEST and head[_LENGTH] in _BEGINS


class FramedSplitter:
    """Parts at the lengths; a frame that is no request costs itself alone."""

    unit = "byte"

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._buffer = bytearray()
        self._offset = 0
        self._astray = False
        """Behind damage, and the next frame is not found yet."""

    def feed(self, data: bytes) -> Iterator[Found | Lost]:
        """Take more bytes; yield the frames that are complete."""
        self._buffer += data
        yield from self._scan(final=False)

    def gap(self, reason: str) -> Iterator[Found | Lost]:
        """Give up the frame that is begun."""
        yield Lost(self._offset, reason)
        self._forget(len(self._buffer))
        self._astray = True

    def finish(self) -> Iterator[Found | Lost]:
        """Yield what is left; a frame that is cut off is lost."""
        yield from self._scan(final=True)
        self._forget(len(self._buffer))

    def _forget(self, size: int) -> None:
        del self._buffer[:size]
        self._offset += size

    def _scan(self, *, final: bool) -> Iterator[Found | Lost]:
        at = 0
        while True:
            if self._astray:
                at = self._next_frame(at, final=final)
                if self._astray:
                    break
            begin = at + _LENGTH
            if begin > len(self._buffer):
                if final and at < len(self._buffer):
                    yield Lost(self._offset + at, "the file ends within a length")
                break
            length = int.from_bytes(self._buffer[at:begin], "big")
            end = begin + length
            possible = 0 < length <= LARGEST
            if possible and end > len(self._buffer) and not final:
                break
            found = self._frame(begin, length)
            number = self._offset + at
            if isinstance(found, Content):
                at = end
                yield Found(number, found)
                continue
            if possible and end <= len(self._buffer) and self._goes_on(end):
                at = end
            else:
                at += 1
                self._astray = True
            yield Lost(number, found)
        self._forget(at)

    def _frame(self, begin: int, length: int) -> Content | str:
        """Return the request in so many bytes, or why there is none."""
        if not 0 < length <= LARGEST:
            return f"{length} is not the length of a request"
        there = len(self._buffer) - begin
        if there < length:
            return f"cut off: {there} of {length} bytes are there"
        try:
            content = self._decode(bytes(self._buffer[begin : begin + length]))
        except MalformedRequest as error:
            return str(error)
        if content.intake.rejected and not self._goes_on(begin + length):
            # A torn frame, filled up with what its writer's successor put behind, may pass for one with bad spans.
            return content.intake.reason
        return content

    def _goes_on(self, at: int) -> bool:
        """Say whether a frame may begin here, as far as can be seen."""
        head = bytes(self._buffer[at : at + _LENGTH + 1])
        return len(head) <= _LENGTH or may_begin(head)

    def _next_frame(self, at: int, *, final: bool) -> int:
        """Return where the next sound frame begins; still astray: where to look on when there are more bytes."""
        buffer = self._buffer
        while (begin := buffer.find(_REQUEST_BEGIN, at + _LENGTH)) >= 0:
            at = begin - _LENGTH
            length = int.from_bytes(buffer[at:begin], "big")
            end = begin + length
            if 0 < length <= LARGEST and self._looks_sound(begin, end):
                if end > len(buffer):
                    if not final:
                        return at
                elif isinstance(self._frame(begin, length), Content):
                    self._astray = False
                    return at
            at += 1
        return len(buffer) if final else max(at, len(buffer) - _LENGTH)

    def _looks_sound(self, begin: int, end: int) -> bool:
        """Say whether the first field of a request ends within it, and what follows is another: cheap to refute."""
        at, length, shift = begin + 1, 0, 0
        while at < min(end, len(self._buffer)):
            byte = self._buffer[at]
            length |= (byte & 127) << shift
            shift += 7
            at += 1
            if byte < 128:
                break
        else:
            return end > len(self._buffer)
        inner_end = at + length
        if inner_end > end:
            return False
        return (
            inner_end in (end, len(self._buffer)) or inner_end > len(self._buffer) or self._buffer[inner_end] in _BEGINS
        )
