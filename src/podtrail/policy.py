"""For authors of policies in Python: what they see of a trace, which they can't change, and what they answer.

    from podtrail.policy import TraceView, Vote

    def is_about_gpus(trace: TraceView) -> Vote:
        return trace.mentions("example.com/gpu") and trace.attempt is not None and trace.attempt.failed

Nothing is decoded before it is asked for, and then once. Times are Unix nanoseconds, ids are lower-case hex.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, Protocol

from podtrail.otlp import (
    KINDS,
    Attempt,
    Group,
    SpanView,
    Status,
    Value,
    attempt_of,
    raw_span_reader,
    resource_attributes,
    scope_attributes,
    scope_name,
    split,
)
from podtrail.otlp.columns import column_reader

__all__ = [
    "Attempt",
    "Attributes",
    "FrozenValue",
    "Span",
    "SpanEvent",
    "SpanLink",
    "Status",
    "TraceView",
    "Vote",
    "Voter",
]

FrozenValue = str | bool | int | float | bytes | tuple["FrozenValue", ...] | Mapping[str, "FrozenValue"] | None
"""The value of an attribute; lists are tuples and maps can't be written to."""

Attributes = Mapping[str, FrozenValue]
"""Attributes by key."""

Vote = bool | str | None
"""The answer of a policy: True, or a text that is the reason, keeps the trace; False and None leave it to others."""

_times = column_reader({"start_time_unix_nano", "end_time_unix_nano"})
_parents = raw_span_reader({"parent_span_id"})


class SpanEvent(NamedTuple):
    """A moment within a span."""

    time: int
    name: str
    attributes: Attributes


class SpanLink(NamedTuple):
    """A reference from a span to another, perhaps in another trace."""

    trace_id: str
    span_id: str
    attributes: Attributes


@dataclass(frozen=True, eq=False)
class Span:
    """One span."""

    raw: bytes = field(repr=False)
    """Its bytes, a Span message of OTLP."""
    resource_header: bytes = field(repr=False)
    scope_header: bytes = field(repr=False)

    @cached_property
    def _view(self) -> SpanView:
        return SpanView(self.raw)

    @property
    def name(self) -> str:
        """Its name."""
        return self._view.name

    @property
    def span_id(self) -> str:
        """16 hex digits."""
        return self._view.span_id.hex()

    @property
    def parent_span_id(self) -> str:
        """16 hex digits; "" for a root."""
        return self._view.parent_span_id.hex()

    @property
    def kind(self) -> str:
        """`internal`, `server`, `client`, `producer`, `consumer` or `unspecified`."""
        kind = self._view.kind
        return KINDS[kind] if 0 <= kind < len(KINDS) else KINDS[0]

    @property
    def start(self) -> int:
        """When it started; 0 when not set."""
        return self._view.start

    @property
    def end(self) -> int:
        """When it ended; 0 when not set."""
        return self._view.end

    @property
    def duration(self) -> int | None:
        """Nanoseconds; None when a time is not set or the end is before the start."""
        return self._view.duration

    @property
    def status(self) -> Status:
        """Code (0 unset, 1 ok, 2 error) and message."""
        return self._view.status

    @property
    def failed(self) -> bool:
        """Whether its status is an error."""
        return self._view.status.code == 2

    @cached_property
    def attributes(self) -> Attributes:
        """Its attributes by key."""
        return _frozen_map(self._view.attributes)

    @cached_property
    def events(self) -> Sequence[SpanEvent]:
        """Its events, in the order sent."""
        return tuple(SpanEvent(e.time, e.name, _frozen_map(e.attributes)) for e in self._view.events)

    @cached_property
    def links(self) -> Sequence[SpanLink]:
        """Its links, in the order sent."""
        return tuple(
            SpanLink(link.trace_id.hex(), link.span_id.hex(), _frozen_map(link.attributes)) for link in self._view.links
        )

    @property
    def trace_state(self) -> str:
        """The W3C trace state."""
        return self._view.trace_state

    @cached_property
    def resource(self) -> Attributes:
        """The attributes of its resource."""
        return _frozen_map(resource_attributes(self.resource_header))

    @property
    def scope(self) -> str:
        """The name of its instrumentation scope."""
        return scope_name(self.scope_header)

    @cached_property
    def scope_attributes(self) -> Attributes:
        """The attributes of its instrumentation scope."""
        return _frozen_map(scope_attributes(self.scope_header))


@dataclass(frozen=True, eq=False)
class TraceView:
    """A trace at the moment of its decision, with the spans that have come until then."""

    groups: Sequence[Group] = field(repr=False)
    """Its spans undecoded, in order of arrival: what `TraceView` is made of."""
    now: int
    """Pipeline time. In a replay that of the recording, so ask no other clock."""

    @property
    def trace_id(self) -> str:
        """32 hex digits."""
        return self.groups[0].trace_id.hex()

    @property
    def span_count(self) -> int:
        """How many spans it has."""
        return sum(group.span_count for group in self.groups)

    def mentions(self, text: str) -> bool:
        """Say whether a text stands anywhere in its spans: names, keys, values. Cheap; nothing is decoded."""
        wanted = text.encode()
        return any(wanted in group.spans for group in self.groups)

    @cached_property
    def spans(self) -> Sequence[Span]:
        """Its spans, in order of arrival."""
        return tuple(Span(raw, group.resource, group.scope) for group in self.groups for raw in split(group.spans))

    def named(self, name: str) -> Iterator[Span]:
        """Yield the spans of a name, without decoding those in which it does not stand."""
        wanted = name.encode()
        return (span for span in self.spans if wanted in span.raw and span.name == name)

    @cached_property
    def root(self) -> Span | None:
        """The first span without a parent; None while it has not come."""
        for group in self.groups:
            for at, span in enumerate(_parents(group.spans)):
                if not any(span.parent_span_id):
                    return Span(split(group.spans)[at], group.resource, group.scope)
        return None

    @cached_property
    def attempt(self) -> Attempt | None:
        """The scheduling attempt that it records; None when it records none."""
        return attempt_of(self.groups)

    @cached_property
    def start(self) -> int:
        """The earliest start of its spans; 0 when none says."""
        return min((time for group in self.groups for time in _times(group.spans).start_time_unix_nano), default=0)

    @cached_property
    def end(self) -> int:
        """The latest end of its spans; 0 when none says."""
        return max((time for group in self.groups for time in _times(group.spans).end_time_unix_nano), default=0)

    @property
    def duration(self) -> int:
        """Nanoseconds from its first start to its last end; 0 when that is not known."""
        return max(0, self.end - self.start) if self.start else 0


class Voter(Protocol):
    """What a policy's class makes, once, with its `args`: an object that votes and may remember.

    `stateful = False` on the class says that its votes do not depend on traces before.
    """

    def vote(self, trace: TraceView, /) -> Vote:
        """Answer for one trace. An exception leaves the policy without a vote on it."""


def _frozen(value: Value) -> FrozenValue:
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return _frozen_map(value) if isinstance(value, dict) else value


def _frozen_map(attributes: Mapping[str, Value]) -> Attributes:
    return MappingProxyType({key: _frozen(value) for key, value in attributes.items()})
