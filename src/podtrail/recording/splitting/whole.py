"""A stream that is one request as a whole."""

from collections.abc import Iterator

from podtrail.otlp import MalformedRequest
from podtrail.recording.splitting.splitter import LARGEST, Decode, FoundRequest, LostStretch


class WholeSplitter:
    """Gathers the bytes, and decodes them at the end."""

    unit = "byte"

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._parts: list[bytes] = []
        self._size = 0
        self._given_up = False

    def feed(self, data: bytes) -> Iterator[FoundRequest | LostStretch]:
        """Take more bytes."""
        self._size += len(data)
        if self._size <= LARGEST and not self._given_up:
            self._parts.append(data)
        else:
            self._parts.clear()
        yield from ()

    def gap(self, reason: str) -> Iterator[FoundRequest | LostStretch]:
        """Give up: there is nothing but this request."""
        self._given_up = True
        self._parts.clear()
        yield LostStretch(0, reason)

    def finish(self) -> Iterator[FoundRequest | LostStretch]:
        """Yield the request."""
        if self._given_up:
            return
        if self._size > LARGEST:
            yield LostStretch(0, f"a request of {self._size} bytes, more than {LARGEST}")
            return
        try:
            yield FoundRequest(0, self._decode(b"".join(self._parts)))
        except MalformedRequest as error:
            yield LostStretch(0, str(error))
