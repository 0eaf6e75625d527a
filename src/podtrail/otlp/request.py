"""Requests: an ExportTraceServiceRequest to groups of undecoded spans, and back.

What is valid:

1. Upstream's parser takes the request (`podtrail.otlp.strict`): wire types, UTF-8 and nesting, everywhere in it.
2. It has not more borders of resources, scopes and spans than anybody sends in good faith (`refuse_hollow`).
3. Nothing stands twice that stands once: resource, scope, and of a span its ids and status. Parsers merge such
   repeats, so it is legal, but could not be cut from the bytes.
4. Each span begins with its trace id and its span id, as every SDK writes them, and neither is of zeros.

A request that 1 or 3 does not hold of is first brought into that form, without the spans that can't be
(`podtrail.otlp.scrutiny`). In a scope with a span that 4 does not hold of, each span is looked at, and rejected or
rewritten alone. Then spans of one trace that stand side by side become a group, their bytes as they came.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import gt, itemgetter
from typing import Any, NamedTuple, cast

from google.protobuf.message import DecodeError

from podtrail.otlp.framing import frame
from podtrail.otlp.group import Group
from podtrail.otlp.lite import REQUEST, RESOURCE_SPANS, SCOPE_SPANS, field_number, lite_type
from podtrail.otlp.native import check_and_cut
from podtrail.otlp.reader import raw_span_reader
from podtrail.otlp.remembering import remembering
from podtrail.otlp.scrutiny import Rejections, scrutinize
from podtrail.otlp.strict import Times, check

_REQUEST = cast("Any", lite_type(REQUEST, {"resource_spans": {"resource": None, "scope_spans": None}}))
_SCOPE_SPANS = cast("Any", lite_type(SCOPE_SPANS, {"scope": None, "spans": None}))
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
"""What has to stand once."""
_read_times = raw_span_reader({"start_time_unix_nano", "end_time_unix_nano"})
_RESOURCE_ONLY = cast("Any", lite_type(RESOURCE_SPANS, {"resource": None}))
_SCOPE_ONLY = cast("Any", lite_type(SCOPE_SPANS, {"scope": None}))

_LENGTH_DELIMITED = 2
_REQUEST_TAG = bytes([field_number(REQUEST, "resource_spans") << 3 | _LENGTH_DELIMITED])
_RESOURCE_SPANS_TAG = bytes([field_number(RESOURCE_SPANS, "scope_spans") << 3 | _LENGTH_DELIMITED])

# How a span begins: the trace id's tag and length, 16 bytes, the span id's tag and length, 8 bytes.
_head_of = itemgetter(slice(20))
_TRACE_ID = slice(2, 18)
_TRACE_ID_BEGINS, _SPAN_ID_BEGINS = b"\x0a\x10", b"\x12\x08"
_NO_TRACE_ID = bytes(16)
_span_id_of = itemgetter(slice(18, 28))
_NO_SPAN_ID = _SPAN_ID_BEGINS + bytes(8)

_FEW_ELEMENTS = 10_000
_MOST_ELEMENTS = 2_000_000
_FIXED_SIZES = {1: 8, 5: 4}
_SPANS_DEPTH = 2
"""A scope is in a resource, which is in the request: their borders are looked for, and not those in spans."""
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
    other_signal: str = ""
    """What it holds beside spans, which is skipped: `logs`, `metrics`, `profiles`; `unknown` for no key of OTLP's.

    Told of JSON alone. In protobuf all signals have the same field numbers: log records and metrics are read as spans,
    and rejected, since the ids that these have are none.
    """


class _Scope(NamedTuple):
    """A ScopeSpans message whose spans were told apart and not looked at."""

    resource: bytes
    header: bytes
    """The message without its spans."""
    spans: Sequence[bytes]


class _Sound(NamedTuple):
    """A request of which 1 to 3 hold."""

    scopes: Sequence[_Scope]
    times: Times


def read_request(raw: bytes, *, zero_ids: bool = False) -> Intake:
    """Return the groups of a serialized ExportTraceServiceRequest, invalid spans left out and counted.

    `zero_ids`: whether spans with ids of zeros, which OTLP calls invalid, are taken nonetheless.

    Raises:
        MalformedRequest: the bytes can't be told apart into spans, or hold hardly anything but borders of spans.
    """
    return read_natively(raw) or read_in_python(raw, zero_ids=zero_ids)


def read_natively(raw: bytes) -> Intake | None:
    """Return what `read_request` does; None where that is for Python to find out."""
    cut = check_and_cut(raw)
    return None if cut is None else Intake(cut[0], 0, "", cut[1])


def read_in_python(raw: bytes, *, zero_ids: bool = False) -> Intake:
    """Return what `read_request` does, found out in Python: the reference.

    Raises:
        MalformedRequest: as there.
    """
    rejections = Rejections(zero_ids=zero_ids)
    sound = _sound(raw)
    if sound is None:
        try:
            canonical = scrutinize(raw, rejections)
        except DecodeError as error:
            raise MalformedRequest(f"not an ExportTraceServiceRequest: {error}") from error
        sound = _sound(canonical)
        assert sound is not None, "a scrutinized request is canonical"
    groups = [group for scope in sound.scopes for group in _groups(scope, rejections)]
    return Intake(groups, rejections.count, rejections.reason(), _count_odd(sound.times, groups))


def _sound(raw: bytes) -> _Sound | None:
    """Return a request in parts; None when it does not decode or repeats what has to stand once."""
    try:
        scopes = _part(raw)
        times = check(raw)
        written_again = _SINGULAR.FromString(raw).ByteSize()
    except DecodeError:
        return None
    # A repeat makes it shorter, and so does a number in more bytes than it takes.
    return _Sound(scopes, times) if written_again == len(raw) else None


def _part(raw: bytes) -> list[_Scope]:
    """Return the scopes of a request that have spans.

    Raises:
        DecodeError: it can't be parted.
        MalformedRequest: it is hollow.
    """
    refuse_hollow_bytes(raw)
    resources = _REQUEST.FromString(raw).resource_spans
    elements = len(resources)
    refuse_hollow(elements, len(raw))
    elements += sum([len(resource_spans.scope_spans) for resource_spans in resources])
    refuse_hollow(elements, len(raw))
    scopes: list[_Scope] = []
    for resource_spans in resources:
        messages = [_SCOPE_SPANS.FromString(scope_spans) for scope_spans in resource_spans.scope_spans]
        resource_spans.ClearField("scope_spans")
        resource = resource_spans.SerializeToString() or _Bare()
        for message in messages:
            spans = message.spans[:]
            message.ClearField("spans")
            scopes.append(_Scope(resource, message.SerializeToString(), spans))
    refuse_hollow(elements + sum([len(scope.spans) for scope in scopes]), len(raw))
    return scopes


def refuse_hollow(elements: int, size: int) -> None:
    """Refuse a request of so many resources, scopes and spans in so many bytes that nobody sends it in good faith.

    An empty one takes two bytes of a request, and some hundred, and microseconds, when it is read.

    Raises:
        MalformedRequest: there are so many.
    """
    if elements > _MOST_ELEMENTS or (elements > _FEW_ELEMENTS and elements * _LEAST_BYTES > size):
        raise MalformedRequest(f"{elements:,} resources, scopes and spans in {size:,} bytes: too many to look at")


def refuse_hollow_bytes(raw: bytes) -> None:
    """Refuse a hollow request (`refuse_hollow`) by its bytes alone: a parser would make an object of each border.

    Raises:
        MalformedRequest: it is one.
    """
    # No more borders than bytes that a border begins with; of an ordinary request these are one in twelve.
    most = raw.count(_REQUEST_TAG) + raw.count(_RESOURCE_SPANS_TAG)
    if most > _FEW_ELEMENTS and most * _LEAST_BYTES > len(raw):
        refuse_hollow(_borders(raw, max(_FEW_ELEMENTS, len(raw) // _LEAST_BYTES)), len(raw))


def _borders(raw: bytes, most: int) -> int:
    """Return the number of resources, scopes and spans, at most one more than `most`, up to what can't be parsed."""
    found = 0
    within = [(0, len(raw))]
    while within:
        at, end = within.pop()
        tag = _RESOURCE_SPANS_TAG[0] if within else _REQUEST_TAG[0]
        while at < end:
            field = raw[at]
            kind = field & 7
            number, at = _read_varint(raw, at, end)
            if kind in _FIXED_SIZES:
                at += _FIXED_SIZES[kind]
                continue
            size, at = _read_varint(raw, at, end)
            if kind != _LENGTH_DELIMITED:
                if kind:
                    return found
                continue
            if number == tag:
                found += 1
                if found > most:
                    return found
                if size and len(within) < _SPANS_DEPTH:
                    within += [(at + size, end), (at, min(at + size, end))]
                    break
            at += size
    return found


