"""Requests: an ExportTraceServiceRequest to groups of undecoded spans, and back.

The whole request is checked once, strictly, in C (`podtrail.otlp.strict`). Then spans are told apart, and runs of one
trace are cut from the request's own bytes. Only a request that does not decode, or that repeats a resource, a scope, an
id or a status (legal, and merged by parsers), is looked at span by span (`podtrail.otlp.scrutiny`).

Every step of the interpreter costs, so what has to be done for each span is done in C (`map`, `struct`, one search by
a regular expression), the rest once a run of spans of one trace. Spans of traces A A B C C:

    heads   a a b c c       the first 20 bytes of each: both ids' tags and lengths, and the trace id
    runs    0 2 3           where another head begins than stood before
    groups  A=0:2 B=2:3 C=3:5, each cut from the request at the sum of the lengths before it
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, compress, groupby, pairwise
from operator import gt, itemgetter, ne
from struct import unpack
from typing import Any, NamedTuple, cast

from google.protobuf.message import DecodeError

from podtrail.otlp.framing import frame
from podtrail.otlp.group import Group
from podtrail.otlp.lite import REQUEST, RESOURCE_SPANS, SCOPE_SPANS, field_number, lite_type
from podtrail.otlp.reader import span_reader
from podtrail.otlp.scrutiny import Rejections, scrutinize
from podtrail.otlp.strict import NO_SPAN_ID, RequestFacts, check

_REQUEST = cast("Any", lite_type(REQUEST, {"resource_spans": {"resource": None, "scope_spans": None}}))
_SCOPE_SPANS = cast("Any", lite_type(SCOPE_SPANS, {"scope": None, "spans": None}))
# What is read where it stands and has to stand once: written again, a repeat makes the request shorter.
_SINGULAR = cast(
    "Any",
    lite_type(
        REQUEST,
        {
            "resource_spans": {
                "resource": None,
                "scope_spans": {"scope": None, "spans": dict.fromkeys(("trace_id", "span_id", "status"))},
            }
        },
    ),
)
_read_times = span_reader({"start_time_unix_nano", "end_time_unix_nano"})
_RESOURCE_ONLY = cast("Any", lite_type(RESOURCE_SPANS, {"resource": None}))
_SCOPE_ONLY = cast("Any", lite_type(SCOPE_SPANS, {"scope": None}))

_LENGTH_DELIMITED = 2
_REQUEST_TAG = bytes([field_number(REQUEST, "resource_spans") << 3 | _LENGTH_DELIMITED])
_RESOURCE_SPANS_TAG = bytes([field_number(RESOURCE_SPANS, "scope_spans") << 3 | _LENGTH_DELIMITED])

# What every SDK writes first: the trace id's tag, length and 16 bytes, the span id's tag and length.
_HEAD = 20
_head_of = itemgetter(slice(_HEAD))
_are_heads = re.compile(rb"(?:\x0a\x10.{16}\x12\x08)*", re.DOTALL).fullmatch
_NO_TRACE = b"\x0a\x10" + bytes(16) + b"\x12\x08"
_TIME = 8
"""Bytes of a time on the wire."""

_FEW_ELEMENTS = 10_000
_MOST_ELEMENTS = 2_000_000
_LEAST_BYTES = 16
"""Bytes of a request for each resource, scope and span on average; a span's ids alone take 28."""


class _Bare(bytes):
    """A header that says nothing, yet an object of its own as any other: so neighbours without resource stay apart."""

    __slots__ = ()


class MalformedRequest(ValueError):
    """The bytes are no ExportTraceServiceRequest."""


class Intake(NamedTuple):
    """What a request held."""

    groups: Sequence[Group]
    rejected: int
    """Spans that no pipeline may see: without valid ids, or not decodable."""
    reason: str
    """Why they were rejected, in words; "" when none was."""
    odd_times: int = 0
    """Spans whose times tell no duration: the start or the end is 0, or the end comes first. They pass as they are."""


