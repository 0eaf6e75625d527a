"""Files of other programs, read as recordings: Jaeger's and Zipkin's JSON, the Collector's file exporter, OTLP."""

import base64
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from podtrail.cli.foreign import foreign
from podtrail.otlp import SpanView, read_request, resource_attributes, scope_name, split, write_request
from podtrail.otlp.json import read_json_request
from podtrail.recording import Damage, OtherSignal, Record, RecordingDecoder, is_document, read_recording

TRACE, SHORT_TRACE = "5b8efff798038103d269b633813fc60c", "d269b633813fc60c"
START = 1_700_000_000_000_000
"""Microseconds."""


def jaeger_span(**changes: Any) -> dict[str, Any]:
    return {
        "traceID": TRACE,
        "spanID": "eee19b7ec3c1b174",
        "operationName": "SchedulePod",
        "references": [],
        "startTime": START,
        "duration": 1500,
        "tags": [],
        "logs": [],
        "processID": "p1",
        "warnings": None,
    } | changes


def jaeger(*spans: Mapping[str, Any], trace: str = TRACE) -> dict[str, Any]:
    tags = [{"key": "hostname", "type": "string", "value": "node-1"}]
    processes = {"p1": {"serviceName": "kube-scheduler", "tags": tags}}
    return {"traceID": trace, "spans": list(spans), "processes": processes, "warnings": None}


def zipkin_span(**changes: Any) -> dict[str, Any]:
    return {
        "traceId": TRACE,
        "id": "eee19b7ec3c1b174",
        "name": "schedulepod",
        "timestamp": START,
        "duration": 1500,
        "localEndpoint": {"serviceName": "kube-scheduler", "ipv4": "10.1.2.3"},
    } | changes


def write(path: Path, document: object, **options: Any) -> Path:
    path.write_text(json.dumps(document, **options), encoding="utf-8")
    return path


def records(path: Path) -> Sequence[Record]:
    found = list(read_recording(path))
    assert not [str(item) for item in found if isinstance(item, Damage)]
    return [item for item in found if isinstance(item, Record)]


def damages(path: Path) -> list[str]:
    return [str(item) for item in read_recording(path) if isinstance(item, Damage)]


