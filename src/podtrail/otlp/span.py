"""One span, seen whole: for what is looked at one by one (roots, links, pages), not for a decision over many."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from opentelemetry.proto.trace.v1 import trace_pb2

from podtrail.otlp.values import Value, from_key_values

KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")


class Status(NamedTuple):
    """How a span ended."""

    code: int
    """0 unset, 1 ok, 2 error."""
    message: str


class Event(NamedTuple):
    """A moment within a span; `time` in Unix nanoseconds."""

    time: int
    name: str
    attributes: Mapping[str, Value]


class Link(NamedTuple):
    """A reference from a span to another, perhaps in another trace."""

    trace_id: bytes
    span_id: bytes
    attributes: Mapping[str, Value]
    trace_state: str = ""
    flags: int = 0


class SpanView:
    """Typed access to the bytes of one span. Times are Unix nanoseconds, ids bytes, 0 and b"" where absent."""

    def __init__(self, raw: bytes) -> None:
        """View the bytes of a Span message (without frame).

        Raises:
            DecodeError: they are none (protobuf's error).
        """
        self.raw = raw
        self._span = trace_pb2.Span.FromString(raw)

    @property
    def trace_id(self) -> bytes:
        """16 bytes."""
        return self._span.trace_id

    @property
    def span_id(self) -> bytes:
        """8 bytes."""
        return self._span.span_id

    @property
    def parent_span_id(self) -> bytes:
        """8 bytes; b"" for a root (a parent of zeros counts as none)."""
        parent = self._span.parent_span_id
        return b"" if parent == bytes(8) else parent

    @property
    def trace_state(self) -> str:
        """The W3C trace state as sent."""
        return self._span.trace_state

    @property
    def flags(self) -> int:
        """W3C trace flags in bits 0 to 7, bits 8 and 9: is the parent remote; the rest is reserved."""
        return self._span.flags

    @property
    def name(self) -> str:
        """The span's name."""
        return self._span.name

    @property
    def kind(self) -> int:
        """An index into `KINDS` for the known ones."""
        return self._span.kind

    @property
    def start(self) -> int:
        """Start; 0 when not set."""
        return self._span.start_time_unix_nano

    @property
    def end(self) -> int:
        """End; 0 when not set."""
        return self._span.end_time_unix_nano

    @property
    def duration(self) -> int | None:
        """Nanoseconds, None when unknown: a time that is not set, or an end before the start."""
        if not self.start or not self.end or self.end < self.start:
            return None
        return self.end - self.start

    @property
    def status(self) -> Status:
        """Code and message."""
        return Status(self._span.status.code, self._span.status.message)

    @cached_property
    def attributes(self) -> Mapping[str, Value]:
        """Attributes by key."""
        return from_key_values(self._span.attributes)

    @cached_property
    def events(self) -> Sequence[Event]:
        """Events in the order sent."""
        return [Event(e.time_unix_nano, e.name, from_key_values(e.attributes)) for e in self._span.events]

    @cached_property
    def links(self) -> Sequence[Link]:
        """Links in the order sent."""
        return [
            Link(link.trace_id, link.span_id, from_key_values(link.attributes), link.trace_state, link.flags)
            for link in self._span.links
        ]
