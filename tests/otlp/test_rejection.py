"""Bad input: a bad span is rejected alone and counted, and nothing but MalformedRequest is ever raised."""

import tracemalloc
from collections.abc import Callable
from random import Random

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from podtrail.otlp import MalformedRequest, frame, read_request, split, write_request
from podtrail.otlp.json import read_json_request
from podtrail.otlp.request import read_in_python

Flat = list[tuple[bytes, bytes, bytes]]

_TRACE, _SPAN = b"t" * 16, b"s" * 8
_UNDECODABLE = "content that can't be decoded (invalid UTF-8 or nesting too deep)"


def _span(trace_id: bytes = _TRACE, span_id: bytes = _SPAN) -> bytes:
    return Span(trace_id=trace_id, span_id=span_id, name="bad").SerializeToString()


BAD = {
    "trace_id of 15 bytes instead of 16": _span(trace_id=b"t" * 15),
    "trace_id of 17 bytes instead of 16": _span(trace_id=b"t" * 17),
    "trace_id of 0 bytes instead of 16": _span(trace_id=b""),
    "trace_id of zeros": _span(trace_id=bytes(16)),
    "span_id of 7 bytes instead of 8": _span(span_id=b"s" * 7),
    "span_id of 0 bytes instead of 8": _span(span_id=b""),
    "span_id of zeros": _span(span_id=bytes(8)),
    "invalid UTF-8 in the name": _span() + b"\x2a\x02\xc3\x28",
    "invalid UTF-8 in an attribute's key": _span() + b"\x4a\x03\x0a\x01\xff",
    "invalid UTF-8 in an attribute's value": _span() + b"\x4a\x05\x12\x03\x0a\x01\xff",
    "cut off": _span()[:-1],
    "no message at all": b"\xff\xff\xff",
    "empty": b"",
}


def _field(number: int, content: bytes) -> bytes:
    length, left = bytearray(), len(content)
    while left > 127:
        length.append(left & 127 | 128)
        left >>= 7
    return bytes([number << 3 | 2, *length, left]) + content


def _within_request(*spans: bytes) -> bytes:
    return _field(1, _field(2, frame(spans)))


@pytest.mark.parametrize("fault", BAD)
@settings(max_examples=15)
@given(scope=..., place=st.integers(0, 3))
def test_a_bad_span_is_rejected_alone(fault: str, scope: ScopeSpans, place: int, flat: Callable[[bytes], Flat]) -> None:
    spans = [span.SerializeToString() for span in scope.spans]
    scope.ClearField("spans")
    with_bad = [*spans[:place], BAD[fault], *spans[place:]]
    intake = read_request(_field(1, _field(2, scope.SerializeToString() + frame(with_bad))))
    assert intake.rejected == 1
    assert flat(write_request(intake.groups)) == flat(_field(1, _field(2, scope.SerializeToString() + frame(spans))))
    if fault.startswith(("trace_id", "span_id")):
        assert intake.reason == f"1 with {fault}"


def test_reasons_are_counted() -> None:
    intake = read_request(_within_request(_span(), BAD["trace_id of zeros"], BAD["cut off"], BAD["trace_id of zeros"]))
    assert intake.rejected == 3
    assert intake.reason == f"2 with trace_id of zeros, 1 with {_UNDECODABLE}"
    assert [group.span_count for group in intake.groups] == [1]


def test_a_span_is_rejected_from_the_depth_at_which_a_request_with_it_could_not_be_parsed(
    nested: Callable[[int], AnyValue],
) -> None:
    outcomes = set()
    for levels in range(40, 60):
        value = nested(levels).SerializeToString()
        deep = _span() + _field(9, _field(2, value))
        raw = _within_request(_span(), deep, _span())
        try:
            ExportTraceServiceRequest.FromString(raw)
        except DecodeError:
            parsable = False
        else:
            parsable = True
        intake = read_request(raw)
        assert intake.rejected == (0 if parsable else 1)
        assert len(split(intake.groups[0].spans)) == 3 - intake.rejected
        outcomes.add(parsable)
    assert outcomes == {True, False}


@pytest.mark.parametrize(("level", "name"), [(1, "resource"), (2, "scope")])
def test_a_bad_header_costs_the_spans_under_it(level: int, name: str) -> None:
    bad_header = _field(1, b"\xff\xff")
    scope = frame([_span(), _span()])
    if level == 1:
        bad = _field(1, bad_header + _field(2, scope) + _field(2, scope))
    else:
        bad = _field(1, _field(2, bad_header + scope) + _field(2, bad_header + scope))
    intake = read_request(bad + _within_request(_span()))
    assert intake.rejected == 4
    assert intake.reason == f"4 with a {name} that can't be decoded (invalid UTF-8 or nesting too deep)"
    assert [group.span_count for group in intake.groups] == [1]


def _spans_within(raw: bytes) -> int:
    """Count spans without looking into them. ValueError where their borders can't be found."""
    level = [raw]
    for number in (1, 2, 2):
        level = [content for message in level for found, content in _fields(message) if found == number]
    return len(level)


