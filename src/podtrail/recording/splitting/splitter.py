"""What a splitter finds in a stream, and how a request is decoded there."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from podtrail.otlp import Intake

LARGEST = 64 << 20
"""Bytes of a request. A longer line or frame is damage: no server would have taken it."""


class DecodedRequest(NamedTuple):
    """A decoded request."""

    arrival: int | None
    """Unix nanoseconds, as the request says it; None when it does not."""
    intake: Intake
    beside: bool = False
    """Whether it is no request, but what a store keeps beside them, or one of another signal."""
    signal: str = ""
    """`logs`, `metrics` or `profiles` where it is one of these."""


class FoundRequest(NamedTuple):
    """A request, and the number of its line or first byte."""

    number: int
    content: DecodedRequest
    end: int | None = None
    """Byte behind it, from where another splitter would find what follows; None where it would not."""


class LostStretch(NamedTuple):
    """A stretch that is no request."""

    number: int
    reason: str
    end: int | None = None
    """As of a request."""
    signal: str = ""
    """As of a decoded request: nothing is damaged then."""


Decode = Callable[[bytes], DecodedRequest]
"""Raises `MalformedRequest`."""


class Splitter(Protocol):
    """Cuts a stream of bytes into requests."""

    unit: str
    """What it counts: `line` or `byte`."""

    def feed(self, data: bytes) -> Iterator[FoundRequest | LostStretch]:
        """Take more bytes; yield what is complete."""

    def gap(self, reason: str) -> Iterator[FoundRequest | LostStretch]:
        """Bytes are missing here: give up what is begun."""

    def finish(self) -> Iterator[FoundRequest | LostStretch]:
        """No more bytes will come: yield what is left."""
