"""OTLP JSON as others write it: what is read, what costs a span, what costs the request."""

import json
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podtrail.otlp import Intake, MalformedRequest, SpanView, read_request, split, write_request
from podtrail.otlp.json import read_json_request, write_json_request
from tests.sizes import large

SOUND: dict[str, Any] = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174"}


def _request(*spans: Any, scope: Any = None, resource: Any = None) -> bytes:
    scope_spans = {"scope": scope, "spans": list(spans)}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope_spans]}]}).encode()


def _read(**fields: Any) -> SpanView:
    intake = read_json_request(_request({**SOUND, **fields}))
    assert (intake.rejected, intake.reason) == (0, "")
    return SpanView(split(intake.groups[0].spans)[0])


def _value(value: Any) -> Any:
    return _read(attributes=[{"key": "it", "value": value}]).attributes["it"]


def test_ids_are_hex_in_either_case() -> None:
    upper = _read(traceId=SOUND["traceId"].upper(), spanId="EEE19b7ec3c1B174", parentSpanId="")
    assert upper.trace_id.hex() == SOUND["traceId"]
    assert upper.span_id.hex() == SOUND["spanId"]
    assert upper.parent_span_id == b""


@pytest.mark.parametrize("value", [1544712660000000000, "1544712660000000000", "1.54471266e18", 1544712660000000000.0])
def test_a_64_bit_integer_is_a_string_or_a_number(value: object) -> None:
    assert _read(startTimeUnixNano=value).start == 1544712660000000000
    assert _value({"intValue": value}) == 1544712660000000000


def test_integers_reach_the_ends_of_their_ranges() -> None:
    assert _read(endTimeUnixNano=str(2**64 - 1)).end == 2**64 - 1
    assert _value({"intValue": str(-(2**63))}) == -(2**63)
    assert _read(flags=2**32 - 1).flags == 2**32 - 1
    assert _read(kind=99).kind == 99


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ({"doubleValue": 1}, 1.0),
        ({"doubleValue": "-2.5"}, -2.5),
        ({"doubleValue": "Infinity"}, float("inf")),
        ({"doubleValue": "-Infinity"}, -float("inf")),
        ({"bytesValue": "+/8="}, b"\xfb\xff"),
        ({"bytesValue": "-_8"}, b"\xfb\xff"),
        ({"bytesValue": ""}, b""),
        ({"boolValue": False}, False),
        ({"stringValue": ""}, ""),
        ({"stringValue": None, "intValue": "7"}, 7),
        ({}, None),
        (None, None),
        ({"arrayValue": {}}, []),
        ({"kvlistValue": {"values": [{"key": "a", "value": {"arrayValue": {"values": [{}]}}}]}}, {"a": [None]}),
    ],
)
def test_every_value_is_legal(text: object, value: object) -> None:
    assert _value(text) == value


def test_not_a_number_is_a_string() -> None:
    assert str(_value({"doubleValue": "NaN"})) == "nan"


def test_unknown_keys_are_ignored() -> None:
    span = _read(colour={"a": [1]}, status={"code": 2, "shade": 3}, name="named")
    assert (span.status.code, span.name) == (2, "named")
    raw = b'{"arrivalTimeUnixNano":"5","other":{"a":1,"a":2},"resourceSpans":[]}'
    assert read_json_request(raw) == Intake([], 0, "")


@pytest.mark.parametrize(
    "raw", [b"{}", b" {} \n", b'{"resourceSpans":null}', b'{"resourceSpans":[{"scopeSpans":[{}]}]}']
)
def test_nothing_sent_is_nothing_read(raw: bytes) -> None:
    assert read_json_request(raw) == Intake([], 0, "")


