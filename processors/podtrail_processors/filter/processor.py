"""Dropping what meets a condition, group by group; what meets none passes as the same bytes."""

from collections.abc import Iterator, Sequence
from typing import cast

from podtrail.component import Context, Taken
from podtrail.config.types import MINUTE
from podtrail.otlp import Batch, Group, frame, keep_events, split
from podtrail.otlp.surroundings import read_event
from podtrail_processors.filter.config import Config, ContextName, ErrorMode
from podtrail_processors.filter.contexts import compiled
from podtrail_processors.ottl import Condition, EvaluationError, SpanData, Telemetry
from podtrail_processors.passing import Passing
from podtrail_processors.tail_sampling.evidence import Evidence, Header, Readers, Reads
from podtrail_processors.tail_sampling.measure import Size

_QUIET = MINUTE
"""So long nothing more is logged about a condition that failed."""


class _Propagated(Exception):
    """A condition had no answer, and its batch is to be dropped for that."""


class Filter(Passing):
    """Applies groups of conditions in their order."""

    def __init__(self, config: Config, context: Context) -> None:
        self._account = context.account
        failures = _Failures(context)
        self._stages = [
            _STAGES[group.meant()](
                [compiled(text, group.meant()) for text in group.conditions],
                group.error_mode or config.error_mode,
                failures,
            )
            for group in config.groups()
        ]
        self._filtered = context.metrics.counter(
            "otelcol_processor_filter_spans.filtered", "Spans dropped because they met a condition.", ("filter",)
        )
        self._id = context.id

    def add(self, batch: Batch, now: int) -> Taken:
        """Drop what meets a condition."""
        try:
            groups = [kept for group in batch.groups if (kept := self._filter(group, now)) is not None]
        except _Propagated:
            self._account.drop("filter_error", batch.span_count)
            return Taken((Batch((), batch.arrived, batch.verdicts),) if batch.verdicts else ())
        dropped = batch.span_count - sum([group.span_count for group in groups])
        if dropped:
            self._account.sampled_out += dropped
            self._filtered.add(dropped, self._id)
        return Taken((Batch(groups, batch.arrived, batch.verdicts),) if groups or batch.verdicts else ())

    def _filter(self, group: Group, now: int) -> Group | None:
        left: Group | None = group
        for stage in self._stages:
            if left is None:
                break
            left = stage.apply(left, now)
        return left


class _Failures:
    """Logs conditions that have no answer, each from time to time."""

    def __init__(self, context: Context) -> None:
        self._log = context.log
        self._silent_until: dict[str, int] = {}

    def are_wanted(self, condition: Condition, now: int) -> bool:
        """Say whether a failure would be logged."""
        return self._silent_until.get(condition.text, 0) <= now

    def note(self, condition: Condition, error: EvaluationError, now: int) -> None:
        """Log a failure if it is time to."""
        if self.are_wanted(condition, now):
            self._silent_until[condition.text] = now + _QUIET
            self._log.warning("no answer of the condition %s: %s", condition.text, error)


class _Stage:
    """Conditions that are about the same."""

    def __init__(self, conditions: Sequence[Condition], error_mode: ErrorMode, failures: _Failures) -> None:
        self._conditions = conditions
        self._propagates = error_mode == "propagate"
        self._failures = None if error_mode == "silent" else failures

    def apply(self, group: Group, now: int) -> Group | None:
        """Return what is left of a group, itself if that is all; None when nothing is."""
        raise NotImplementedError

    def _any_holds(self, conditions: Sequence[Condition], telemetry: Telemetry) -> bool:
        for condition in conditions:
            try:
                if condition.holds(telemetry):
                    return True
            except EvaluationError as error:
                if self._failures:
                    self._failures.note(condition, error, telemetry.now)
                if self._propagates:
                    raise _Propagated from None
        return False


class _Around(_Stage):
    """Conditions on resources or scopes."""

    def apply(self, group: Group, now: int) -> Group | None:
        telemetry = Telemetry()
        telemetry.now, telemetry.resource, telemetry.scope = now, group.resource, group.scope
        return None if self._any_holds(self._conditions, telemetry) else group


class _OfSpans(_Stage):
    """Conditions that need the spans; a look at a group as a whole tells which of them may hold in it."""

    also_reads: frozenset[str] = frozenset()

    def __init__(self, conditions: Sequence[Condition], error_mode: ErrorMode, failures: _Failures) -> None:
        super().__init__(conditions, error_mode, failures)
        columns = frozenset().union(*(condition.columns for condition in conditions))
        fields = frozenset().union(*(condition.reads for condition in conditions))
        self._readers = Readers(Reads(columns, fields | self.also_reads))

    def _possible(self, group: Group, now: int) -> tuple[Evidence, list[Condition]]:
        header = Header(group.resource, group.scope)
        evidence = Evidence(
            *(group.trace_id, group.spans, group.span_count, [header], [group.span_count], self._readers, now, Size())
        )
        return evidence, [condition for condition in self._conditions if self._is_worth_asking(condition, evidence)]

    def _is_worth_asking(self, condition: Condition, group: Evidence) -> bool:
        """Say whether a condition may hold in a group, or may fail where that matters."""
        failures = self._failures
        errors_matter = self._propagates or (failures is not None and failures.are_wanted(condition, group.now))
        return condition.may_matter(group) if errors_matter else condition.may_hold(group)

    def _each(self, evidence: Evidence, now: int) -> Iterator[Telemetry]:
        telemetry = Telemetry()
        telemetry.now = now
        for header, spans in evidence.under_headers():
            telemetry.resource, telemetry.scope = header
            for span in spans:
                telemetry.span = cast("SpanData", span)
                yield telemetry


class _Spans(_OfSpans):
    """Conditions on spans."""

    def apply(self, group: Group, now: int) -> Group | None:
        evidence, possible = self._possible(group, now)
        if not possible:
            return group
        met = [self._any_holds(possible, telemetry) for telemetry in self._each(evidence, now)]
        if not any(met):
            return group
        kept = [raw for raw, drop in zip(split(group.spans), met, strict=True) if not drop]
        return group._replace(spans=frame(kept), span_count=len(kept)) if kept else None


class _Events(_OfSpans):
    """Conditions on events of spans."""

    also_reads = frozenset({"events"})

    def apply(self, group: Group, now: int) -> Group | None:
        evidence, possible = self._possible(group, now)
        if not possible:
            return group
        kept = [self._kept_events(possible, telemetry) for telemetry in self._each(evidence, now)]
        if all(positions is None for positions in kept):
            return group
        spans = [
            raw if positions is None else keep_events(raw, positions)
            for raw, positions in zip(split(group.spans), kept, strict=True)
        ]
        return group._replace(spans=frame(spans))

    def _kept_events(self, conditions: Sequence[Condition], telemetry: Telemetry) -> frozenset[int] | None:
        """Return the positions of the events that stay; None when all do."""
        events = telemetry.span.events
        kept = []
        for at, event in enumerate(events):
            telemetry.event = read_event(event)
            if not self._any_holds(conditions, telemetry):
                kept.append(at)
        return frozenset(kept) if len(kept) < len(events) else None


_STAGES: dict[ContextName, type[_Stage]] = {
    "resource": _Around,
    "scope": _Around,
    "span": _Spans,
    "spanevent": _Events,
}
