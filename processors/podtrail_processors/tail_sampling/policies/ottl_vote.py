"""How `ottl_condition` votes. Loaded only when a configuration has such a policy: the language takes time to load."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, cast

from podtrail.component import Context
from podtrail.config.mistakes import below, each, together
from podtrail.config.types import MINUTE
from podtrail.otlp import Decision, SpanFields
from podtrail.otlp.surroundings import read_event
from podtrail_processors.evidence.evidence import Evidence, Reads
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
from podtrail_processors.tail_sampling.policies.ottl_condition import ErrorMode
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, NoVote
from podtrail_processors.tail_sampling.voting.words import name_of

_QUIET = MINUTE
"""So long nothing more is logged of a policy whose conditions fail."""


Log = Callable[[str, str], None]


class _Failed(NamedTuple):
    """A condition without an answer."""

    condition: Condition
    error: EvaluationError


class _Holding(NamedTuple):
    """A condition that holds, and the span on which it does, or on an event of which."""

    condition: Condition
    span: SpanFields


_Note = Callable[[_Failed], None]


class OttlCondition(Evaluator):
    """Says yes when one of its conditions holds for one span or event; conditions on different spans do not add up.

    On each span its conditions are asked before those on its events, each in its order, and the first that holds
    decides. One that has no answer is passed over, and logged if the mode is `ignore`; with `propagate` it leaves the
    policy without a vote.
    """

    def __init__(self, spans: Sequence[Condition], events: Sequence[Condition], mode: ErrorMode) -> None:
        conditions = (*spans, *events)
        fields = frozenset().union(*(condition.reads for condition in conditions))
        columns = frozenset().union(*(condition.columns for condition in conditions))
        self.reads = Reads(columns, fields | {"events"} if events else fields)
        self.reason = "a span or event meets one of its conditions"
        self._spans = spans
        self._events = events
        self._propagates = self.may_fail = mode == "propagate"
        closely = mode in ("propagate", "ignore")
        needed = [condition.matters_with if closely else condition.holds_with for condition in conditions]
        known = [sought for sought in needed if sought is not None]
        self.gates = frozenset().union(*known) if len(known) == len(needed) else None
        self._log: Log | None = None
        self._logs = mode == "ignore"
        self._silent_until = 0

    def attach(self, context: Context, name: str) -> None:
        """Take the log, for conditions without an answer."""
        if self._logs:
            self._log = partial(context.log.warning, "%s: no answer of the condition %s: %s", name)

    def vote(self, trace: Evidence) -> Decision:
        """Ask the conditions that a look at the trace as a whole does not rule out."""
        if self._log is None or trace.now < self._silent_until:
            return "sampled" if self._first_that_holds(trace, self._propagates) else "not_sampled"
        failed: list[_Failed] = []
        held = self._first_that_holds(trace, True, failed.append)
        if failed:
            self._log(failed[0].condition.text, str(failed[0].error))
            self._silent_until = trace.now + _QUIET
        return "sampled" if held else "not_sampled"

    def revote(self, trace: Evidence) -> Decision:
        """Vote without a word in the log."""
        return "sampled" if self._first_that_holds(trace, self._propagates) else "not_sampled"

    def because(self, trace: Evidence) -> str:
        """Tell which condition holds, and on which span where that is read."""
        held = self._first_that_holds(trace, self._propagates)
        if held is None:
            return self.reason
        where = "a span or event"
        if trace.tells:
            where = f"{'' if held.condition in self._spans else 'an event of '}span {name_of(held.span)}"
        return f"{where} meets {held.condition.text}"

    def why_not(self, trace: Evidence) -> str:
        """Tell which conditions hold nowhere, and why one of them has no answer."""
        failed: list[_Failed] = []
        self._first_that_holds(trace, True, failed.append)
        texts = " or ".join(condition.text for condition in (*self._spans, *self._events))
        unsure = f"; {failed[0].condition.text} has no answer: {failed[0].error}" if failed else ""
        return f"no span or event meets {texts}{unsure}"

    def _first_that_holds(self, trace: Evidence, errors_matter: bool, note: _Note | None = None) -> _Holding | None:
        """Return the condition that decides, with its span. NoVote when one has no answer and that is to be told."""
        spans = _worth_asking(self._spans, trace, errors_matter)
        events = _worth_asking(self._events, trace, errors_matter)
        if not spans and not events:
            return None
        for telemetry in _spans_of(trace):
            held = self._holding(spans, telemetry, note)
            if held:
                return _Holding(held, cast("SpanFields", telemetry.span))
            if events:
                for event in telemetry.span.events:
                    telemetry.event = read_event(event)
                    held = self._holding(events, telemetry, note)
                    if held:
                        return _Holding(held, cast("SpanFields", telemetry.span))
        return None

    def _holding(self, conditions: Sequence[Condition], telemetry: Telemetry, note: _Note | None) -> Condition | None:
        for condition in conditions:
            try:
                if condition.holds(telemetry):
                    return condition
            except EvaluationError as error:
                if self._propagates:
                    raise NoVote(f"{condition.text}: {error}") from None
                if note:
                    note(_Failed(condition, error))
        return None


def _worth_asking(conditions: Sequence[Condition], trace: Evidence, errors_matter: bool) -> Sequence[Condition]:
    """Return the conditions that may hold, or that may fail where that matters."""
    if errors_matter:
        return [condition for condition in conditions if condition.may_matter(trace)]
    return [condition for condition in conditions if condition.may_hold(trace)]


def _spans_of(trace: Evidence) -> Iterator[Telemetry]:
    """Yield the spans in order of arrival, in one object that is used again."""
    telemetry = Telemetry()
    telemetry.now = trace.now
    for header, spans in trace.under_headers():
        telemetry.resource, telemetry.scope = header
        for span in spans:
            telemetry.span = cast("SpanData", span)
            yield telemetry


def policy_of(spans: Sequence[str], events: Sequence[str], mode: ErrorMode) -> OttlCondition:
    """Return the policy of these conditions.

    Raises:
        ValueError: some can't be read: which, where and why.
    """
    on_spans, on_events = together(
        partial(_compiled, "span", spans, SPAN), partial(_compiled, "spanevent", events, SPAN_EVENT)
    )
    return OttlCondition(on_spans, on_events, mode)


def _compiled(key: str, texts: Sequence[str], context: PathContext) -> Sequence[Condition]:
    with below(key):
        return each(partial(_condition, context=context), texts)


def _condition(text: str, context: PathContext) -> Condition:
    try:
        return Condition(text, context)
    except ConditionError as error:
        raise ValueError(f"line {error.line}, column {error.column} of {text!r}: {error.problem}") from None