BAD = [
    ({"traceId": "xyz"}, "traceId that is not hex"),
    ({"traceId": "5b8efff798038103 d269b633813fc60c"}, "traceId that is not hex"),
    ({"traceId": "W47/95gDgQPSabYzgT/GDA=="}, "traceId that is not hex"),
    ({"traceId": "5b8efff7"}, "trace_id of 4 bytes instead of 16"),
    ({"traceId": 5}, "traceId that is a number instead of a string"),
    ({"spanId": None}, "span_id of 0 bytes instead of 8"),
    ({"kind": "SERVER"}, "kind that is neither an integer nor a name such as SPAN_KIND_INTERNAL"),
    ({"kind": True}, "kind that is a boolean instead of an integer"),
    ({"kind": 2**31}, "kind out of range"),
    ({"name": "a", "links": [{"traceId": "", "trace_id": ""}]}, "Link that has trace_id in two spellings"),
    ({"status": []}, "Status that is a list instead of an object"),
    ({"name": 7}, "name that is a number instead of a string"),
    ({"name": "\ud83d"}, "name with half of a surrogate pair"),
    ({"startTimeUnixNano": 2**64}, "startTimeUnixNano out of range"),
    ({"startTimeUnixNano": "-1"}, "startTimeUnixNano out of range"),
    ({"startTimeUnixNano": "1 000"}, "startTimeUnixNano that is no integer"),
    ({"startTimeUnixNano": "٣"}, "startTimeUnixNano that is no integer"),
    ({"startTimeUnixNano": 0.5}, "startTimeUnixNano that is no integer"),
    ({"flags": 2**32}, "flags out of range"),
    ({"attributes": {}}, "attributes that is an object instead of a list"),
    ({"attributes": [None]}, "KeyValue that is null instead of an object"),
    ({"attributes": [{"value": {"boolValue": "true"}}]}, "boolValue that is a string instead of a boolean"),
    ({"attributes": [{"value": {"bytesValue": "a"}}]}, "bytesValue that is not base64"),
    ({"attributes": [{"value": {"doubleValue": "1,5"}}]}, "doubleValue that is no number"),
    ({"attributes": [{"value": {"intValue": 1, "boolValue": True}}]}, "AnyValue that has both boolValue and intValue"),
    ({"links": [{"spanId": "0"}]}, "spanId that is not hex"),
    ({"events": [{"timeUnixNano": "never"}]}, "timeUnixNano that is no integer"),
]


@pytest.mark.parametrize(("fields", "reason"), BAD)
def test_a_span_with_a_bad_field_is_rejected_alone(fields: dict[str, Any], reason: str) -> None:
    intake = read_json_request(_request(SOUND, {**SOUND, **fields}, SOUND))
    assert (intake.rejected, intake.reason) == (1, f"1 with {reason}")
    assert [group.span_count for group in intake.groups] == [2]


@pytest.mark.parametrize("number", ["1e999", "9" * 5000, "-" + "9" * 5000])
def test_a_number_beyond_all_ranges_costs_its_span(number: str) -> None:
    raw = _request(SOUND, {**SOUND, "startTimeUnixNano": 12321}).replace(b"12321", number.encode())
    assert read_json_request(raw)[1:3] == (1, "1 with startTimeUnixNano out of range")


@pytest.mark.parametrize("levels", [48, 60, 120, 200])
def test_a_span_nested_too_deep_is_rejected_alone(levels: int) -> None:
    value: Any = {"intValue": "1"}
    for _ in range(levels):
        value = {"arrayValue": {"values": [value]}}
    intake = read_json_request(_request(SOUND, {**SOUND, "attributes": [{"key": "deep", "value": value}]}))
    assert intake.rejected == 1
    assert "nesting too deep" in intake.reason
    assert [group.span_count for group in intake.groups] == [1]


@pytest.mark.parametrize("span", [None, 3, "span", [], True])
def test_a_span_that_is_no_object_is_rejected_alone(span: Any) -> None:
    intake = read_json_request(_request(SOUND, span))
    assert intake.rejected == 1
    assert [group.span_count for group in intake.groups] == [1]


def test_a_key_that_stands_twice_in_a_span_costs_it() -> None:
    twice = _request(SOUND, {**SOUND, "name": "a"}).replace(b'"name"', b'"name": "b", "name"')
    intake = read_json_request(twice)
    assert (intake.rejected, intake.reason) == (1, "1 with Span that has a key twice")


