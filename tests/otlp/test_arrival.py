"""Arrivals in serialized requests: where they stand makes no difference."""

from hypothesis import given
from hypothesis import strategies as st

from podtrail.otlp.arrival import read_arrival, with_arrival, without_arrival

UNKNOWN = b"\xc0\x3f\x01"
"""A field of nobody: behind it an arrival does not end the request."""
FIELDS = st.lists(
    st.one_of(
        st.binary(max_size=300).map(lambda raw: b"\x0a" + bytes([len(raw) & 127 | 128, len(raw) >> 7]) + raw),
        st.binary(max_size=20).map(lambda raw: b"\x0a" + bytes([len(raw)]) + raw),
        st.integers(0, 2**64 - 1).map(lambda number: b"\xc1\x3e" + number.to_bytes(8, "little")),
        st.binary(max_size=9).map(lambda raw: b"\x12" + bytes([len(raw)]) + raw),
    ),
    max_size=6,
).map(b"".join)


@given(FIELDS)
def test_an_arrival_is_the_same_at_the_end_and_before_it(raw: bytes) -> None:
    assert read_arrival(raw) == read_arrival(raw + UNKNOWN) == read_arrival(UNKNOWN + raw)


@given(FIELDS, st.integers(1, 2**63))
def test_an_arrival_that_is_written_is_read(raw: bytes, arrival: int) -> None:
    written = with_arrival(raw, arrival)
    assert read_arrival(written) == read_arrival(written + UNKNOWN) == arrival
    assert read_arrival(without_arrival(written)) is None