def read_request(raw: bytes, *, zero_ids: bool = False) -> Intake:
    """Return the groups of a serialized ExportTraceServiceRequest, invalid spans left out and counted.

    `zero_ids`: whether spans with ids of zeros, which OTLP calls invalid, are taken nonetheless.

    Raises:
        MalformedRequest: the bytes can't be told apart into spans, or hold hardly anything but borders of spans.
    """
    rejections = Rejections(zero_ids=zero_ids)
    cut = _cut(raw, rejections)
    if cut is None:
        rejections = Rejections(zero_ids=zero_ids)
        try:
            canonical = scrutinize(raw, rejections)
        except DecodeError as error:
            raise MalformedRequest(f"not an ExportTraceServiceRequest: {error}") from error
        cut = _cut(canonical, rejections)
        assert cut is not None, "a scrutinized request is canonical"
    groups, told = cut
    return Intake(groups, rejections.count, rejections.reason(), _count_odd(told, groups))


def _count_odd(told: RequestFacts, groups: Sequence[Group]) -> int:
    spans = sum([group.span_count for group in groups])
    if len(told.starts) == len(told.ends) == _TIME * spans:  # a time of 0 is not on the wire: here none is
        times = f"<{spans}Q"
        return sum(map(gt, unpack(times, told.starts), unpack(times, told.ends)))
    each = chain.from_iterable(_read_times(group.spans) for group in groups)
    return sum(not 0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in each)


def refuse_hollow(elements: int, size: int) -> None:
    """Refuse a request of so many resources, scopes and spans in so many bytes that nobody sends it in good faith.

    An empty one takes two bytes of a request, and some hundred, and microseconds, when it is read.

    Raises:
        MalformedRequest: there are so many.
    """
    if elements > _MOST_ELEMENTS or (elements > _FEW_ELEMENTS and elements * _LEAST_BYTES > size):
        raise MalformedRequest(f"{elements:,} resources, scopes and spans in {size:,} bytes: too many to look at")


class _Scope(NamedTuple):
    """A ScopeSpans message whose spans were told apart and not looked at."""

    resource: bytes
    header: bytes
    """The message without its spans."""
    raw: bytes
    spans: Sequence[bytes]
    heads: Sequence[bytes]
    """The beginnings of the spans."""
    runs: Sequence[int]
    """The first span of each run of equal heads."""


def _part(raw: bytes) -> list[_Scope] | None:
    """Return the scopes of a request that have spans; None when one repeats a field that has to stand once.

    DecodeError when it can't be parted, MalformedRequest when it is hollow.
    """
    request = _REQUEST.FromString(raw)
    resources = request.resource_spans
    elements = len(resources)
    refuse_hollow(elements, len(raw))
    elements += sum([len(resource_spans.scope_spans) for resource_spans in resources])
    refuse_hollow(elements, len(raw))
    scopes: list[tuple[bytes, bytes, Any]] = []
    size = 0
    for resource_spans in resources:
        parts = resource_spans.scope_spans[:]
        resource_spans.ClearField("scope_spans")
        resource = resource_spans.SerializeToString() or _Bare()
        size += _framed(len(resource) + sum([_framed(len(part)) for part in parts]))
        scopes += [(resource, part, _SCOPE_SPANS.FromString(part)) for part in parts]
    refuse_hollow(elements + sum([len(message.spans) for _, _, message in scopes]), len(raw))
    request.ClearField("resource_spans")
    # Written again, a repeat (and a padded number) makes it shorter.
    if size + request.ByteSize() != len(raw):
        return None
    return [_scope(*scope) for scope in scopes if scope[2].spans]


def _scope(resource: bytes, raw: bytes, message: Any) -> _Scope:
    spans: list[bytes] = message.spans[:]
    message.ClearField("spans")
    heads = list(map(_head_of, spans))
    return _Scope(resource, message.SerializeToString(), raw, spans, heads, _runs(heads))


def _runs(heads: Sequence[bytes]) -> Sequence[int]:
    """Return where in a list something else begins than what stood before."""
    return [0, *compress(range(1, len(heads)), map(ne, heads, heads[1:]))]


