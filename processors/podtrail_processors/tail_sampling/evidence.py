"""The trace that is being decided on, decoded no further than its policies ask."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from podtrail.otlp import SpanFields, span_reader

Read = Callable[[bytes], Sequence[SpanFields]]


class Header(NamedTuple):
    """What stands above spans: the `resource` and `scope` of their group."""

    resource: bytes
    scope: bytes


class Readers(NamedTuple):
    """How to read spans for a set of policies: their plain fields in one go, attributes only when it comes to them."""

    plain: Read
    detailed: Read


def readers_for(fields: Iterable[Collection[str]]) -> Readers:
    """Return the readers for policies that read these fields; one that reads `attributes` gets all its fields there."""
    plain: set[str] = set()
    detailed: set[str] = set()
    for wanted in fields:
        (detailed if "attributes" in wanted else plain).update(wanted)
    return Readers(span_reader(plain), span_reader(detailed))


class Evidence:
    """One trace at the moment of its decision."""

    __slots__ = ("_detailed", "_plain", "_readers", "headers", "raw", "span_count", "trace_id")

    def __init__(
        self, trace_id: bytes, raw: bytes, span_count: int, headers: Sequence[Header], readers: Readers
    ) -> None:
        self.trace_id = trace_id
        self.raw = raw
        """The spans in order of arrival, framed: search it before decoding anything."""
        self.span_count = span_count
        self.headers = headers
        """The headers that its spans came under, without neighbours that are equal."""
        self._readers = readers
        self._plain: Sequence[SpanFields] | None = None
        self._detailed: Sequence[SpanFields] | None = None

    @property
    def spans(self) -> Sequence[SpanFields]:
        """The spans in order of arrival, with the fields of the policies that read no attributes."""
        if self._plain is None:
            self._plain = self._readers.plain(self.raw)
        return self._plain

    @property
    def detailed(self) -> Sequence[SpanFields]:
        """The spans in order of arrival, with the fields of the policies that read attributes."""
        if self._detailed is None:
            self._detailed = self._readers.detailed(self.raw)
        return self._detailed
