"""The trace that is being decided on, decoded no further than its policies ask."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from podtrail.otlp import SpanFields, span_reader

Read = Callable[[bytes], Sequence[SpanFields]]


class Header(NamedTuple):
    """What stands above spans: the `resource` and `scope` of their group."""

    resource: bytes
    scope: bytes


class Reads(NamedTuple):
    """The fields of spans that a policy reads, under OTLP's names."""

    plain: frozenset[str] = frozenset()
    """Of every trace, from `Evidence.spans`."""
    detailed: frozenset[str] = frozenset()
    """Of few traces, from `Evidence.detailed`: attributes and what goes with them."""

    @staticmethod
    def union(of: Iterable["Reads"]) -> "Reads":
        """Return all that these read."""
        reads = list(of)
        return Reads(
            frozenset().union(*(read.plain for read in reads)), frozenset().union(*(read.detailed for read in reads))
        )


class Readers:
    """How to read spans for a set of policies: their plain fields in one go, attributes only when it comes to them."""

    def __init__(self, reads: Reads) -> None:
        self.plain: Read = span_reader(reads.plain)
        self.detailed: Read = span_reader(reads.detailed)


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
        """The spans in order of arrival, with the plain fields that its policies read."""
        if self._plain is None:
            self._plain = self._readers.plain(self.raw)
        return self._plain

    @property
    def detailed(self) -> Sequence[SpanFields]:
        """The spans in order of arrival, with the detailed fields that its policies read."""
        if self._detailed is None:
            self._detailed = self._readers.detailed(self.raw)
        return self._detailed
