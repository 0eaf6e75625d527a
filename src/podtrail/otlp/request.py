"""Requests: an ExportTraceServiceRequest to groups of undecoded spans, and back.

The whole request is checked once, strictly, in C (`podtrail.otlp.strict`). Then spans are told apart, and runs of one
trace are cut from the request's own bytes. Only a request that does not decode, or that repeats a resource, a scope, an
id or a status (legal, and merged by parsers), is looked at span by span (`podtrail.otlp.scrutiny`).
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, chain, groupby
from operator import gt, itemgetter
from typing import Any, NamedTuple, cast

from google.protobuf.message import DecodeError

from podtrail.otlp.framing import frame
from podtrail.otlp.group import Group
from podtrail.otlp.lite import REQUEST, RESOURCE_SPANS, SCOPE_SPANS, field_number, lite_type
from podtrail.otlp.reader import span_reader
from podtrail.otlp.scrutiny import Rejections, scrutinize
from podtrail.otlp.strict import Times, check

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
_HEAD = slice(0, 20)
_head_of = itemgetter(_HEAD)
_span_id_of = itemgetter(slice(20, 28))
_TRACE_ID_TAG, _SPAN_ID_TAG = b"\x0a\x10", b"\x12\x08"
_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)

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
    groups, times = cut
    return Intake(groups, rejections.count, rejections.reason(), _count_odd(times, groups))


def _count_odd(times: Times, groups: Sequence[Group]) -> int:
    if len(times.starts) == len(times.ends) == sum([group[4] for group in groups]):
        return sum(map(gt, times.starts, times.ends))
    spans = chain.from_iterable(_read_times(group.spans) for group in groups)
    return sum(not 0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)


def refuse_hollow(elements: int, size: int) -> None:
    """Refuse a request of so many resources, scopes and spans in so many bytes that nobody sends it in good faith.

    An empty one takes two bytes of a request, and some hundred, and microseconds, when it is read.
    """
    if elements > _MOST_ELEMENTS or (elements > _FEW_ELEMENTS and elements * _LEAST_BYTES > size):
        raise MalformedRequest(f"{elements:,} resources, scopes and spans in {size:,} bytes: too many to look at")


class _Scope(NamedTuple):
    """A ScopeSpans message whose spans were told apart and not looked at."""

    resource: bytes
    raw: bytes
    message: Any


def _part(raw: bytes) -> list[_Scope]:
    """Return the scopes of a request. DecodeError when it can't be parted, MalformedRequest when it is hollow."""
    resources = _REQUEST.FromString(raw).resource_spans
    elements = len(resources)
    refuse_hollow(elements, len(raw))
    elements += sum([len(resource_spans.scope_spans) for resource_spans in resources])
    refuse_hollow(elements, len(raw))
    scopes: list[_Scope] = []
    for resource_spans in resources:
        parts = list(resource_spans.scope_spans)
        resource_spans.ClearField("scope_spans")
        resource = resource_spans.SerializeToString() or _Bare()
        scopes += [_Scope(resource, part, _SCOPE_SPANS.FromString(part)) for part in parts]
    refuse_hollow(elements + sum([len(scope.message.spans) for scope in scopes]), len(raw))
    return scopes


def _cut(raw: bytes, rejections: Rejections) -> tuple[list[Group], Times] | None:
    """Return groups and times of a request; None when it does not decode or repeats a field that has to stand once."""
    try:
        scopes = _part(raw)
        times = check(raw)
    except DecodeError:
        return None
    if _SINGULAR.FromString(raw).ByteSize() != len(raw):
        return None
    groups: list[Group] = []
    for scope in scopes:
        if not _cut_scope(scope, groups, rejections):
            return None
    return groups, times


def _cut_scope(of: _Scope, groups: list[Group], rejections: Rejections) -> bool:
    resource, raw, message = of
    spans: list[bytes] = list(message.spans)
    message.ClearField("spans")
    scope: bytes = message.SerializeToString()
    if not spans:
        return True
    ends, frame_size = _ends(spans)
    base = len(scope)
    if base + ends[-1] + len(spans) * frame_size != len(raw):
        return False
    runs = [(head, len(list(run))) for head, run in groupby(map(_head_of, spans))]
    if _NO_SPAN in map(_span_id_of, spans) or not all(map(_is_regular, {head for head, _ in runs})):
        spans = [rejections.regular(span) for span in spans if rejections.admits(span)]
        runs = [(head, len(list(run))) for head, run in groupby(map(_head_of, spans))]
        raw, base = frame(spans), 0
        ends, frame_size = _ends(spans)
    elif not raw.startswith(scope) or _insertion(scope, scope_spans=True) != base:
        raw, base = frame(spans), 0
    at, seen = base, 0
    for head, count in runs:
        seen += count
        end = base + ends[seen - 1] + seen * frame_size
        groups.append(Group(resource, scope, head[2:18], raw[at:end], count))
        at = end
    return True


def _ends(spans: Sequence[bytes]) -> tuple[Sequence[int], int]:
    """Return where each span ends when they stand side by side, and what to add to that for each up to there.

    Tag and length of a span are left out of the ends, and are what is to be added, if they are as long for all.
    """
    lengths = list(map(len, spans))
    if not lengths:
        return (), 0
    frame_size = 1 + _varint_size(min(lengths))
    if frame_size == 1 + _varint_size(max(lengths)):
        return list(accumulate(lengths)), frame_size
    return list(accumulate(length + 1 + _varint_size(length) for length in lengths)), 0


def _is_regular(head: bytes) -> bool:
    return head[:2] == _TRACE_ID_TAG and head[18:] == _SPAN_ID_TAG and head[2:18] != _NO_TRACE


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