def spans(path: Path) -> list[SpanView]:
    return [SpanView(raw) for record in records(path) for group in record.intake.groups for raw in split(group.spans)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A name that says nothing of a format."""
    return tmp_path / "traces.json"


@pytest.mark.parametrize("indent", [None, 2])
def test_a_trace_that_jaeger_gave_is_a_request_with_its_spans(file: Path, indent: int | None) -> None:
    tags = [
        {"key": "span.kind", "type": "string", "value": "server"},
        {"key": "otel.scope.name", "type": "string", "value": "scheduler"},
        {"key": "nodes", "type": "int64", "value": 5},
        {"key": "share", "type": "float64", "value": "0.5"},
        {"key": "preempted", "type": "bool", "value": True},
        {"key": "raw", "type": "binary", "value": base64.b64encode(b"text").decode()},
    ]
    logs = [{"timestamp": START + 7, "fields": [{"key": "event", "type": "string", "value": "bound"}]}]
    trace = jaeger(jaeger_span(tags=tags, logs=logs, flags=1))
    write(file, {"data": [trace], "total": 0, "errors": None}, indent=indent)
    (record,) = records(file)
    (group,) = record.intake.groups
    (span,) = spans(file)
    assert resource_attributes(group.resource) == {"service.name": "kube-scheduler", "hostname": "node-1"}
    assert scope_name(group.scope) == "scheduler"
    assert (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id) == (TRACE, "eee19b7ec3c1b174", b"")
    assert (span.name, span.kind, span.flags, span.start, span.duration) == (
        "SchedulePod", 2, 1, START * 1000, 1_500_000
    )  # fmt: skip
    assert span.attributes == {"nodes": 5, "share": 0.5, "preempted": True, "raw": "text"}
    assert [(event.time, event.name) for event in span.events] == [((START + 7) * 1000, "bound")]
    assert record.arrival == span.end
    assert not record.timed


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("bool", "true", True),
        ("bool", "false", False),
        ("bool", "yes", "yes"),
        ("int64", "-5", -5),
        ("int64", "5.0", "5.0"),
        ("int64", 7, 7),
        ("float64", 7, 7.0),
        ("float64", 1 << 53, 1 << 53),
        ("string", "5", "5"),
    ],
)
def test_jaegers_tags_are_of_the_type_that_they_say_if_they_can_be(
    file: Path, kind: str, value: object, expected: object
) -> None:
    write(file, {"data": [jaeger(jaeger_span(tags=[{"key": "x", "type": kind, "value": value}]))]})
    (span,) = spans(file)
    found = span.attributes["x"]
    assert (found, type(found)) == (expected, type(expected))


def test_jaegers_references_are_parent_and_links(file: Path) -> None:
    references = [
        {"refType": "FOLLOWS_FROM", "traceID": TRACE, "spanID": "1"},
        {"refType": "CHILD_OF", "traceID": TRACE, "spanID": "2"},
        {"refType": "CHILD_OF", "traceID": "abc", "spanID": "3"},
    ]
    write(file, {"data": [jaeger(jaeger_span(references=references))]})
    (span,) = spans(file)
    assert span.parent_span_id == bytes(7) + b"\2"
    assert [(link.trace_id.hex(), link.span_id[-1], dict(link.attributes)) for link in span.links] == [
        (TRACE, 1, {"opentracing.ref_type": "follows_from"}),
        ("abc".zfill(32), 3, {"opentracing.ref_type": "child_of"}),
    ]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({"error": True}, (2, "")),
        ({"otel.status_code": "ERROR", "otel.status_description": "no room", "error": True}, (2, "no room")),
        ({"otel.status_code": "OK"}, (1, "")),
        ({}, (0, "")),
    ],
    ids=str,
)
def test_jaegers_tags_say_how_a_span_ended(file: Path, tags: dict[str, Any], expected: tuple[int, str]) -> None:
    listed = [{"key": key, "value": value} for key, value in tags.items()]
    write(file, {"data": [jaeger(jaeger_span(tags=listed))]})
    assert spans(file)[0].status == expected


def test_spans_of_zipkin_keep_kind_status_endpoints_and_annotations(file: Path) -> None:
    span = zipkin_span(
        parentId="7",
        kind="CLIENT",
        remoteEndpoint={"serviceName": "apiserver", "ipv6": "::1", "port": 6443},
        annotations=[{"timestamp": START + 1, "value": "sent"}],
        tags={"error": "refused", "nodes": "5"},
        shared=True,
        debug=True,
    )
    write(file, [span])
    (record,) = records(file)
    (found,) = spans(file)
    assert resource_attributes(record.intake.groups[0].resource) == {"service.name": "kube-scheduler"}
    assert (found.kind, found.status, found.parent_span_id[-1]) == (3, (2, "refused"), 7)
    assert found.attributes == {
        "nodes": "5",
        "net.host.ip": "10.1.2.3",
        "net.peer.ip": "::1",
        "net.peer.port": 6443,
        "peer.service": "apiserver",
        "zipkin.shared": True,
    }
    assert [(event.time, event.name) for event in found.events] == [((START + 1) * 1000, "sent")]


def test_ids_of_64_bits_are_filled_up(file: Path) -> None:
    for document in (
        [zipkin_span(traceId=SHORT_TRACE)],
        {"data": [jaeger(jaeger_span(traceID=SHORT_TRACE, spanID="e19b7ec3c1b174"))]},
    ):
        write(file, document)
        assert spans(file)[0].trace_id == bytes(8) + bytes.fromhex(SHORT_TRACE)


def test_neighbours_of_one_trace_are_one_request_and_lists_of_traces_are_read(file: Path) -> None:
    other = "f" * 32
    nested = [[zipkin_span(id="1"), zipkin_span(id="2")], [zipkin_span(traceId=other)]]
    write(file, nested)
    assert [sum(group.span_count for group in record.intake.groups) for record in records(file)] == [2, 1]


def test_what_was_listed_newest_first_comes_in_the_order_of_time(file: Path) -> None:
    traces = [jaeger(jaeger_span(traceID=f"{at}f", startTime=START + at)) for at in (9, 1, 5)]
    write(file, {"data": traces})
    assert [span.trace_id[-1] >> 4 for span in spans(file)] == [1, 5, 9]
    arrivals = [record.arrival for record in records(file)]
    assert arrivals == sorted(set(arrivals))


def test_a_request_in_otlp_json_may_stand_in_many_lines(file: Path, request_of_one_span: bytes) -> None:
    from podtrail.otlp.json import write_json_request

    groups = read_request(request_of_one_span).groups
    file.write_text(json.dumps(json.loads(write_json_request(groups)), indent=4), encoding="utf-8")
    (record,) = records(file)
    assert write_request(record.intake.groups) == request_of_one_span


@pytest.fixture
def request_of_one_span() -> bytes:
    """A serialized request."""
    from podtrail.otlp import Group, encode_span, frame, resource_header, scope_header

    raw = encode_span(trace_id=bytes(15) + b"\1", span_id=bytes(7) + b"\1", name="a", start=1, end=2)
    return write_request([Group(resource_header({"a": 1}), scope_header("s"), bytes(15) + b"\1", frame([raw]), 1)])


@pytest.mark.parametrize("form", ["json", "proto"])
@pytest.mark.parametrize("compression", ["", "zstd"])
def test_all_forms_of_the_collectors_file_exporter_are_read(
    tmp_path: Path, request_of_one_span: bytes, form: str, compression: str
) -> None:
    from podtrail.otlp.json import write_json_request

    groups = read_request(request_of_one_span).groups
    message = write_json_request(groups) if form == "json" else request_of_one_span
    if compression:
        message = zstandard.ZstdCompressor().compress(message)
    framed = len(message).to_bytes(4, "big") + message
    path = tmp_path / "data"
    path.write_bytes((message + b"\n" if form == "json" and not compression else framed) * 3)
    assert [write_request(record.intake.groups) for record in records(path)] == [request_of_one_span] * 3


def test_documents_may_be_compressed(tmp_path: Path) -> None:
    path = tmp_path / "traces.json.gz"
    path.write_bytes(gzip.compress(json.dumps([zipkin_span()]).encode()))
    assert len(spans(path)) == 1


def test_what_is_no_trace_is_named_by_its_byte_and_the_rest_is_used(file: Path) -> None:
    write(file, [{"a": 1, "b": 2}, zipkin_span()])
    assert damages(file) == [f"{file} at byte 1: neither a trace nor a span: an object with the keys a, b"]
    assert sum(isinstance(item, Record) for item in read_recording(file)) == 1


@pytest.mark.parametrize("other", [{"processes": {}, "spans": "none"}, {"spans": []}])
def test_what_only_looks_like_jaegers_is_none_of_its_traces(file: Path, other: dict[str, Any]) -> None:
    write(file, {"data": [other, jaeger(jaeger_span())]})
    (damage,) = damages(file)
    assert "neither a trace nor a span" in damage
    assert sum(isinstance(item, Record) for item in read_recording(file)) == 1


def test_spans_that_are_none_are_rejected_alone(file: Path) -> None:
    write(file, {"data": [jaeger(jaeger_span(), jaeger_span(traceID="no hex"), jaeger_span(spanID=None))]})
    (record,) = records(file)
    assert (record.intake.rejected, sum(group.span_count for group in record.intake.groups)) == (2, 1)
    assert record.intake.reason


@pytest.mark.parametrize(
    "span",
    [
        {"tags": "none", "references": 3, "logs": [None, {"fields": {"a": 1}, "timestamp": "soon"}]},
        {"startTime": None, "duration": -1, "processID": ["p1"], "flags": "x"},
        {"startTime": 1e300, "tags": [{"key": None, "type": "int64", "value": {"deep": [1, None, 1 << 80]}}]},
        {"processID": "unknown", "operationName": 7, "tags": [{"key": "x", "type": "float64", "value": "nan"}]},
    ],
    ids=str,
)
def test_fields_of_another_shape_are_no_failure(file: Path, span: dict[str, Any]) -> None:
    write(file, {"data": [jaeger(jaeger_span(**span))]})
    assert len(spans(file)) == 1


def test_a_document_that_is_cut_off_gives_what_is_whole(file: Path) -> None:
    whole = json.dumps([zipkin_span(), zipkin_span(traceId="f")])
    file.write_text(whole[:-30], encoding="utf-8")
    assert damages(file) == [f"{file} at byte {whole.index('{', 5 + len(whole) // 2 - 10)}: {CUT}"]
    assert sum(isinstance(item, Record) for item in read_recording(file)) == 1


REQUEST = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}]},
            "scopeSpans": [
                {
                    "scope": {"name": "s"},
                    "spans": [
                        {
                            "traceId": TRACE,
                            "spanId": "eee19b7ec3c1b174",
                            "parentSpanId": "aee19b7ec3c1b175",
                            "name": "SchedulePod",
                            "kind": 2,
                            "startTimeUnixNano": "1700000000000000000",
                            "endTimeUnixNano": "1700000001000000000",
                            "links": [{"traceId": TRACE, "spanId": "bee19b7ec3c1b176"}],
                        }
                    ],
                }
            ],
        }
    ]
}


def base64_ids(text: str) -> str:
    """Write hex ids as Tempo does."""
    return re.sub(
        r'"([0-9a-f]{32}|[0-9a-f]{16})"', lambda id: f'"{base64.b64encode(bytes.fromhex(id[1])).decode()}"', text
    )


def old_names(text: str) -> str:
    return text.replace("scopeSpans", "instrumentationLibrarySpans").replace('"scope"', '"instrumentationLibrary"')


SNAKE = re.sub(r'"\w+":', lambda key: re.sub("([A-Z])", r"_\1", key[0]).lower(), json.dumps(REQUEST))
LINE = json.dumps(REQUEST)
BATCHES = LINE.replace("resourceSpans", "batches")
PROTOBUF = write_request(read_json_request(LINE.encode()).groups)
ONE_REQUEST = {
    "an array": f"[{LINE}]".encode(),
    "an array in snake_case": f"[{SNAKE}]".encode(),
    "an array over lines": json.dumps([REQUEST], indent=2).encode(),
    "in snake_case over lines": json.dumps(json.loads(SNAKE), indent=2).encode(),
    "behind an empty line": f"\n{LINE}".encode(),
    "over lines, behind an empty one": b"\n" + json.dumps(REQUEST, indent=2).encode(),
    "protobuf without a length": PROTOBUF,
    "protobuf without a length, gzip": gzip.compress(PROTOBUF),
    "protobuf without a length, zstd": zstandard.ZstdCompressor().compress(PROTOBUF),
    "Tempo": base64_ids(BATCHES).encode(),
    "Tempo with the names of old": base64_ids(old_names(BATCHES)).encode(),
    "Tempo with hex ids": BATCHES.encode(),
    "Tempo's second API": f'{{"trace": {base64_ids(LINE)}}}'.encode(),
    "Tempo over lines": json.dumps(json.loads(base64_ids(BATCHES)), indent=1).encode(),
    "base64 ids": base64_ids(LINE).encode(),
    "base64 ids in snake_case": base64_ids(SNAKE).encode(),
    "base64 ids in an array": f"[{base64_ids(LINE)}]".encode(),
}


@pytest.mark.parametrize("form", ONE_REQUEST)
@pytest.mark.parametrize("name", ["traces.json", "traces.otlp", "traces"])
def test_a_request_is_read_in_each_form_in_which_programs_write_one(tmp_path: Path, form: str, name: str) -> None:
    (tmp_path / name).write_bytes(ONE_REQUEST[form])
    (record,) = records(tmp_path / name)
    assert record.intake.groups == read_json_request(LINE.encode()).groups
    assert foreign(tmp_path / name) == ""


@pytest.mark.parametrize("write", [json.dumps, lambda trace: json.dumps(trace, indent=2)], ids=["line", "over lines"])
@pytest.mark.parametrize("key", ["traceID", "spans", "processes", "warnings"])
def test_a_trace_of_jaegers_without_data_around_it(file: Path, key: str, write: Callable[[Any], str]) -> None:
    trace = jaeger(jaeger_span(), jaeger_span(spanID="1"))
    file.write_text(write({key: trace[key], **trace}), encoding="utf-8")
    assert [span.span_id.hex()[-1] for span in spans(file)] == ["4", "1"]
    (record,) = records(file)
    assert resource_attributes(record.intake.groups[0].resource)["service.name"] == "kube-scheduler"


OTHERS = {
    "logs": '{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}]}]}]}',
    "metrics": '{"resource_metrics": []}',
    "profiles": '{"dictionary": {}, "resourceProfiles": []}',
}


@pytest.mark.parametrize("form", ["lines", "lines, gzip", "array", "over lines", "framed"])
def test_requests_of_other_signals_are_told_apart_and_skipped(tmp_path: Path, form: str) -> None:
    path = tmp_path / "all.jsonl"
    texts = [OTHERS["logs"], OTHERS["logs"], LINE, OTHERS["metrics"], OTHERS["profiles"], LINE]
    lines = "\n".join(texts).encode()
    path.write_bytes(
        {
            "lines": lines,
            "lines, gzip": gzip.compress(lines),
            "array": f"[{','.join(texts)}]".encode(),
            "over lines": json.dumps(list(map(json.loads, texts)), indent=2).encode(),
            "framed": b"".join(len(text).to_bytes(4, "big") + text.encode() for text in texts),
        }[form]
    )
    found = list(read_recording(path))
    assert sum(isinstance(item, Record) for item in found) == 2
    assert Counter(item.signal for item in found if isinstance(item, OtherSignal)) == {
        "logs": 2,
        "metrics": 1,
        "profiles": 1,
    }
    assert len(found) == 6
    assert foreign(path) == ""


@pytest.mark.parametrize(
    "content",
    [b"\n\x04no request", b"\x0a\x7b\x0a", PROTOBUF[:-3], b"\x0a" * 300, b'{\n "spans": 3}', b'{\n"spans": []}', b"\n"],
)
def test_what_only_begins_like_one_request_is_damage(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert not [item for item in read_recording(file) if isinstance(item, Record)]
    assert bool(damages(file)) is bool(content.strip())


CUT = "cut off: the document does not end"


@pytest.mark.parametrize("document", ["[]", '{"data": []}', '{"data": null, "errors": null}', "[1, [2]]"])
def test_a_document_without_traces_is_said_to_be_one(file: Path, document: str) -> None:
    file.write_text(document, encoding="utf-8")
    assert damages(file) == [f"{file} at byte 0: a JSON document without traces"]


def test_a_bomb_of_brackets_is_given_up(file: Path) -> None:
    file.write_bytes(b"[" * 5_000_000)
    assert damages(file) == [f"{file} at byte 0: containers nested 64 deep and no trace in them"]


def test_an_object_too_large_to_hold_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'[{"a": "')
        for _ in range(70):
            file.write(b"a" * (1 << 20))
        file.write(b'"},' + json.dumps(zipkin_span()).encode() + b"]")
    (damage,) = damages(path)
    assert "at byte 1: an object of 73400329 bytes, more than 67108864" in damage
    assert sum(isinstance(item, Record) for item in read_recording(path)) == 1


@given(st.data())
def test_however_the_bytes_come_the_requests_are_the_same(data: st.DataObject) -> None:
    name = data.draw(st.text(max_size=10))
    document = [[zipkin_span(name=name), zipkin_span(traceId="a", tags={'"': '\\"{[', "b": "}"})], [zipkin_span()]]
    raw = json.dumps(document, indent=data.draw(st.sampled_from([None, 1]))).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=5)))
    decoder = RecordingDecoder("x.json")
    found: list[Record | Damage] = []
    for begin, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        found += decoder.feed(raw[begin:end])
    found += decoder.finish()
    assert [sum(g.span_count for g in r.intake.groups) for r in found if isinstance(r, Record)] == [1, 1, 1]
    assert len(found) == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.data())
def test_whatever_stands_in_the_fields_nothing_is_lost_without_a_word(data: st.DataObject) -> None:
    span: dict[str, Any] = data.draw(st.sampled_from([jaeger_span(), zipkin_span()]))
    for key in data.draw(st.lists(st.sampled_from(sorted(span)), max_size=3)):
        span[key] = data.draw(JSON)
    document = {"data": [jaeger(span)]} if "spanID" in span else [span]
    decoder = RecordingDecoder("x.json")
    found = [*decoder.feed(json.dumps(document).encode()), *decoder.finish()]
    spans = sum(group.span_count for item in found if isinstance(item, Record) for group in item.intake.groups)
    rejected = sum(item.intake.rejected for item in found if isinstance(item, Record))
    assert spans + rejected == 1 or any(isinstance(item, Damage) for item in found)


def test_blank_lines_without_end_take_no_longer_than_other_bytes(in_time: None) -> None:
    assert not is_document(b"{" + b"\n" * 1_000_000)
    assert is_document(b"{ \r\n\n\t  " + b'"a": 1}')
