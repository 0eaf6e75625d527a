"""The trace that is being decided on, decoded no further than its policies ask."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import islice
from typing import Any, NamedTuple

from podtrail.otlp import REFUSAL, Attempt, Group, SpanFields, attempts_in, cluster_name, raw_span_reader, split
from podtrail.otlp.byte_search import spans_with
from podtrail.otlp.columns import SpanColumns, column_reader
from podtrail.otlp.native import Facts, trace_facts
from podtrail_processors.evidence.sizes import Size
from podtrail_processors.evidence.sought import Seeker, Sought
from podtrail_processors.thresholds import MARK, randomness_in

_SIGNED = 2**63
_MOST_ATTEMPTS = 16
_MOST_REFUSING = 64
_NUMBERS = frozenset({"flags", "kind"})
"""Columns from which a 0 is left out; from others an empty text is."""
_UNIQUE = frozenset({"events"})
"""Columns whose values hardly ever repeat."""
_LISTS = frozenset({"attributes", "events"})
"""Columns that have any number of values a span."""
_TELLING = frozenset({"name", "start_time_unix_nano", "end_time_unix_nano", "status", "attributes"})
"""What is read of spans besides when a vote is explained."""


class Header(NamedTuple):
    """What stands above spans: the `resource` and `scope` of their group."""

    resource: bytes
    scope: bytes


def headers_of(groups: Iterable[Group]) -> list[Header]:
    """Return the header of each group."""
    return [Header(group.resource, group.scope) for group in groups]


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


class Extent(NamedTuple):
    """The time that spans take together, Unix nanoseconds; 0 where no span says it."""

    first: int
    """The earliest start."""
    last: int
    """The latest end."""
    is_sure: bool
    """Whether all spans have both times, and starts that are not 0."""


class Readers:
    """How to read spans for a set of policies: columns in one go, span by span only when a policy needs just that."""

    def __init__(self, reads: Reads, *, weighs: bool = False, tells: bool = False) -> None:
        self.weighs = weighs
        """Whether what trace states say of randomness counts."""
        self.tells = tells
        """Whether enough is read to tell which span decided."""
        detailed = reads.detailed | _TELLING if tells else reads.detailed
        columns = reads.columns | {"trace_state"} if weighs else reads.columns
        self.columns: Callable[[bytes], SpanColumns] = column_reader(columns)
        self.detailed: Callable[[bytes], Sequence[SpanFields]] = raw_span_reader(detailed)
        self.seekers: dict[str, Seeker] = {}
        """What policies seek, by column."""
        self.keys: Sequence[bytes] = ()
        """Of attributes that they seek, where they seek them by their keys alone."""

    def seek(self, sought: Sought) -> None:
        """Have `Evidence.met_anywhere` look for this, too."""
        column = sought.column
        seeker = self.seekers.get(column)
        if seeker is None:
            seeker = self.seekers[column] = Seeker(repeats=column not in _UNIQUE)
        if sought not in seeker.asked:
            seeker.seek(sought)
            if column == "attributes":
                self.keys = seeker.keys or ()


class Evidence:
    """One trace at the moment of its decision."""

    __slots__ = (
        "_attempts",
        "_columns",
        "_counts",
        "_detailed",
        "_extent",
        "_facts",
        "_is_scanned",
        "_longest",
        "_met",
        "_readers",
        "_refusing",
        "composite_policy",
        "headers",
        "now",
        "raw",
        "size",
        "span_count",
        "total_spans",
        "trace_id",
    )

    def __init__(
        self,
        trace_id: bytes,
        raw: bytes,
        span_count: int,
        headers: Sequence[Header],
        counts: Sequence[int],
        readers: Readers,
        now: int,
        size: Size,
        earlier: int = 0,
    ) -> None:
        self.trace_id = trace_id
        self.raw = raw
        """The spans in order of arrival, framed: search it before decoding anything."""
        self.span_count = span_count
        """How many spans these are."""
        self.total_spans = span_count + earlier
        """How many the trace has, with those that came earlier and were not matched then (`span-ingest`)."""
        self.headers = headers
        """The headers that its spans came under, without neighbours that are equal."""
        self._counts = counts
        self.now = now
        """When it is decided, in pipeline time: Unix nanoseconds."""
        self.size = size
        """How large it is; 0 unless a policy reads it."""
        self.composite_policy: str | None = None
        """The part by which a composite said yes, the last one if several did; None when none has."""
        self._readers = readers
        self._attempts: Sequence[Attempt] | None = None
        self._refusing: Sequence[bytes] | None = None
        self._columns: SpanColumns | None = None
        self._detailed: Sequence[SpanFields] | None = None
        self._extent: Extent | None = None
        self._facts: Facts | None = None
        self._is_scanned = False
        self._longest: int | None = None
        self._met: dict[str, Set[Sought]] = {}

    @property
    def cluster(self) -> str:
        """The cluster that its spans' resources say they are of; "" where none does."""
        return next((name for header in self.headers if (name := cluster_name(header.resource))), "")

    @staticmethod
    def of(groups: Sequence[Group], readers: Readers, now: int, size: Size, earlier: int = 0) -> "Evidence":
        """Return what groups of one trace say, at least one."""
        raw = b"".join([group.spans for group in groups])
        counts = [group.span_count for group in groups]
        return Evidence(
            groups[0].trace_id, raw, sum(counts), headers_of(groups), counts, readers, now, size, earlier=earlier
        )

    @property
    def randomness(self) -> int | None:
        """The randomness that its spans tell of, 56 bits; None when they do not, or when that does not count."""
        if not self._readers.weighs or MARK not in self.raw:
            return None
        return randomness_in(self.columns.trace_state, self.trace_id)

    @property
    def tells(self) -> bool:
        """Whether names, times, status and attributes may be read from `detailed`, whatever its policies read."""
        return self._readers.tells

    @property
    def attempts(self) -> Sequence[Attempt]:
        """The scheduling attempts that it records: mostly one or none, the first few of more."""
        if self._attempts is None:
            self._attempts = tuple(islice(attempts_in(self.raw), _MOST_ATTEMPTS))
        return self._attempts

    @property
    def refusing(self) -> Sequence[bytes]:
        """The spans in which plugins say no, for `read_rejections`; the first of many."""
        if self._refusing is None:
            framed = spans_with(REFUSAL, self.raw, self.trace_id, _MOST_REFUSING)
            self._refusing = split(b"".join(framed)) if framed else ()
        return self._refusing

    @property
    def columns(self) -> SpanColumns:
        """The fields of all spans, in order of arrival."""
        if self._columns is None:
            self._columns = self._readers.columns(self.raw)
        return self._columns

    @property
    def links(self) -> Sequence[bytes] | None:
        """The Link messages of all spans, if its columns were read for a policy; `linked_traces` has them read, too."""
        return None if self._columns is None else self._columns.links

    @property
    def detailed(self) -> Sequence[SpanFields]:
        """The spans one by one, in order of arrival, with the detailed fields that its policies read."""
        if self._detailed is None:
            self._detailed = self._readers.detailed(self.raw)
        return self._detailed

    def under_headers(self) -> Iterator[tuple[Header, Sequence[SpanFields]]]:
        """Yield each header with the spans that came under it, as in `detailed`."""
        start = 0
        for header, count in zip(self.headers, self._counts, strict=True):
            yield header, self.detailed[start : start + count]
            start += count

    def met(self, sought: Sought) -> bool:
        """Say whether a value of its column is what is sought.

        The values are those of the spans: of `status` the codes, of `attributes` the KeyValue messages (of a key that a
        span has twice only the first counts, which can't be told here). Those of `resource` and `scope` stand in the
        headers. The column must be one that a policy reads.
        """
        met = self._met.get(sought.column)
        if met is None or sought not in self._readers.seekers[sought.column].asked:
            self._readers.seek(sought)
            self._is_scanned = False  # for keys that were not sought before
            met = self._look_at(sought.column)
        return sought in met

    def met_anywhere(self) -> Set[Sought]:
        """Return all of what is sought in its spans and headers that is met there."""
        found: Set[Sought] = frozenset()
        for column in self._readers.seekers:
            met = self._met.get(column)
            if met is None:
                met = self._look_at(column)
            if met:
                found = met | found
        return found

    def _look_at(self, column: str) -> Set[Sought]:
        met = self._met[column] = self._readers.seekers[column].met(self._values(column))
        return met

    def _values(self, column: str) -> Sequence[Any]:
        if column in ("resource", "scope"):
            return [getattr(header, column) for header in self.headers]
        if column == "status":
            return self.statuses
        if column == "attributes" and self._readers.keys and self.facts is not None:
            return self.facts.attributes
        values: Sequence[Any] = getattr(self.columns, column)
        if column not in _LISTS and len(values) < self.span_count:
            return [*values, 0 if column in _NUMBERS else b""]
        return values[:]

    @property
    def facts(self) -> Facts | None:
        """Times, statuses and sought attributes, where one pass tells them all; it spares the columns."""
        if not self._is_scanned:
            self._is_scanned = True
            self._facts = trace_facts(self.raw, self._readers.keys)
        return self._facts

    @property
    def statuses(self) -> Sequence[int]:
        """The status codes of its spans, 0 where there is none; needs the column of status."""
        facts = self.facts
        if facts is not None:
            return facts.statuses
        codes = self.columns.status.code[:]
        return codes if len(codes) == self.span_count else [*codes, 0]

    @property
    def extent(self) -> Extent:
        """The time that it takes; needs the columns of start and end."""
        if self._extent is None:
            facts = self.facts
            if facts is not None:
                self._extent = Extent(facts.first, facts.last, True)
                return self._extent
            columns = self.columns
            starts, ends = columns.start_time_unix_nano[:], columns.end_time_unix_nano[:]
            sure = len(starts) == len(ends) == self.span_count
            first = min(starts) if starts else 0
            self._extent = Extent(first, max(ends) if ends else 0, sure and first > 0)
        return self._extent

    def longest(self) -> int:
        """Return nanoseconds than which no span is longer; needs the columns of start and end."""
        if self._longest is None:
            first, last, _ = self.extent
            if self.facts is not None:
                self._longest = last - first
                return self._longest
            starts = self.columns.start_time_unix_nano
            if last >= _SIGNED or max(starts, default=0) >= _SIGNED:
                # To those who compute with 63 bits such times are negative: nothing can be said.
                self._longest = _SIGNED
            else:
                self._longest = last - first if len(starts) == self.span_count else last
        return self._longest
