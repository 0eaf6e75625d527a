"""What other encoders may legally write: fields in any order, padded varints, singular fields that stand twice."""

from collections.abc import Callable
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from podtrail.otlp import read_request, write_request
from tests.sizes import large

Flat = list[tuple[bytes, bytes, bytes]]

_VARINTS = {Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_UINT32, Field.TYPE_UINT64, Field.TYPE_BOOL, Field.TYPE_ENUM}


def _varint(number: int, padding: int = 0) -> bytes:
    out = bytearray()
    while number > 127 or padding > len(out):
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def _field(number: int, content: bytes, padding: int = 0) -> bytes:
    return _varint(number << 3 | 2, padding) + _varint(len(content), padding) + content


def _odd(message: Message, random: Random) -> bytes:
    """Serialize a message with its fields in any order and its varints at any length."""
    parts: list[tuple[float, bytes]] = []
    bare = type(message)()
    bare.CopyFrom(message)
    for field, value in message.ListFields():
        order = random.random()
        bare.ClearField(field.name)
        items = value if field.is_repeated else [value]
        parts.extend((order, _odd_field(field, item, random)) for item in items)
    parts.append((random.random(), bare.SerializeToString()))
    return b"".join(part for _, part in sorted(parts, key=lambda part: part[0]))


def _odd_field(field: Any, value: Any, random: Random) -> bytes:
    padding = random.choice([0, 0, 2])
    if field.message_type is not None:
        return _field(field.number, _odd(value, random), padding)
    if isinstance(value, (str, bytes)):
        return _field(field.number, value.encode() if isinstance(value, str) else value, padding)
    if field.type in _VARINTS:
        return _varint(field.number << 3, padding) + _varint(value & (1 << 64) - 1, padding)
    alone = field.containing_type._concrete_class(**{field.name: value})
    serialized: bytes = alone.SerializeToString()
    return serialized


@settings(max_examples=large(40, 100))
@given(sent=..., random=st.randoms(use_true_random=False))
def test_order_of_fields_and_length_of_varints_change_nothing(
    sent: ExportTraceServiceRequest, random: Random, flat: Callable[[bytes], Flat]
) -> None:
    odd = _odd(sent, random)
    assert flat(odd) == flat(sent.SerializeToString())
    intake = read_request(odd)
    assert intake.rejected == 0
    assert flat(write_request(intake.groups)) == flat(odd)


@settings(max_examples=large(30, 100))
@given(spans=st.lists(st.lists(st.from_type(Span), min_size=1, max_size=3), min_size=1, max_size=3))
def test_singular_fields_of_a_span_are_merged(spans: list[list[Span]], flat: Callable[[bytes], Flat]) -> None:
    scope_spans = b"".join(_field(2, b"".join(part.SerializeToString() for part in parts)) for parts in spans)
    raw = _field(1, _field(2, scope_spans))
    assert flat(write_request(read_request(raw).groups)) == flat(raw)


@settings(max_examples=large(25, 100))
@given(parts=st.lists(st.from_type(ScopeSpans), min_size=2, max_size=3))
def test_singular_fields_of_a_scope_are_merged(parts: list[ScopeSpans], flat: Callable[[bytes], Flat]) -> None:
    raw = _field(1, _field(2, b"".join(part.SerializeToString() for part in parts)))
    assert flat(write_request(read_request(raw).groups)) == flat(raw)


@settings(max_examples=large(25, 100))
@given(parts=st.lists(st.from_type(ResourceSpans), min_size=2, max_size=3))
def test_singular_fields_of_a_resource_are_merged(parts: list[ResourceSpans], flat: Callable[[bytes], Flat]) -> None:
    raw = _field(1, b"".join(part.SerializeToString() for part in parts))
    assert flat(write_request(read_request(raw).groups)) == flat(raw)


def test_of_two_trace_ids_in_one_span_the_last_counts_for_its_group() -> None:
    first, last = Span(trace_id=b"1" * 16, span_id=b"11111111"), Span(trace_id=b"2" * 16, name="last")
    raw = _field(1, _field(2, _field(2, first.SerializeToString() + last.SerializeToString())))
    (group,) = read_request(raw).groups
    assert group.trace_id == b"2" * 16


@given(kind=st.integers(-(1 << 31), (1 << 31) - 1))
def test_kinds_of_a_later_version_pass(kind: Any) -> None:
    span = Span(trace_id=b"1" * 16, span_id=b"11111111", kind=kind).SerializeToString()
    raw = _field(1, _field(2, _field(2, span)))
    assert write_request(read_request(raw).groups) == raw
