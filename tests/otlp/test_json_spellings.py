"""OTLP JSON in protobuf's spelling and with names for enums, which the Collector reads at every level, too."""

import json
import re

import pytest

from podtrail.otlp import MalformedRequest, write_request
from podtrail.otlp.json import read_json_request

CAMEL_CASE = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "a", "value": {"stringValue": "b"}}], "droppedAttributesCount": 1},
            "schemaUrl": "s",
            "scopeSpans": [
                {
                    "scope": {"name": "n"},
                    "schemaUrl": "s",
                    "spans": [
                        {
                            "traceId": "0102030405060708090a0b0c0d0e0f10",
                            "spanId": "0102030405060708",
                            "parentSpanId": "0102030405060709",
                            "kind": 2,
                            "startTimeUnixNano": "17",
                            "endTimeUnixNano": "18",
                            "attributes": [
                                {"key": "k", "value": {"intValue": "7"}},
                                {"key": "l", "value": {"kvlistValue": {"values": [{"key": "c"}]}}},
                            ],
                            "events": [{"timeUnixNano": "17", "name": "e", "droppedAttributesCount": 2}],
                            "links": [{"traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708"}],
                            "status": {"code": 2},
                        }
                    ],
                }
            ],
        }
    ]
}


def spelt(key: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), key)


def respelt(value: object, every: int = 1, seen: list[int] | None = None) -> object:
    """Return the value with each so-manieth key in snake_case."""
    seen = [0] if seen is None else seen
    if isinstance(value, dict):
        written = {}
        for key, inner in value.items():
            seen[0] += 1
            written[spelt(key) if seen[0] % every == 0 else key] = respelt(inner, every, seen)
        return written
    return [respelt(each, every, seen) for each in value] if isinstance(value, list) else value


def read(request: object) -> bytes:
    intake = read_json_request(json.dumps(request).encode())
    assert (intake.rejected, intake.reason) == (0, "")
    return write_request(intake.groups)


@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_snake_case_and_mixed_spelling_read_the_same(every: int) -> None:
    assert read(respelt(CAMEL_CASE, every)) == read(CAMEL_CASE)


def test_enums_by_name_read_the_same() -> None:
    text = json.dumps(CAMEL_CASE).replace('"kind": 2', '"kind": "SPAN_KIND_SERVER"')
    assert read(json.loads(text.replace('"code": 2', '"code": "STATUS_CODE_ERROR"'))) == read(CAMEL_CASE)


def test_names_from_before_otlp_0_19_read_the_same() -> None:
    text = json.dumps(CAMEL_CASE).replace('"scopeSpans"', '"instrumentationLibrarySpans"')
    assert read(json.loads(text.replace('"scope"', '"instrumentationLibrary"'))) == read(CAMEL_CASE)
    assert read(respelt(json.loads(text.replace('"scope"', '"instrumentationLibrary"')))) == read(CAMEL_CASE)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"resourceSpans": [{}], "resource_spans": [{}]}, "the request has both resourceSpans and resource_spans"),
        (
            {"resourceSpans": [{"scope_spans": [{}], "scopeSpans": [{}]}]},
            "resourceSpans[0] has both scopeSpans and scope_spans",
        ),
    ],
)
def test_a_list_in_both_spellings_is_refused(request_: object, reason: str) -> None:
    with pytest.raises(MalformedRequest, match=re.escape(reason)):
        read_json_request(json.dumps(request_).encode())
