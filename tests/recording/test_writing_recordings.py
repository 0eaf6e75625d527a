"""Recordings written: formats by name, and upstream classes read them."""

import gzip
import json
from pathlib import Path

import pytest
import zstandard
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podtrail.otlp import read_request
from podtrail.recording import RecordingWriter

ARRIVAL = 1_795_260_013_992_798_052


def request() -> bytes:
    made = ExportTraceServiceRequest()
    span = made.resource_spans.add().scope_spans.add().spans.add(name="SchedulePod", flags=0x301)
    span.trace_id, span.span_id = bytes(range(1, 17)), bytes(range(1, 9))
    return made.SerializeToString()


def write(path: Path) -> bytes:
    with RecordingWriter(path) as writer:
        writer.write(read_request(request()).groups, ARRIVAL)
    return path.read_bytes()


@pytest.mark.parametrize("name", ["r", "r.txt", "r.gz", "r.jsonl.xz"])
def test_a_name_that_says_no_format_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ends in \.jsonl or \.otlp"):
        RecordingWriter(tmp_path / name)


def test_protobuf_is_the_request_as_it_came_with_the_arrival_behind(tmp_path: Path) -> None:
    raw = write(tmp_path / "r.otlp")
    assert int.from_bytes(raw[:4], "big") == len(raw) - 4
    assert raw[4:].startswith(request())
    assert raw[4 + len(request()) :] == b"\xc1\x3e" + ARRIVAL.to_bytes(8, "little")
    assert ExportTraceServiceRequest.FromString(raw[4:]).resource_spans[0].scope_spans[0].spans[0].flags == 0x301


def test_json_is_one_line_with_the_arrival_as_digits(tmp_path: Path) -> None:
    raw = write(tmp_path / "r.jsonl")
    assert raw.endswith(b"}\n")
    assert raw.count(b"\n") == 1
    assert json.loads(raw)["arrivalTimeUnixNano"] == str(ARRIVAL)
    span = json.loads(raw)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert span["traceId"] == bytes(range(1, 17)).hex()


def test_compressed_files_are_what_the_usual_tools_read(tmp_path: Path) -> None:
    plain = write(tmp_path / "r.jsonl")
    assert gzip.decompress(write(tmp_path / "r.jsonl.gz")) == plain
    assert zstandard.ZstdDecompressor().decompress(write(tmp_path / "r.jsonl.zst")) == plain


def test_a_long_recording_reaches_the_disk_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "r.otlp"
    groups = read_request(request()).groups
    with RecordingWriter(path) as writer:
        for arrival in range(20_000):
            writer.write(groups, ARRIVAL + arrival)
        assert path.stat().st_size > 1 << 20
