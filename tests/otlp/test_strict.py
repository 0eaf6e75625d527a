"""The check of a request: as strict as the upstream parser, and without its cost in memory."""

import subprocess
import sys

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from podtrail.otlp import read_request
from podtrail.otlp.request import read_in_python
from podtrail.otlp.strict import check
from tests.sizes import large


def is_sound(raw: bytes) -> bool:
    try:
        ExportTraceServiceRequest.FromString(raw)
    except DecodeError:
        return False
    return True


def passes(raw: bytes) -> bool:
    try:
        check(raw)
    except DecodeError:
        return False
    return True


@settings(max_examples=large(50, 100))
@given(sent=..., data=st.data())
def test_refuses_of_damaged_requests_what_upstream_refuses(
    sent: ExportTraceServiceRequest, data: st.DataObject
) -> None:
    raw = bytearray(sent.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        if raw:
            at = data.draw(st.integers(0, len(raw) - 1))
            raw[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    assert passes(bytes(raw)) == is_sound(bytes(raw))


@given(raw=st.binary(max_size=64))
def test_refuses_of_any_bytes_what_upstream_refuses(raw: bytes) -> None:
    assert passes(raw) == is_sound(raw)


def request_of(*times: tuple[int, int]) -> bytes:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    spans.extend(
        Span(trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=start, end_time_unix_nano=end)
        for start, end in times
    )
    return request.SerializeToString()


@pytest.mark.parametrize(
    ("times", "odd"),
    [
        ([(1, 2), (5, 5), (2**64 - 2, 2**64 - 1)], 0),
        ([(1, 2), (3, 2)], 1),
        ([(0, 2), (1, 2)], 1),
        ([(1, 0), (1, 2), (0, 0), (2, 1)], 3),
        ([], 0),
    ],
)
def test_counts_spans_whose_times_tell_no_duration_and_lets_them_pass(times: list[tuple[int, int]], odd: int) -> None:
    intake = read_request(request_of(*times))
    assert intake.odd_times == odd
    assert intake.rejected == 0
    assert sum(group.span_count for group in intake.groups) == len(times)


def test_a_start_of_zero_that_is_written_counts_as_one_that_is_not() -> None:
    raw = request_of((7, 9))
    assert raw.count((7).to_bytes(8, "little")) == 1
    written = raw.replace((7).to_bytes(8, "little"), bytes(8))
    assert read_request(written).odd_times == read_in_python(written).odd_times == 1


_BOMB = """
import resource
from podtrail.otlp import read_request
from podtrail.otlp.request import read_in_python
attributes = bytes([0x4A, 0x00]) * 4_000_000  # so many empty attributes in one span
def wrapped(tag, body):
    size, varint = len(body), b""
    while size > 127:
        varint, size = varint + bytes([size & 127 | 128]), size >> 7
    return bytes([tag]) + varint + bytes([size]) + body
span = b"\\x0a\\x10" + b"t" * 16 + b"\\x12\\x08" + b"s" * 8 + attributes
bomb = wrapped(0x0A, wrapped(0x12, wrapped(0x12, span)))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert read_request(bomb).groups[0].span_count == 1
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / len(bomb))
"""


def test_a_span_of_millions_of_empty_attributes_costs_a_few_times_its_bytes() -> None:
    done = subprocess.run([sys.executable, "-c", _BOMB], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 12


@pytest.mark.parametrize("time", [b"", b"name", bytes(8), bytes(12)])
def test_bytes_where_a_time_belongs_are_passed_over_as_upstream_does(time: bytes) -> None:
    field = bytes([8 << 3 | 2, len(time)]) + time
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=1).SerializeToString() + field
    scope = b"\x12" + bytes([len(span)]) + span
    raw = b"\x0a" + bytes([len(scope) + 2]) + b"\x12" + bytes([len(scope)]) + scope

    assert is_sound(raw)
    assert passes(raw)
    intake = read_request(raw)
    assert (sum(group.span_count for group in intake.groups), intake.rejected) == (1, 0)