def _read_varint(raw: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the number at a place, and the place behind it."""
    number = shift = 0
    while at < end:
        byte = raw[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return number, at


def _groups(scope: _Scope, rejections: Rejections) -> Iterator[Group]:
    """Yield the groups of a scope, in order; spans that are refused are left out and counted."""
    spans = scope.spans
    if not _begin_with_ids(spans):
        spans = [rejections.regular(span) for span in spans if rejections.admits(span)]
    framed, at = frame(spans), 0
    for head, run in groupby(spans, _head_of):
        lengths = [_framed(len(span)) for span in run]
        end = at + sum(lengths)
        yield Group(scope.resource, scope.header, head[_TRACE_ID], framed[at:end], len(lengths))
        at = end


def _begin_with_ids(spans: Sequence[bytes]) -> bool:
    """Say whether all spans begin with two ids of the right size, neither of zeros."""
    return _NO_SPAN_ID not in map(_span_id_of, spans) and all(map(_is_head, set(map(_head_of, spans))))


def _is_head(head: bytes) -> bool:
    """Say whether the first bytes of a span are those of a trace id, not of zeros, and of a span id."""
    return head[:2] == _TRACE_ID_BEGINS and head[18:] == _SPAN_ID_BEGINS and head[_TRACE_ID] != _NO_TRACE_ID


def _count_odd(times: Times, groups: Sequence[Group]) -> int:
    spans = sum([group.span_count for group in groups])
    if len(times.starts) == len(times.ends) == spans:  # one that is not there is in no list: here all are
        reversed_times: int = sum(map(gt, times.starts, times.ends))
        return reversed_times + times.starts.count(0)
    each = chain.from_iterable(_read_times(group.spans) for group in groups)
    return sum(not 0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in each)


def _framed(length: int) -> int:
    """Return how long a message is with its tag and its length before it."""
    return length + 2 if length < 1 << 7 else length + 3 if length < 1 << 14 else length + 1 + len(_varint(length))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


@remembering(1024)
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
