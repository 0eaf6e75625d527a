"""Requests in protobuf, each behind its length (4 bytes, big-endian).

Nothing marks where a frame begins. Behind damage the next one is looked for: four bytes that are a possible length, in
front of just so many bytes that are a request.
"""

from collections.abc import Iterator

from podtrail.otlp import MalformedRequest
from podtrail.recording.splitting.splitter import LARGEST, Decode, DecodedRequest, FoundRequest, LostStretch

_LENGTH = 4
_REQUEST_BEGIN = b"\x0a"
_KEPT = 12
"""Bytes in front of damage in which the next frame may begin: as many as a torn frame that ends in an arrival can
swallow of its successor and still be read."""
_BEGINS = frozenset(b"\x0a\x28{\xc1")
"""First bytes of a request: protobuf, compressed by itself with zstd, JSON, or with nothing in it but its arrival."""
_FIELDS = _BEGINS | {0xD2}
"""First bytes of a field of a request, what a store has written behind it (`podtrail.otlp.stored`) included."""


def may_begin(head: bytes) -> bool:
    """Say whether a frame may begin with these five or more bytes."""
    return len(head) > _LENGTH and 0 < int.from_bytes(head[:_LENGTH], "big") <= LARGEST and head[_LENGTH] in _BEGINS


class FramedSplitter:
    """Parts at the lengths; a frame that is no request costs itself alone."""

    unit = "byte"

    def __init__(self, decode: Decode, offset: int = 0) -> None:
        """`offset` bytes, whole frames, were read before."""
        self._decode = decode
        self._buffer = bytearray()
        self._offset = offset
        """Of the buffer's first byte."""
        self._at = 0
        self._astray = False
        """Behind damage, and the next frame is not found yet."""
        self._damage = 0
        """Where that begins: what ends in front of it has been read."""

    def feed(self, data: bytes) -> Iterator[FoundRequest | LostStretch]:
        """Take more bytes; yield the frames that are complete."""
        self._buffer += data
        yield from self._scan(final=False)

    def gap(self, reason: str) -> Iterator[FoundRequest | LostStretch]:
        """Give up the frame that is begun."""
        yield LostStretch(self._offset + self._at, reason)
        self._offset += len(self._buffer)
        self._buffer.clear()
        self._at = 0
        self._astray = True

    def finish(self) -> Iterator[FoundRequest | LostStretch]:
        """Yield what is left; a frame that is cut off is lost."""
        yield from self._scan(final=True)
        self._forget(len(self._buffer))

    def _forget(self, at: int) -> None:
        """Go on at `at`; what is behind it is done."""
        size = max(0, at - _KEPT)
        del self._buffer[:size]
        self._offset += size
        self._at = at - size

    def _scan(self, *, final: bool) -> Iterator[FoundRequest | LostStretch]:
        at = self._at
        while at < len(self._buffer):
            if self._astray:
                at = self._next_frame(at, final=final)
                if self._astray:
                    break
            found = self._frame(at, final=final)
            if found is None:
                break
            number, end = self._offset + at, self._end(at)
            if isinstance(found, DecodedRequest):
                at = end
                yield FoundRequest(number, found, self._offset + end)
                continue
            if self._goes_on(end):
                at = end
                yield LostStretch(number, found, self._offset + end)
            else:
                at = max(0, at + 1 - _KEPT)
                self._astray, self._damage = True, number
                yield LostStretch(number, found)
        self._forget(at)

    def _end(self, at: int) -> int:
        """Return where the frame at `at` ends, -1 when its length is none or not there."""
        head = self._buffer[at : at + _LENGTH]
        length = int.from_bytes(head, "big")
        return at + _LENGTH + length if len(head) == _LENGTH and 0 < length <= LARGEST else -1

    def _frame(self, at: int, *, final: bool) -> DecodedRequest | str | None:
        """Return the request in the frame at `at`, why there is none, or None when that takes more bytes to say."""
        there, end = len(self._buffer), self._end(at)
        if there < at + _LENGTH:
            return "cut off within a length" if final else None
        if end < 0:
            return f"{int.from_bytes(self._buffer[at : at + _LENGTH], 'big')} is not the length of a request"
        if there < end:
            return f"cut off: {there - at - _LENGTH} of {end - at - _LENGTH} bytes are there" if final else None
        try:
            content = self._decode(bytes(self._buffer[at + _LENGTH : end]))
        except MalformedRequest as error:
            found, reason = None, str(error)
        else:
            found, reason = content, content.intake.reason
        if found is not None and not reason:
            return found
        if not final and there <= end + _LENGTH:
            return None
        # A torn frame, filled up with what its writer's successor put behind, may pass for one with bad spans.
        return found if found is not None and self._goes_on(end) else reason

    def _goes_on(self, at: int) -> bool:
        """Say whether the bytes end here or a frame may begin; at least five are here, or no more will come."""
        return at == len(self._buffer) or (at > 0 and may_begin(bytes(self._buffer[at : at + _LENGTH + 1])))

    def _next_frame(self, at: int, *, final: bool) -> int:
        """Return where the next sound frame begins; still astray: where to look on when there are more bytes."""
        while (begin := self._buffer.find(_REQUEST_BEGIN, at + _LENGTH)) >= 0:
            at = begin - _LENGTH
            end = self._end(at)
            if end > 0 and self._offset + end > self._damage and self._looks_sound(begin, end):
                found = self._frame(at, final=final)
                if found is None:
                    return at
                if isinstance(found, DecodedRequest):
                    self._astray = False
                    return at
            at += 1
        return len(self._buffer) if final else max(at, len(self._buffer) - _LENGTH)

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
            inner_end in (end, len(self._buffer)) or inner_end > len(self._buffer) or self._buffer[inner_end] in _FIELDS
        )
