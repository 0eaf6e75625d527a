"""Requests in OTLP JSON."""

import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any

from podtrail.otlp import MalformedRequest, read_request, write_request
from podtrail.otlp.json import read_json_request, write_json_request
from tools.fuzz.parser import Parser
from tools.fuzz.parsers.requests import seeds as protobuf_seeds
from tools.fuzz.trees import mutate_tree


def check(data: bytes) -> None:
    """Read a request; every span is accepted or counted, and what is accepted comes again as the same."""
    try:
        intake = read_json_request(data)
    except MalformedRequest as error:
        assert str(error), "refused without a word"
        return
    accepted = sum(group.span_count for group in intake.groups)
    request = json.loads(data)
    assert accepted + intake.rejected == _spans_in(request), "spans are neither accepted nor counted"
    assert intake.other_signal or accepted or intake.rejected or _has_no_more(request), "skipped without being counted"
    assert bool(intake.rejected) == bool(intake.reason), "rejected without a reason, or the reverse"
    again = read_json_request(write_json_request(intake.groups))
    assert not again.rejected, f"what was accepted is refused when it comes again: {again.reason}"
    assert write_request(again.groups) == write_request(intake.groups), "what was accepted comes again as another"


def _spans_in(request: Any) -> int:
    """Count spans in each spelling; a request with two of one list is refused before."""
    return sum(
        len(scope.get("spans") or ())
        for resource in request.get("resourceSpans") or request.get("resource_spans") or ()
        for key in ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
        for scope in resource.get(key) or ()
    )


def _has_no_more(request: Any) -> bool:
    """Tell whether a request without spans holds nothing else that a sender may miss."""
    return not request or "resourceSpans" in request or "resource_spans" in request


def mutate(data: bytes, random: Random) -> bytes:
    """Change one thing in the tree; now and then write a number as text, or the text with other spaces."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return data + b"}"
    text = json.dumps(mutate_tree(tree, random), ensure_ascii=random.random() < 0.5, indent=random.choice((None, 0)))
    return text.encode("utf-8", "surrogatepass")


def seeds() -> Iterator[bytes]:
    """Yield requests with all that OTLP has."""
    for seed in protobuf_seeds():
        yield write_json_request(read_request(seed).groups)
    values = [
        {"boolValue": True}, {"intValue": "7"}, {"doubleValue": "NaN"}, {"bytesValue": "AAEC"},
        {"arrayValue": {"values": [{"stringValue": "é"}]}}, {"kvlistValue": {"values": [{"key": "k"}]}},
    ]  # fmt: skip
    span = {
        "traceId": "1" * 32, "spanId": "2" * 16, "kind": 2, "startTimeUnixNano": "1", "endTimeUnixNano": 2,
        "attributes": [{"key": str(number), "value": value} for number, value in enumerate(values)],
    }  # fmt: skip
    request = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    yield request.encode()
    snake_case = re.sub(r'"(\w+)":', lambda key: re.sub("[A-Z]", lambda c: "_" + c[0].lower(), key[0]), request)
    yield snake_case.replace('"kind": 2', '"kind": "SPAN_KIND_SERVER"').encode()
    yield request.replace("scopeSpans", "instrumentationLibrarySpans").encode()
    yield b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "s"}}]}]}]}'
    yield b'{"resource_metrics": [{"scope_metrics": []}], "resourceSpans": []}'


PARSER = Parser(
    check, seeds, mutate,
    words=(
        b'"resource_spans"', b'"scope_spans"', b'"trace_id"', b'"kind"', b'"SPAN_KIND_SERVER"', b'"STATUS_CODE_OK"',
        b'"resourceSpans"', b'"scopeSpans"', b'"spans"', b'"traceId"', b'"spanId"', b'"attributes"', b'"key"',
        b'"value"', b'"arrayValue"', b'"kvlistValue"', b'"values"', b'"intValue"', b'"doubleValue"', b'"bytesValue"',
        b'"links"', b'"events"', b'"status"', b'"resource"', b'"scope"', b"1e999", b"-0", b"null", b"\\ud800",
        b'"resourceLogs"', b'"resource_metrics"', b'"instrumentationLibrarySpans"', b'"instrumentationLibrary"',
    ),
)  # fmt: skip
