"""Traces as the examples write them: a scheduling attempt by what is special about it, or spans one by one."""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from pydantic import Field, model_validator

from podtrail.config.types import MILLISECOND, Duration, Model
from podtrail.otlp import Event, Group, Status, Value, encode_span, frame, resource_header, scope_header
from podtrail.testing.attempts import START, MadeAttempt, No, nodes

_STATUS_CODES = {"unset": 0, "ok": 1, "error": 2}


class RefusalExample(Model):
    """A plugin that said no to so many nodes."""

    plugin: str
    reason: str = ""
    nodes: int = 1


class AttemptExample(Model):
    """A scheduling attempt. Attempts of one Pod are numbered as they come."""

    pod: str = "web-0"
    namespace: str = "default"
    result: str = "Success"
    message: str = ""
    duration: Duration = 9 * MILLISECOND
    queue_wait: Duration = 2 * MILLISECOND
    refusals: tuple[RefusalExample, ...] = ()
    attributes: dict[str, Any] = Field(default_factory=dict)


class SpanExample(Model):
    """A span. Without a parent it is the root; a parent is named."""

    name: str = "work"
    parent: str = ""
    start: Duration = 0
    """After the start of the trace."""
    duration: Duration = 10 * MILLISECOND
    status: str = "unset"
    attributes: dict[str, Any] = Field(default_factory=dict)
    resource: dict[str, Any] = Field(default_factory=dict)
    events: tuple[str, ...] = ()
    trace_state: str = ""
    sampled_flag: bool = False


class TraceExample(Model):
    """A trace, or several that are alike, and what is to become of it."""

    about: str
    """What it is, for the reader."""
    attempt: AttemptExample | None = None
    spans: tuple[SpanExample, ...] = ()
    count: int = 1
    """How many of these come."""
    at: Duration = 0
    """When the first arrives."""
    every: Duration = 0
    """How long after one the next arrives."""
    kept: bool | int | tuple[int, int]
    """Whether it is kept, or how many of these are: a number, or at least and at most."""

    @model_validator(mode="after")
    def _one_kind(self) -> "TraceExample":
        if (self.attempt is None) == (not self.spans):
            raise ValueError("either an attempt or spans must be given")
        return self


class TraceMaker:
    """Makes the traces of one example."""

    def __init__(self) -> None:
        self._attempts: dict[str, int] = {}
        self._traces = 0

    def make(self, example: TraceExample) -> Iterator[tuple[int, list[Group]]]:
        """Yield arrival (Unix nanoseconds) and groups of each of the traces."""
        for number in range(example.count):
            arrival = START + example.at + number * example.every
            if example.attempt:
                yield arrival, self._attempt(example.attempt, arrival)
            else:
                yield arrival, self._spans(example.spans, arrival)

    def _attempt(self, example: AttemptExample, arrival: int) -> list[Group]:
        pod = f"{example.namespace}/{example.pod}"
        number = self._attempts[pod] = self._attempts.get(pod, 0) + 1
        digest = blake2b(pod.encode(), digest_size=6).hexdigest()
        made = MadeAttempt(
            uid=f"1f3c0a52-0000-4000-8000-{digest}",
            namespace=example.namespace,
            name=example.pod,
            number=number,
            result=example.result,
            message=example.message,
            start=arrival - example.duration,
            duration=example.duration,
            queue_wait_ms=example.queue_wait // MILLISECOND,
            refusals=[No(plugin=no.plugin, reason=no.reason, nodes=nodes(no.nodes)) for no in example.refusals],
            attributes=example.attributes,
        )
        return made.groups()

    def _spans(self, examples: tuple[SpanExample, ...], arrival: int) -> list[Group]:
        self._traces += 1
        trace_id = blake2b(str(self._traces).encode(), digest_size=16).digest()
        begin = arrival - max(span.start + span.duration for span in examples)
        return [_group(span, trace_id, begin) for span in examples]


def _group(span: SpanExample, trace_id: bytes, begin: int) -> Group:
    raw = encode_span(
        trace_id=trace_id,
        span_id=_span_id(span.name),
        parent_span_id=_span_id(span.parent) if span.parent else b"",
        name=span.name,
        start=begin + span.start,
        end=begin + span.start + span.duration,
        status=Status(_STATUS_CODES[span.status], ""),
        attributes=_values(span.attributes),
        events=[Event(begin + span.start, name, {}) for name in span.events],
        trace_state=span.trace_state,
        flags=int(span.sampled_flag),
    )
    resource = resource_header({"service.name": "shop", **_values(span.resource)})
    return Group(resource, scope_header("shop"), trace_id, frame([raw]), 1)


def _span_id(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=8).digest()


def _values(attributes: Mapping[str, Any]) -> dict[str, Value]:
    return dict(attributes)
