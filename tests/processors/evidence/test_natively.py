"""What a trace is decided on is the same whether its spans are looked at in Rust or in Python."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from podtrail_processors.evidence.evidence import Evidence, Readers, Reads
from podtrail_processors.evidence.sizes import Size
from podtrail_processors.evidence.sought import Sought

from podtrail.otlp import Group, frame, native, read_key_value
from podtrail.otlp.byte_search import key_value

pytestmark = pytest.mark.skipif(not native.IS_LOADED, reason="needs podtrail-native, which ./dev builds where cargo is")

TIMES = st.sampled_from([None, 0, 1, 5, 2**63 - 1, 2**63, 2**64 - 1]) | st.integers(1, 100)
READ = Readers(Reads(frozenset({"start_time_unix_nano", "end_time_unix_nano", "status", "attributes"})))
ASKED = [
    *(Sought("status", code.__eq__) for code in range(4)),
    *(Sought("attributes", key_value(key, value).__eq__, key) for key, value in (("a", 1), ("b", 2))),
    Sought("attributes", lambda pair: read_key_value(pair)[0] == "", ""),
]
ZERO = 0x7FFF_FFFF_FFFF_FFF1
"""Stands for a time of 0 that is written."""


@st.composite
def spans(draw: st.DrawFn) -> bytes:
    start, end, code = draw(TIMES), draw(TIMES), draw(st.sampled_from([None, 0, 1, 2, 3]))
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8, name="s", flags=draw(st.sampled_from([0, 257])))
    if start is not None:
        span.start_time_unix_nano = start or ZERO
    if end is not None:
        span.end_time_unix_nano = end or ZERO
    if code is not None:
        span.status.CopyFrom(Status(message=draw(st.sampled_from(["", "no"])), code=code))  # type: ignore[arg-type]
    for key, value in draw(st.lists(st.tuples(st.sampled_from(["", "a", "b", "c"]), st.integers(1, 2)), max_size=3)):
        span.attributes.add(key=key).value.int_value = value
    raw = span.SerializeToString().replace(ZERO.to_bytes(8, "little"), bytes(8))
    return raw * draw(st.sampled_from([1, 1, 1, 2]))


def told(of: Sequence[bytes]) -> tuple[object, ...]:
    trace = Evidence.of([Group(b"r", b"s", b"t" * 16, frame(of), len(of))], READ, 0, Size(0, 0))
    return trace.extent, trace.longest(), {*trace.statuses}, [trace.met(asked) for asked in ASKED]


@given(st.lists(spans(), min_size=1, max_size=4))
def test_any_trace_tells_the_same(of: list[bytes]) -> None:
    with native.in_python():
        slowly = told(of)
    assert told(of) == slowly


def test_a_usual_trace_is_looked_at_in_rust() -> None:
    of = [Span(trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=at, end_time_unix_nano=9) for at in (5, 3)]
    trace = Evidence.of([Group(b"r", b"s", b"t" * 16, frame(map(Span.SerializeToString, of)), 2)], READ, 0, Size(0, 0))
    assert trace.facts == native.Facts(3, 9, (0,), [])
    assert trace.longest() == 6


def test_of_attributes_only_those_that_are_sought_are_looked_at() -> None:
    seen: list[bytes] = []

    def note(pair: bytes) -> bool:
        seen.append(pair)
        return False

    readers = Readers(Reads(frozenset({"attributes"})))
    sought = [Sought("attributes", note, key) for key in ("a", "b")]
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=1, end_time_unix_nano=2)
    for key in ("a", "ab", "c", "b"):
        span.attributes.add(key=key).value.int_value = 1
    trace = Evidence.of([Group(b"r", b"s", b"t" * 16, frame([span.SerializeToString()]), 1)], readers, 0, Size(0, 0))
    assert [trace.met(one) for one in sought] == [False, False]
    assert {read_key_value(pair)[0] for pair in seen} == {"a", "b"}