def _cut(raw: bytes, rejections: Rejections) -> tuple[list[Group], RequestFacts] | None:
    """Return groups of a request and what it tells; None when it does not decode or repeats what has to stand once."""
    try:
        scopes = _part(raw)
        told = check(raw)
    except DecodeError:
        return None
    if scopes is None:
        return None
    regular = [_are_regular(scope) for scope in scopes]
    count = sum([len(scope.spans) for scope in scopes])
    # Where every span begins with its ids, and there are as many as spans, none has two: that spares the parse that
    # would find out (1,900 instructions a span).
    surely_once = all(regular) and told.trace_ids == told.span_ids == count and not told.statuses_differ
    if not surely_once and _SINGULAR.FromString(raw).ByteSize() != len(raw):
        return None
    groups: list[Group] = []
    for scope, is_regular in zip(scopes, regular, strict=True):
        admits_all = is_regular and not (
            told.no_span_id and any(span.startswith(NO_SPAN_ID, _HEAD - 2) for span in scope.spans)
        )
        if not _cut_scope(scope, groups, rejections, admits_all=admits_all):
            return None
    return groups, told


def _cut_scope(of: _Scope, groups: list[Group], rejections: Rejections, *, admits_all: bool) -> bool:
    resource, scope, raw, spans, heads, runs = of
    lengths, frame_size = _lengths(spans)
    base = len(scope)
    if base + sum(lengths) + len(spans) * frame_size != len(raw):
        return False
    if not admits_all:
        spans = [rejections.regular(span) for span in spans if rejections.admits(span)]
        heads = list(map(_head_of, spans))
        runs = _runs(heads) if spans else ()
        raw, base = frame(spans), 0
        lengths, frame_size = _lengths(spans)
    elif not raw.startswith(scope) or _insertion(scope, scope_spans=True) != base:
        raw, base = frame(spans), 0
    at = base
    for first, last in pairwise([*runs, len(spans)]):
        count = last - first
        end = at + sum(lengths[first:last]) + count * frame_size
        groups.append(Group(resource, scope, heads[first][2:18], raw[at:end], count))
        at = end
    return True


def _lengths(spans: Sequence[bytes]) -> tuple[Sequence[int], int]:
    """Return how long spans are when they stand side by side, and what to add to that for each.

    Tag and length of a span are left out of its length, and are what is to be added, if they are as long for all.
    """
    lengths = list(map(len, spans))
    if not lengths:
        return (), 0
    distinct = set(lengths)
    frame_size = 1 + _varint_size(min(distinct))
    if frame_size == 1 + _varint_size(max(distinct)):
        return lengths, frame_size
    return list(map(_framed, lengths)), 0


def _are_regular(scope: _Scope) -> bool:
    """Say whether all spans begin with two ids of the right size, the trace's not of zeros."""
    distinct = {scope.heads[first] for first in scope.runs}
    if _NO_TRACE in distinct:
        return False
    joined = b"".join(distinct)  # so that one search sees all: a call for each would take ten times as long
    return len(joined) == _HEAD * len(distinct) and _are_heads(joined) is not None


def _framed(length: int) -> int:
    """Return how long a message is with its tag and its length before it."""
    return length + 1 + _varint_size(length)


def _varint_size(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


@lru_cache(maxsize=1024)
def _insertion(header: bytes, *, scope_spans: bool) -> int:
    """Return where in a header its repeated field belongs: behind the resource or scope, before the schema URL."""
    kept = (_SCOPE_ONLY if scope_spans else _RESOURCE_ONLY).FromString(header)
    kept.DiscardUnknownFields()
    first: bytes = kept.SerializeToString()
    return len(first) if header.startswith(first) else len(header)


def write_request(groups: Iterable[Group]) -> bytes:
    """Return groups as one serialized ExportTraceServiceRequest.

    Neighbours with equal headers share one ResourceSpans or ScopeSpans. What `read_request` took apart comes out byte
    for byte if it was in canonical form and no neighbours had equal headers.
    """
    out: list[bytes] = []
    for resource, of_resource in groupby(groups, itemgetter(0)):
        body: list[bytes] = []
        for scope, of_scope in groupby(of_resource, itemgetter(1)):
            chunks = [group[3] for group in of_scope]
            at = _insertion(scope, scope_spans=True)
            body += (_RESOURCE_SPANS_TAG, _varint(len(scope) + sum(map(len, chunks))), scope[:at], *chunks, scope[at:])
        at = _insertion(resource, scope_spans=False)
        out += (_REQUEST_TAG, _varint(len(resource) + sum(map(len, body))), resource[:at], *body, resource[at:])
    return b"".join(out)