def test_a_bad_resource_or_scope_costs_its_spans() -> None:
    of_resource = read_json_request(_request(SOUND, SOUND, resource={"attributes": 3}))
    assert of_resource == Intake([], 2, "2 with a resource with attributes that is a number instead of a list")
    of_scope = read_json_request(_request(SOUND, SOUND, scope={"name": 3}))
    assert of_scope == Intake([], 2, "2 with a scope with name that is a number instead of a string")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "line 1 column 1"),
        (b'{"resourceSpans":[}', "line 1 column 19"),
        (b"{}\n{}", "line 2 column 1"),
        (b'{"a":"\xff"}', "not UTF-8 at byte 6"),
        (b"\xef\xbb\xbf{}", "line 1 column 1"),
        ("{}".encode("utf-16"), "not UTF-8 at byte 0"),
        (b'{"a":NaN}', "NaN without quotes"),
        (b"[         " * 100_000, "nested too deep"),
        (b"[]", "the request is a list instead of an object"),
        (b"null", "the request is null instead of an object"),
        (b'{"resourceSpans":{}}', "resourceSpans is an object instead of a list"),
        (b'{"resourceSpans":[{},3]}', r"resourceSpans\[1\] is a number instead of an object"),
        (b'{"resourceSpans":[{"scopeSpans":""}]}', r"resourceSpans\[0\].scopeSpans is a string instead of a list"),
        (b'{"resourceSpans":[{"scopeSpans":[{"spans":true}]}]}', r"scopeSpans\[0\].spans is a boolean"),
        (b'{"resourceSpans":[],"resourceSpans":[]}', "the request has a key twice"),
        (b'{"resourceSpans":[{"scopeSpans":[{"spans":[],"spans":[]}]}]}', r"scopeSpans\[0\] has a key twice"),
    ],
)
def test_what_is_no_request_is_refused_with_its_place(raw: bytes, message: str) -> None:
    with pytest.raises(MalformedRequest, match=message):
        read_json_request(raw)


_ODD: list[Any] = [None, True, -1, 1.5, "x", "\ud800", [], [None], {}, {"values": 3}, 2**70, "NaN"]


def _damage(document: Any, random: Random) -> None:
    """Put an odd value at a random place below the lists of spans."""
    spans = [
        (scope["spans"], at)
        for item in document["resourceSpans"]
        for scope in item["scopeSpans"]
        for at in range(len(scope["spans"]))
    ]
    parent, key = random.choice(spans)
    while isinstance(parent[key], (dict, list)) and parent[key] and random.random() < 0.8:
        parent = parent[key]
        key = random.choice(list(parent)) if isinstance(parent, dict) else random.randrange(len(parent))
    parent[key] = random.choice(_ODD)


def test_a_damaged_span_costs_no_other(generated: list[ExportTraceServiceRequest]) -> None:
    random = Random(22)
    for sent in generated[:1500]:
        document = json.loads(write_json_request(read_request(sent.SerializeToString()).groups))
        count = sum(len(scope["spans"]) for item in document["resourceSpans"] for scope in item["scopeSpans"])
        _damage(document, random)
        intake = read_json_request(json.dumps(document).encode())
        assert intake.rejected <= 1
        assert sum(group.span_count for group in intake.groups) == count - intake.rejected
        ExportTraceServiceRequest.FromString(write_request(intake.groups))


@settings(max_examples=large(40, 100))
@given(sent=..., random=st.randoms(use_true_random=False))
def test_damaged_text_is_read_or_malformed(sent: ExportTraceServiceRequest, random: Random) -> None:
    text = bytearray(write_json_request(read_request(sent.SerializeToString()).groups))
    for _ in range(random.randrange(1, 4)):
        text[random.randrange(len(text))] = random.choice(b'{}[]",:0a\x80\\')
    try:
        intake = read_json_request(bytes(text))
    except MalformedRequest:
        return
    ExportTraceServiceRequest.FromString(write_request(intake.groups))


@given(raw=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode()))
def test_arbitrary_bytes_are_read_or_malformed(raw: bytes) -> None:
    with suppress(MalformedRequest):
        read_json_request(raw)
