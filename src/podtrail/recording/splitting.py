"""What a splitter finds in a stream, and how a request is decoded there."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from podtrail.otlp import Intake


class Content(NamedTuple):
    """A decoded request."""

    arrival: int | None
    """As it stands in the request; None when it does not."""
    intake: Intake


class Found(NamedTuple):
    """A request, and the number of its line or first byte."""

    number: int
    content: Content


class Lost(NamedTuple):
    """A stretch that is no request."""

    number: int
    reason: str


Decode = Callable[[bytes], Content]
"""Raises `MalformedRequest`."""


class Splitter(Protocol):
    """Parts a stream into requests."""

    unit: str
    """What it counts: `line` or `byte`."""

    def feed(self, data: bytes) -> Iterator[Found | Lost]:
        """Take more bytes; yield what is complete."""

    def gap(self, reason: str) -> Iterator[Found | Lost]:
        """Bytes are missing here: give up what is begun."""

    def finish(self) -> Iterator[Found | Lost]:
        """No more bytes will come: yield what is left."""
