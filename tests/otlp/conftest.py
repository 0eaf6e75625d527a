"""What the wire's properties are tested on: OTLP messages with any field set to any value, small and shrinkable."""

import math
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar, cast

import pytest
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from tests.sizes import large

M = TypeVar("M", bound=Message)

_TRACE_IDS = [bytes([number]) * 16 for number in (1, 2, 255)]
_SPAN_IDS = [bytes([number]) * 8 for number in (1, 2, 255)]
_TEXTS = ["", "SchedulePod", "zażółć 🚀", "\x00\n\u2028", "x" * 127, "y" * 128]
_BYTES = [b"", b"\x00\xff\xfe", b"\x0a\x10", bytes(40)]
_DOUBLES = [0.0, -0.0, 1.5, -1e300, 5e-324, math.nan, math.inf, -math.inf]
_ENUMS = {"kind": 6, "code": 3}
_LIMITS = {
    Field.TYPE_INT32: (-1 << 31, (1 << 31) - 1),
    Field.TYPE_UINT32: (0, (1 << 32) - 1),
    Field.TYPE_FIXED32: (0, (1 << 32) - 1),
    Field.TYPE_INT64: (-1 << 63, (1 << 63) - 1),
    Field.TYPE_FIXED64: (0, (1 << 64) - 1),
}
_ALWAYS = {"resource_spans", "scope_spans", "spans", "trace_id", "span_id", "key"}


def _scalar(random: Random, field: Any) -> object:
    if field.name == "trace_id":
        return random.choice(_TRACE_IDS)
    if field.name in ("span_id", "parent_span_id"):
        return random.choice(_SPAN_IDS)
    match field.type:
        case Field.TYPE_STRING:
            return random.choice(_TEXTS)
        case Field.TYPE_BYTES:
            return random.choice(_BYTES)
        case Field.TYPE_BOOL:
            return random.choice([False, True])
        case Field.TYPE_DOUBLE:
            return random.choice(_DOUBLES)
        case Field.TYPE_ENUM:
            return random.randrange(_ENUMS[field.name])
    low, high = _LIMITS[field.type]
    return random.choice([low, 0, 1, 300, high])


def _unknown(random: Random) -> bytes:
    """One field that nobody knows: field 3000 as a varint, field 3001 with bytes, field 3002 as fixed64."""
    return random.choice([b"\xc0\xbb\x01\x07", b"\xca\xbb\x01\x03new", b"\xd1\xbb\x01" + struct.pack("<Q", 1 << 60)])


def _message(random: Random, kind: type[M], depth: int, *, unknown: bool) -> M:
    message = kind()
    chosen: dict[str, str] = {}
    for field in kind.DESCRIPTOR.fields:
        if field.name not in _ALWAYS and random.random() < 0.5:
            continue
        if field.containing_oneof is not None:
            members = [member.name for member in field.containing_oneof.fields]
            if chosen.setdefault("name", random.choice(members)) != field.name:
                continue
        count = random.randrange(1 if field.name in _ALWAYS else 0, 3) if field.is_repeated else 1
        if field.message_type is None:
            values = [_scalar(random, field) for _ in range(count)]
        elif depth > 9:
            continue
        else:
            inner: type[Message] = cast("Any", field.message_type)._concrete_class
            values = [_message(random, inner, depth + 1, unknown=unknown) for _ in range(count)]
        if field.is_repeated:
            getattr(message, field.name).extend(values)
        elif field.message_type is not None:
            getattr(message, field.name).SetInParent()
            getattr(message, field.name).CopyFrom(values[0])
        else:
            setattr(message, field.name, values[0])
    if unknown and depth and random.random() < 0.2:  # a request itself has no place to keep one
        message.MergeFromString(_unknown(random))
    return message


def _strategy(kind: type[M], depth: int) -> st.SearchStrategy[M]:
    return st.randoms(use_true_random=False).map(lambda random: _message(random, kind, depth, unknown=True))


for _kind, _depth in {ExportTraceServiceRequest: 0, ResourceSpans: 1, ScopeSpans: 2, Span: 3, KeyValue: 4}.items():
    st.register_type_strategy(_kind, _strategy(_kind, _depth))


@pytest.fixture(scope="session")
def generated() -> Sequence[ExportTraceServiceRequest]:
    """Requests of known fields only."""
    random = Random(5927)
    return [_message(random, ExportTraceServiceRequest, 0, unknown=False) for _ in range(large(600, 3000))]


Flat = list[tuple[bytes, bytes, bytes]]


@pytest.fixture(scope="session")
def flat() -> Callable[[bytes], Flat]:
    """Take a request apart with the upstream classes: resource header, scope header and bytes of each span."""

    def apart(raw: bytes) -> Flat:
        found: Flat = []
        for resource_spans in ExportTraceServiceRequest.FromString(raw).resource_spans:
            scopes = list(resource_spans.scope_spans)
            resource_spans.ClearField("scope_spans")
            for scope_spans in scopes:
                spans = list(scope_spans.spans)
                scope_spans.ClearField("spans")
                headers = resource_spans.SerializeToString(), scope_spans.SerializeToString()
                found += [(*headers, span.SerializeToString()) for span in spans]
        return found

    return apart


@pytest.fixture(scope="session")
def nested() -> Callable[[int], AnyValue]:
    """Nest a value in so many arrays."""

    def nest(levels: int) -> AnyValue:
        value = AnyValue()
        innermost = value
        for _ in range(levels):
            innermost = innermost.array_value.values.add()
        innermost.int_value = 1
        return value

    return nest
