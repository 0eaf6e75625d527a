"""How `ottl_condition` votes. Loaded only when a configuration has such a policy: the language takes time to load."""

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from podtrail.otlp import Decision
from podtrail.otlp.surroundings import read_event
from podtrail_processors.ottl import (
    SPAN,
    SPAN_EVENT,
    Condition,
    ConditionError,
    EvaluationError,
    PathContext,
    SpanData,
    Telemetry,
)
from podtrail_processors.tail_sampling.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.policy import NoVote, Policy


class OttlCondition(Policy):
    """Says yes when one of its conditions holds for one span or event; conditions on different spans do not add up.

    On each span its conditions are asked before those on its events, each in its order, and the first that holds
    decides. One that has no answer is passed over, or with `propagates` leaves the policy without a vote.
    """

    def __init__(self, spans: Sequence[Condition], events: Sequence[Condition], *, propagates: bool) -> None:
        conditions = (*spans, *events)
        fields = frozenset().union(*(condition.reads for condition in conditions))
        columns = frozenset().union(*(condition.columns for condition in conditions)) - {"resource", "scope"}
        self.reads = Reads(columns, fields | {"events"} if events else fields)
        self.reason = "a span or event meets one of its conditions"
        self._spans = spans
        self._events = events
        self._propagates = propagates
        self._held: Condition | None = None

    def vote(self, trace: Evidence) -> Decision:
        """Ask the conditions that a look at the trace as a whole does not rule out."""
        spans = [condition for condition in self._spans if self._is_worth_asking(condition, trace)]
        events = [condition for condition in self._events if self._is_worth_asking(condition, trace)]
        self._held = self._first_that_holds(trace, spans, events) if spans or events else None
        return "sampled" if self._held else "not_sampled"

    def because(self, trace: Evidence) -> str:  # noqa: ARG002 - what held is remembered from the vote
        """Tell which condition holds."""
        return f"a span or event meets {self._held.text}" if self._held else self.reason

    def _is_worth_asking(self, condition: Condition, trace: Evidence) -> bool:
        """Say whether a condition may hold, or may fail where that matters."""
        return condition.may_hold(trace) or (self._propagates and not condition.never_fails)

    def _first_that_holds(
        self, trace: Evidence, spans: Sequence[Condition], events: Sequence[Condition]
    ) -> Condition | None:
        for telemetry in _spans_of(trace):
            held = self._holding(spans, telemetry)
            if held:
                return held
            if events:
                for event in telemetry.span.events:
                    telemetry.event = read_event(event)
                    held = self._holding(events, telemetry)
                    if held:
                        return held
        return None

    def _holding(self, conditions: Sequence[Condition], telemetry: Telemetry) -> Condition | None:
        for condition in conditions:
            try:
                if condition.holds(telemetry):
                    return condition
            except EvaluationError as error:
                if self._propagates:
                    raise NoVote(f"{condition.text}: {error}") from None
        return None


def _spans_of(trace: Evidence) -> Iterator[Telemetry]:
    """Yield the spans in order of arrival, in one object that is used again."""
    telemetry = Telemetry()
    telemetry.now = trace.now
    for header, spans in trace.under_headers():
        telemetry.resource, telemetry.scope = header
        for span in spans:
            telemetry.span = cast("SpanData", span)
            yield telemetry


def policy_of(spans: Sequence[str], events: Sequence[str], *, propagates: bool) -> OttlCondition:
    """Return the policy of these conditions. ValueError for those that can't be read: which, where and why."""
    problems: list[str] = []
    on_spans = _compiled("span", spans, SPAN, problems.append)
    on_events = _compiled("spanevent", events, SPAN_EVENT, problems.append)
    if problems:
        raise ValueError("; ".join(problems))
    return OttlCondition(on_spans, on_events, propagates=propagates)


def _compiled(
    key: str, texts: Sequence[str], context: PathContext, report: Callable[[str], None]
) -> Sequence[Condition]:
    found = []
    for index, text in enumerate(texts):
        try:
            found.append(Condition(text, context))
        except ConditionError as error:
            place = f"line {error.line}, column {error.column}"
            report(f"ottl_condition.{key}[{index}], {place} of {text!r}: {error.problem}")
    return found
