"""Requests that are read together tell what each of them tells alone."""

import random
from collections.abc import Sequence

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from podtrail.otlp import Intake, MalformedRequest, read_request, read_requests
from podtrail.otlp.small_requests import read_alike

START = 1_790_000_000_000_000_000


def span(trace: int, number: int = 1, *, name: str = "s", start: int = START, trace_bytes: int = 16) -> Span:
    return Span(
        trace_id=trace.to_bytes(trace_bytes, "big"),
        span_id=number.to_bytes(8, "big"),
        name=name,
        start_time_unix_nano=start,
        end_time_unix_nano=START + 5,
    )


def request(*spans: Span, service: str = "scheduler", scope: str = "tracer", schema: str = "") -> bytes:
    of_scope = ScopeSpans(spans=spans, schema_url=schema)
    of_scope.scope.name = scope
    of_resource = ResourceSpans(scope_spans=[of_scope])
    attribute = of_resource.resource.attributes.add(key="service.name")
    attribute.value.string_value = service
    return ExportTraceServiceRequest(resource_spans=[of_resource]).SerializeToString()


def alone(raw: bytes) -> Intake | str:
    try:
        return read_request(raw)
    except MalformedRequest as error:
        return str(error)


def told(found: Sequence[Intake | MalformedRequest]) -> list[object]:
    return [
        str(each) if isinstance(each, MalformedRequest) else (list(each.groups), each.rejected, each.reason)
        for each in found
    ]


def odd(found: Sequence[object]) -> int:
    return sum(each.odd_times for each in found if isinstance(each, Intake))


def assert_told_alike(raws: Sequence[bytes]) -> None:
    each = [alone(raw) for raw in raws]
    for together in (read_requests(raws), read_alike(raws)):
        assert told(together) == [
            (list(one.groups), one.rejected, one.reason) if isinstance(one, Intake) else one for one in each
        ]
        assert odd(together) == odd(each)


GOOD = [request(span(trace, 1), span(trace, 2)) for trace in range(1, 6)]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(request(span(3, 9)), id="another trace"),
        pytest.param(request(span(1, 3), span(2, 3), span(1, 4)), id="several traces"),
        pytest.param(request(span(9), service="apiserver"), id="another resource"),
        pytest.param(request(span(9), scope="other"), id="another scope"),
        pytest.param(request(span(9), schema="https://example.com/1"), id="a schema"),
        pytest.param(request(span(9)) + request(span(9, 2)), id="two resources"),
        pytest.param(request(span(0)), id="no trace id"),
        pytest.param(request(span(9, 0)), id="no span id"),
        pytest.param(request(span(9, trace_bytes=8)), id="a short trace id"),
        pytest.param(request(span(9, start=START + 50)), id="it ends before it starts"),
        pytest.param(request(span(9, start=0)), id="no start"),
        pytest.param(request(span(9, name="x" * 5000)), id="a large span"),
        pytest.param(request(span(9, name="x" * 50_000)), id="a very large span"),
        pytest.param(request(), id="no span"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x0a", id="a tag"),
        pytest.param(b"\x0a\x05abcde", id="no message"),
        pytest.param(request(span(9))[:-3], id="cut off"),
        pytest.param(request(span(9)) + b"\x0a", id="more behind it"),
        pytest.param(b'{"resourceSpans": []}', id="JSON"),
    ],
)
@pytest.mark.parametrize("place", [0, 2, 5])
def test_whatever_stands_among_requests_is_told_as_if_it_stood_alone(other: bytes, place: int) -> None:
    assert_told_alike([*GOOD[:place], other, *GOOD[place:]])


def test_neighbours_of_one_trace_stay_apart() -> None:
    raws = [request(span(1, number)) for number in range(1, 5)]
    assert [len(each.groups) for each in read_requests(raws) if isinstance(each, Intake)] == [1, 1, 1, 1]
    assert_told_alike(raws)


def test_a_trace_that_ends_one_request_and_begins_the_next_stays_in_both() -> None:
    assert_told_alike([request(span(1), span(2)), request(span(2, 2), span(3)), *GOOD])


def test_any_bytes_are_told_as_if_they_stood_alone() -> None:
    rng = random.Random(1)
    kinds = [*GOOD, request(span(7), span(8)), request(span(7), service="kubelet"), request(span(0)), b""]
    for _ in range(400):
        raws = [bytearray(rng.choice(kinds)) for _ in range(rng.randrange(2, 9))]
        for raw in rng.sample(raws, rng.randrange(3)):
            for _ in range(rng.randrange(1, 3)):
                if raw:
                    raw[rng.randrange(len(raw))] = rng.randrange(256)
            if rng.random() < 0.2:
                del raw[rng.randrange(len(raw) + 1) :]
        assert_told_alike([bytes(raw) for raw in raws])


def test_requests_that_are_alike_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counting(raw: bytes) -> Intake:
        asked.append(len(raw))
        return read_request(raw)

    monkeypatch.setattr("podtrail.otlp.small_requests.read_request", counting)
    raws = [request(span(trace)) for trace in range(1, 101)]
    read_alike(raws)
    assert len(asked) == 1
