"""The wire in Rust and the wire in Python: the same groups and the same facts, or Rust leaves it to Python."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from podtrail_processors.tail_sampling.policies.probabilistic import fnv1a

from podtrail.otlp import frame, native
from podtrail.otlp.arrival import with_arrival
from tests.sizes import large
from tools.fuzz.parsers.native import check
from tools.fuzz.parsers.requests import seeds
from tools.fuzz.wire import framed

pytestmark = pytest.mark.skipif(not native.IS_LOADED, reason="needs podtrail-native, which ./dev builds where cargo is")

ROOT = Path(__file__).parents[2]


def request_of(*spans: Span, resource: bool = True) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    if resource:
        resource_spans.resource.attributes.add(key="service.name").value.string_value = "kube-scheduler"
    resource_spans.schema_url = "https://opentelemetry.io/schemas/1.37.0"
    scope_spans = resource_spans.scope_spans.add(schema_url="s")
    scope_spans.scope.name = "scope"
    scope_spans.spans.extend(spans)
    return request


def span(trace: bytes = b"t", **fields: Any) -> Span:
    usual: dict[str, Any] = {
        "trace_id": trace * 16,
        "span_id": b"s" * 8,
        "start_time_unix_nano": 1,
        "end_time_unix_nano": 2,
    }
    return Span(**(usual | fields))


def test_reads_what_an_sdk_sends() -> None:
    full = span(
        name="Filter/NodeAffinity",
        kind=Span.SPAN_KIND_INTERNAL,
        flags=257,
        trace_state="a=b",
        parent_span_id=b"p" * 8,
        attributes=[
            KeyValue(key="k", value=AnyValue(int_value=-1)),
            KeyValue(key="d", value=AnyValue(double_value=1.5)),
        ],
        events=[Span.Event(time_unix_nano=1, name="e", attributes=[KeyValue(key="k")], dropped_attributes_count=1)],
        links=[Span.Link(trace_id=b"l" * 16, span_id=b"l" * 8, flags=1)],
        status=Status(message="no", code=Status.STATUS_CODE_ERROR),
    )
    raw = request_of(full, span(), span(b"u"), span()).SerializeToString()
    found = native.check_and_cut(raw)
    assert found is not None
    assert [(group.trace_id[:1], group.span_count) for group in found[0]] == [(b"t", 2), (b"u", 1), (b"t", 1)]
    check(raw)
    check(with_arrival(raw, 5))
    assert native.check_and_cut(with_arrival(raw, 5)) == found


@pytest.mark.parametrize(("parents", "root"), [((b"p",), False), ((b"p", b""), True), ((b"\0",), True)])
def test_tells_whether_there_is_a_root(parents: tuple[bytes, ...], root: bool) -> None:
    spans = frame([span(parent_span_id=parent * 8, flags=1).SerializeToString() for parent in parents])
    assert native.has_root(spans) is root


def test_picks_attributes_by_their_keys_and_leaves_odd_ones_to_python() -> None:
    pairs = [KeyValue(key=key, value=AnyValue(int_value=at)) for at, key in enumerate("abab")]
    spans = frame([span(attributes=pairs[:3], flags=1).SerializeToString(), span(attributes=pairs).SerializeToString()])
    wanted = [pairs[at].SerializeToString() for at in (0, 2, 0, 2)]
    facts = native.trace_facts(spans, [b"a", b"none"])
    assert facts is not None
    assert facts.attributes == wanted
    keyless = frame([span(attributes=[KeyValue(value=AnyValue(int_value=1))]).SerializeToString()])
    assert native.trace_facts(keyless, [b"a"]) is None
    assert native.trace_facts(keyless) is not None


@given(data=st.binary(max_size=40), state=st.integers(0, 2**64 - 1))
def test_hashes_alike(data: bytes, state: int) -> None:
    with native.in_python():
        hashed = fnv1a(data, state)
    assert native.fnv1a(data, state) == hashed


@pytest.mark.parametrize(
    "request_",
    [
        request_of(span(trace_id=bytes(16))),
        request_of(span(span_id=b"short")),
        request_of(span(), resource=False),
    ],
)
def test_leaves_what_is_unusual_to_python(request_: ExportTraceServiceRequest) -> None:
    raw = request_.SerializeToString()
    assert native.check_and_cut(raw) is None
    check(raw)


@settings(max_examples=large(40, 100))
@given(sent=..., data=st.data())
def test_damaged_requests_are_read_alike(sent: ExportTraceServiceRequest, data: st.DataObject) -> None:
    raw = bytearray(sent.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        if raw:
            at = data.draw(st.integers(0, len(raw) - 1))
            raw[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    check(bytes(raw))


@given(raw=st.binary(max_size=64))
def test_any_bytes_are_read_alike(raw: bytes) -> None:
    check(raw)


def test_requests_with_any_field_are_read_alike_and_many_of_them_in_rust(
    generated: Sequence[ExportTraceServiceRequest],
) -> None:
    raws = [*(request.SerializeToString() for request in generated), *seeds()]
    for raw in raws:
        check(raw)
    assert sum(native.check_and_cut(raw) is not None for raw in raws) > len(raws) / 5


@pytest.mark.parametrize("empty", [b"\x0a\x00", b"\x12\x00"], ids=["resources", "scopes"])
@pytest.mark.parametrize("count", [9_000, 20_000, 3_000_000])
def test_a_hollow_request_is_not_taken(empty: bytes, count: int) -> None:
    resource = framed(1, b"")
    raw = framed(1, resource + empty * count) if empty == b"\x12\x00" else framed(1, resource) * count
    assert (native.check_and_cut(raw) is None) == (count > 10_000)
    check(raw)


RECORDED = [path for path in (ROOT / "tests/data").rglob("*.otlp*") if not path.name.endswith("jsonl")]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_recorded_requests_are_read_alike_and_nearly_all_in_rust(path: Path) -> None:
    frames = framed_in(path)
    for raw in frames:
        check(raw)
    read = sum(native.check_and_cut(raw) is not None for raw in frames)
    assert read >= 0.8 * len(frames)


@pytest.mark.parametrize("parser", ["requests", "native"])
def test_what_fuzzing_gathered_of_requests_is_read_alike(parser: str) -> None:
    for path in (ROOT / "tests/fuzz/corpus" / parser).iterdir():
        check(path.read_bytes())


def framed_in(path: Path) -> Sequence[bytes]:
    """Return the requests of a recording in protobuf, each of which stands behind its length."""
    content = path.read_bytes()
    if path.suffix == ".zst":
        content = zstandard.ZstdDecompressor().stream_reader(content).read()
    elif path.suffix == ".gz":
        content = gzip.decompress(content)
    frames, at = [], 0
    while at < len(content):
        end = at + 4 + int.from_bytes(content[at : at + 4], "big")
        frames.append(content[at + 4 : end])
        at = end
    return frames