def _fields(raw: bytes) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        match tag & 7:
            case 0:
                _, at = _varint(raw, at)
            case 1:
                at += 8
            case 2:
                length, at = _varint(raw, at)
                found.append((tag >> 3, raw[at : at + length]))
                at += length
            case 5:
                at += 4
            case _:
                raise ValueError
    if at > len(raw):
        raise ValueError
    return found


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(raw):
            raise ValueError
        number |= (raw[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if raw[at - 1] < 128:
            return number, at


def _mutated(raw: bytes, random: Random) -> bytes:
    mutated = bytearray(raw)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(mutated) + 1)
        match random.randrange(4):
            case 0:
                mutated[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                del mutated[at : at + random.choice([1, 2, 20])]
            case 2:
                mutated[at:at] = bytes([random.choice([0, 1, 8, 10, 18, 127, 128, 255])])
            case _:
                mutated[at:at] = mutated[at : at + 30]
    return bytes(mutated)


def _check_nothing_is_lost(raw: bytes) -> bool:
    """Read a damaged request; say whether anything could be read."""
    try:
        ExportTraceServiceRequest.FromString(raw)
    except DecodeError:
        parsable = False
    else:
        parsable = True
    try:
        intake = read_request(raw)
    except MalformedRequest:
        assert not parsable
        return False
    kept = ExportTraceServiceRequest.FromString(write_request(intake.groups))
    spans = [span for resource in kept.resource_spans for scope in resource.scope_spans for span in scope.spans]
    assert [span.SerializeToString() for span in spans] == [
        Span.FromString(span).SerializeToString() for group in intake.groups for span in split(group.spans)
    ]
    assert all(len(span.trace_id) == 16 and len(span.span_id) == 8 for span in spans)
    assert bool(intake.reason) == bool(intake.rejected)
    assert len(spans) + intake.rejected == _spans_within(raw)
    return True


def test_many_damaged_requests_lose_no_span_uncounted(generated: list[ExportTraceServiceRequest]) -> None:
    random = Random(20)
    readable = [_check_nothing_is_lost(_mutated(sent.SerializeToString(), random)) for sent in generated]
    assert 0.1 < sum(readable) / len(generated) < 0.97


def test_many_damaged_spans_cost_no_other(generated: list[ExportTraceServiceRequest]) -> None:
    random = Random(5927)
    outcomes = [0, 0]
    for sent in generated:
        damaged = _mutated(sent.resource_spans[0].scope_spans[0].spans[0].SerializeToString(), random)
        raw = _within_request(_span(), damaged, _span(span_id=b"neighbor"))
        assert _check_nothing_is_lost(raw)
        intake = read_request(raw)
        assert intake.rejected in (0, 1)
        spans = [span for group in intake.groups for span in split(group.spans)]
        assert (spans[0], spans[-1]) == (_span(), _span(span_id=b"neighbor"))
        outcomes[intake.rejected] += 1
    assert min(outcomes) > len(generated) / 10


@given(raw=st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_malformed(raw: bytes) -> None:
    _check_nothing_is_lost(raw)


_UNKNOWN_FIRST = {"varint": b"\x98\x3f\x00", "fixed64": b"\x11" + bytes(8), "fixed32": b"\x15" + bytes(4)}
HOLLOW = {
    **{f"resources behind a {kind}": field + b"\x0a\x00" * 200_000 for kind, field in _UNKNOWN_FIRST.items()},
    "scopes behind a varint": _field(1, b"\x98\x3f\x00" + b"\x12\x00" * 200_000),
    "resources with an unknown field": b"\x0a\x02\x18\x00" * 200_000,
    "all in each other": _field(1, _field(2, b"\x12\x00")) * 60_000,
    "spans": _field(1, _field(2, b"\x12\x00" * 200_000)),
    "scopes": _field(1, b"\x12\x00" * 200_000),
    "resources": b"\x0a\x00" * 200_000,
}


@pytest.mark.parametrize("of", HOLLOW)
def test_a_request_of_hardly_anything_but_empty_elements_is_refused_before_each_is_looked_at(of: str) -> None:
    with pytest.raises(MalformedRequest, match="too many to look at"):
        read_request(HOLLOW[of])


@pytest.mark.parametrize("of", HOLLOW)
def test_a_hollow_request_costs_no_object_for_each_border(of: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MalformedRequest):
            read_in_python(HOLLOW[of])
        assert tracemalloc.get_traced_memory()[1] < len(HOLLOW[of])
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("of", [b"{}", b"[]", b'{"a":{}}'])
def test_hollow_json_costs_no_object_for_each_element(of: bytes) -> None:
    request = b'{"resourceSpans": [%s]}' % b",".join([of] * 200_000)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedRequest, match="too many to look at"):
            read_json_request(request)
        assert tracemalloc.get_traced_memory()[1] < len(request)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "request_json",
    [
        b'{"resourceSpans": [%s]}',
        b'{"resourceSpans": [{"scopeSpans": [%s]}]}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [%s]}]}]}',
    ],
)
def test_a_json_request_of_hardly_anything_but_empty_elements_is_refused_as_well(request_json: bytes) -> None:
    with pytest.raises(MalformedRequest, match="too many to look at"):
        read_json_request(request_json % b",".join([b"{}"] * 200_000))


def test_many_small_spans_with_ids_are_taken() -> None:
    request = read_request(
        _within_request(*[_span(span_id=bytes([1, *divmod(i, 256)]) + b"12345") for i in range(20_000)])
    )
    assert sum(group.span_count for group in request.groups) == 20_000


def test_the_answer_tells_the_most_frequent_reasons_however_many_there_are() -> None:
    intake = read_request(_within_request(*[_span(trace_id=b"t" * size) for size in range(17, 500)], BAD["empty"]))
    assert intake.rejected == 484
    assert len(intake.reason) < 1000
    assert intake.reason.endswith("for other reasons")
