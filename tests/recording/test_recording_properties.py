"""Laws of reading recordings: how the bytes come in changes nothing, and no bytes are too bad."""

import io
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podtrail.otlp.arrival import with_arrival
from podtrail.recording import Damage, Record, RecordingDecoder
from podtrail.recording.compressed import pieces
from tests.sizes import large


def request(number: int) -> bytes:
    made = ExportTraceServiceRequest()
    span = made.resource_spans.add().scope_spans.add().spans.add(name="SchedulePod", end_time_unix_nano=10 + number)
    span.trace_id, span.span_id = number.to_bytes(16, "big"), number.to_bytes(8, "big")
    return with_arrival(made.SerializeToString(), 100 + number)


def frame(number: int) -> bytes:
    raw = request(number)
    return len(raw).to_bytes(4, "big") + raw


def line(number: int) -> bytes:
    return b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"%016x"}]}]}]}\n' % (number, number)


def decode(path: str, chunks: Iterable[bytes]) -> list[Record | Damage]:
    decoder = RecordingDecoder(path)
    found = [item for chunk in chunks for item in decoder.feed(chunk)]
    return [*found, *decoder.finish()]


def cut(raw: bytes, cuts: Sequence[int]) -> list[bytes]:
    borders = [0, *sorted(at % (len(raw) + 1) for at in cuts), len(raw)]
    return [raw[begin:end] for begin, end in pairwise(borders)]


@st.composite
def damaged(draw: st.DrawFn, make: str) -> bytes:
    """A recording with a few bytes removed, put in or changed."""
    part = frame if make == "otlp" else line
    raw = b"".join(part(number) for number in draw(st.lists(st.integers(0, 50), min_size=1, max_size=6)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(raw)))
        raw = raw[:at] + draw(st.binary(max_size=6)) + raw[at + draw(st.integers(0, 40)) :]
    return raw


@settings(max_examples=large(40, 100))
@pytest.mark.parametrize("form", ["otlp", "jsonl"])
@given(data=st.data())
def test_however_the_bytes_come_in_the_records_are_the_same(form: str, data: st.DataObject) -> None:
    raw = data.draw(damaged(form))
    path = f"r.{form}"
    at_once = decode(path, [raw])
    assert decode(path, cut(raw, data.draw(st.lists(st.integers(0, 1_000), max_size=8)))) == at_once
    assert decode(path, [raw[at : at + 1] for at in range(len(raw))]) == at_once


BEGINNINGS = [b"", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b"\x00\x00\x00\x05\x0a", b"{"]


@pytest.mark.parametrize("name", ["r", "r.otlp", "r.jsonl.gz", "r.otlp.zst"])
@given(
    start=st.sampled_from([b"", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b"\x00\x00\x00\x05\x0a", b"{"]),
    rest=st.binary(),
)
def test_no_bytes_are_too_bad_to_be_read(name: str, start: bytes, rest: bytes) -> None:
    for piece in pieces(io.BytesIO(start + rest), name):
        assert piece
    for item in decode(name, [start + rest]):
        assert isinstance(item, Record | Damage)
        assert str(item.position)


@given(numbers=st.lists(st.integers(1, 1_000), max_size=8), keep=st.integers(0, 400))
def test_whole_frames_behind_half_a_frame_are_all_found(numbers: list[int], keep: int) -> None:
    torn = frame(7)[: keep % (len(frame(7)) - 1)]
    found = decode("r.otlp", [torn + b"".join(map(frame, numbers))])
    traces = [int.from_bytes(item.intake.groups[0].trace_id, "big") for item in found if isinstance(item, Record)]
    assert traces[-len(numbers) :] == numbers or not numbers
