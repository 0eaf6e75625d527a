"""A span with an event to ask conditions about."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest
from podtrail_processors.evidence.evidence import Evidence, Header, Readers, Reads
from podtrail_processors.ottl import SPAN, SPAN_EVENT, Condition, SpanData, Telemetry
from podtrail_processors.tail_sampling.holding.held_trace import UNMEASURED

from podtrail.otlp import (
    Event,
    Link,
    Status,
    Value,
    encode_span,
    frame,
    raw_span_reader,
    resource_header,
    scope_header,
    set_scope_attributes,
)
from podtrail.otlp.surroundings import read_event

SECOND = 1_000_000_000
START = 1_760_000_000 * SECOND
TRACE, SPAN_ID = bytes.fromhex("4a183f349c958a1ed4fb219d1cd2fd52"), bytes.fromhex("80327f7b7e7cfa91")
ATTRIBUTES: Mapping[str, Value] = {
    "text": "GET",
    "int": 404,
    "double": 1.5,
    "whole": 404.0,
    "yes": True,
    "bytes": b"\x00\x01",
    "nothing": None,
    "empty": "",
    "digits": "42",
    "unicode": "héé",
    "list": [1, 5, 10],
    "names": ["NodeAffinity", "Fit"],
    "map": {"status": "scheduled", "node": {"name": "n1", "score": 87}},
    "json": '{"user": {"id": 42, "roles": ["admin"]}, "ok": true}',
}


class Asked:
    """The span, as its bytes and as what a condition sees of it."""

    def __init__(self, attributes: Mapping[str, Value] = ATTRIBUTES, parent: bytes = b"") -> None:
        self.raw = frame(
            [
                encode_span(
                    trace_id=TRACE,
                    span_id=SPAN_ID,
                    parent_span_id=parent,
                    name="Scheduling",
                    start=START,
                    end=START + 1_500_000_000,
                    kind=2,
                    flags=1,
                    trace_state="vendor=a,ot=th:8",
                    status=Status(2, "no nodes"),
                    attributes=attributes,
                    events=[Event(START + 3_000_000, "retry", {"attempt": 2})],
                    links=[Link(TRACE, SPAN_ID, {})],
                )
            ]
        )
        self.resource = resource_header({"service.name": "scheduler", "labels": {"app": "sched"}}, "https://r")
        self.scope = set_scope_attributes(scope_header("otelhttp", "0.61.0", "https://s"), {"prio": 5})

    def seen_by(self, condition: Condition) -> Telemetry:
        """Return the span with no other fields than the condition reads."""
        telemetry = Telemetry()
        telemetry.now = START + 60 * SECOND
        (span,) = raw_span_reader(condition.reads | {"events"})(self.raw)
        telemetry.span = cast("SpanData", span)
        telemetry.event = read_event(span.events[0])
        telemetry.resource, telemetry.scope = self.resource, self.scope
        return telemetry

    def trace_for(self, condition: Condition) -> Evidence:
        """Return the span as a trace, with the columns that the condition asks for."""
        readers = Readers(Reads(condition.columns - {"resource", "scope"}))
        return Evidence(TRACE, self.raw, 1, [Header(self.resource, self.scope)], [1], readers, 0, UNMEASURED)


@pytest.fixture
def asked() -> type[Asked]:
    """Return what makes a span with these attributes."""
    return Asked


@pytest.fixture
def holds() -> Callable[..., bool]:
    """Return what asks a condition about the span, or with `event=True` about its event."""

    def ask(text: str, *, event: bool = False, **span: Any) -> bool:
        condition = Condition(text, SPAN_EVENT if event else SPAN)
        return condition.holds(Asked(**span).seen_by(condition))

    return ask


@pytest.fixture
def texts() -> Sequence[str]:
    """Return values as conditions write them: of every kind, there or missing."""
    paths = [f'attributes["{key}"]' for key in (*ATTRIBUTES, "missing")]
    more = [
        "name",
        "kind",
        "flags",
        "status.code",
        "parent_span_id.string",
        'resource.attributes["service.name"]',
        "scope.name",
    ]
    calls = [
        'Int(attributes["digits"])',
        'Len(attributes["list"])',
        'attributes["map"]["node"]["score"]',
        "name",
        "kind",
    ]
    return [
        *paths,
        *calls,
        *more,
        'attributes["list"][1]',
        "nil",
        "true",
        "404",
        "1.5",
        '"GET"',
        '""',
        "0x0001",
        "[1, 5, 10]",
    ]
