"""The trace that is being decided on, decoded no further than its policies ask."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from podtrail.otlp import SpanFields, span_reader
from podtrail.otlp.columns import SpanColumns, column_reader
from podtrail_processors.tail_sampling.measure import Size


class Header(NamedTuple):
    """What stands above spans: the `resource` and `scope` of their group."""

    resource: bytes
    scope: bytes


class Reads(NamedTuple):
    """What a policy reads: fields of spans under OTLP's names, and the size of traces."""

    columns: frozenset[str] = frozenset()
    """Of every trace, from `Evidence.columns`."""
    detailed: frozenset[str] = frozenset()
    """Of few traces, from `Evidence.detailed`: attributes and what goes with them."""
    size: bool = False
    """Whether traces have to be measured, for `Evidence.size`."""

    @staticmethod
    def union(of: Iterable["Reads"]) -> "Reads":
        """Return all that these read."""
        reads = list(of)
        return Reads(
            frozenset().union(*(read.columns for read in reads)),
            frozenset().union(*(read.detailed for read in reads)),
            any(read.size for read in reads),
        )


class Readers:
    """How to read spans for a set of policies: columns in one go, span by span only when it comes to attributes."""

    def __init__(self, reads: Reads) -> None:
        self.columns: Callable[[bytes], SpanColumns] = column_reader(reads.columns)
        self.detailed: Callable[[bytes], Sequence[SpanFields]] = span_reader(reads.detailed)


class Evidence:
    """One trace at the moment of its decision."""

    __slots__ = (
        "_columns",
        "_detailed",
        "_readers",
        "composite_policy",
        "headers",
        "now",
        "raw",
        "size",
        "span_count",
        "trace_id",
    )

    def __init__(
        self,
        trace_id: bytes,
        raw: bytes,
        span_count: int,
        headers: Sequence[Header],
        readers: Readers,
        now: int,
        size: Size,
    ) -> None:
        self.trace_id = trace_id
        self.raw = raw
        """The spans in order of arrival, framed: search it before decoding anything."""
        self.span_count = span_count
        self.headers = headers
        """The headers that its spans came under, without neighbours that are equal."""
        self.now = now
        """When it is decided, in pipeline time: Unix nanoseconds."""
        self.size = size
        """How large it is; 0 unless a policy reads it."""
        self.composite_policy: str | None = None
        """The part by which a composite said yes, the last one if several did; None when none has."""
        self._readers = readers
        self._columns: SpanColumns | None = None
        self._detailed: Sequence[SpanFields] | None = None

    @property
    def columns(self) -> SpanColumns:
        """The fields of all spans, in order of arrival."""
        if self._columns is None:
            self._columns = self._readers.columns(self.raw)
        return self._columns

    @property
    def detailed(self) -> Sequence[SpanFields]:
        """The spans one by one, in order of arrival, with the detailed fields that its policies read."""
        if self._detailed is None:
            self._detailed = self._readers.detailed(self.raw)
        return self._detailed
