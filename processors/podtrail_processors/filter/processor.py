"""Dropping what meets a condition, group by group; what meets none passes as the same bytes."""

from collections.abc import Iterator, Sequence
from typing import cast

from podtrail.component import Context, Taken
from podtrail.component.passing import PassingProcessor
from podtrail.config.types import MINUTE
from podtrail.otlp import Batch, Group, frame, keep_events, split
from podtrail.otlp.surroundings import read_event
from podtrail_processors.evidence.evidence import Evidence, Header, Readers, Reads
from podtrail_processors.evidence.sizes import Size
from podtrail_processors.filter.config import Config, ContextName, ErrorMode
from podtrail_processors.filter.contexts import compiled
from podtrail_processors.ottl import Condition, EvaluationError, SpanData, Telemetry

_QUIET = MINUTE
"""So long nothing more is logged about a condition that failed."""


class _Propagated(Exception):
    """A condition failed under `error_mode: propagate`: its batch is to be dropped."""


class FilterProcessor(PassingProcessor):
    """Applies groups of conditions in their order."""

    def __init__(self, config: Config, context: Context) -> None:
        self._ledger = context.ledger
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
        groups: Sequence[Group] = batch.groups
        try:
            for stage in self._stages:
                groups = stage.apply(groups, now)
        except _Propagated:
            self._ledger.drop("filter_error", batch.span_count)
            return Taken((Batch((), batch.arrived, batch.verdicts),) if batch.verdicts else ())
        dropped = batch.span_count - sum([group.span_count for group in groups])
        if dropped:
            self._ledger.sampled_out += dropped
            self._filtered.add(dropped, self._id)
        return Taken((Batch(groups, batch.arrived, batch.verdicts),) if groups or batch.verdicts else ())


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

    def apply(self, groups: Sequence[Group], now: int) -> Sequence[Group]:
        """Return what is left of these groups; those of which all is left are the same objects."""
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


class _HeaderConditions(_Stage):
    """Conditions on resources or scopes."""

    def apply(self, groups: Sequence[Group], now: int) -> Sequence[Group]:
        telemetry = Telemetry()
        telemetry.now = now
        met: dict[tuple[bytes, bytes], bool] = {}
        for header in dict.fromkeys(group[:2] for group in groups):
            telemetry.resource, telemetry.scope = header
            met[header] = self._any_holds(self._conditions, telemetry)
        return [group for group in groups if not met[group[:2]]]


class _OfSpans(_Stage):
    """Conditions that need the spans. Those that may hold are looked for in all groups together, then in each."""

    also_reads: frozenset[str] = frozenset()

    def __init__(self, conditions: Sequence[Condition], error_mode: ErrorMode, failures: _Failures) -> None:
        super().__init__(conditions, error_mode, failures)
        columns = frozenset().union(*(condition.columns for condition in conditions))
        fields = frozenset().union(*(condition.reads for condition in conditions))
        self._readers = Readers(Reads(columns, fields | self.also_reads))

    def apply(self, groups: Sequence[Group], now: int) -> Sequence[Group]:
        possible = self._worth_asking(self._conditions, self._evidence(groups, now)) if groups else []
        if not possible:
            return groups
        left: list[Group] = []
        for group in groups:
            evidence = self._evidence((group,), now)
            here = self._worth_asking(possible, evidence)
            kept = self._kept(group, here, evidence) if here else group
            if kept is not None:
                left.append(kept)
        return left

    def _kept(self, group: Group, conditions: Sequence[Condition], evidence: Evidence) -> Group | None:
        """Return what is left of a group, itself if that is all; None when nothing is."""
        raise NotImplementedError

    def _evidence(self, groups: Sequence[Group], now: int) -> Evidence:
        """Return what conditions are asked about at a glance."""
        raw = groups[0].spans if len(groups) == 1 else b"".join([group.spans for group in groups])
        counts = [group.span_count for group in groups]
        headers = [Header(group.resource, group.scope) for group in groups]
        return Evidence(groups[0].trace_id, raw, sum(counts), headers, counts, self._readers, now, Size())

    def _worth_asking(self, conditions: Sequence[Condition], evidence: Evidence) -> Sequence[Condition]:
        """Return the conditions that may hold, or that may fail where that matters."""
        return [condition for condition in conditions if self._is_worth_asking(condition, evidence)]

    def _is_worth_asking(self, condition: Condition, evidence: Evidence) -> bool:
        failures = self._failures
        errors_matter = self._propagates or (failures is not None and failures.are_wanted(condition, evidence.now))
        return condition.may_matter(evidence) if errors_matter else condition.may_hold(evidence)


class _SpanConditions(_OfSpans):
    """Conditions on spans."""

    def _kept(self, group: Group, conditions: Sequence[Condition], evidence: Evidence) -> Group | None:
        met = [self._any_holds(conditions, telemetry) for telemetry in _each(evidence)]
        if not any(met):
            return group
        kept = [raw for raw, drop in zip(split(group.spans), met, strict=True) if not drop]
        return group._replace(spans=frame(kept), span_count=len(kept)) if kept else None


class _EventConditions(_OfSpans):
    """Conditions on events of spans."""

    also_reads = frozenset({"events"})

    def _kept(self, group: Group, conditions: Sequence[Condition], evidence: Evidence) -> Group | None:
        kept = [self._kept_events(conditions, telemetry) for telemetry in _each(evidence)]
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


def _each(evidence: Evidence) -> Iterator[Telemetry]:
    """Yield the spans in order of arrival, in one object that is used again."""
    telemetry = Telemetry()
    telemetry.now = evidence.now
    for header, spans in evidence.under_headers():
        telemetry.resource, telemetry.scope = header
        for span in spans:
            telemetry.span = cast("SpanData", span)
            yield telemetry


_STAGES: dict[ContextName, type[_Stage]] = {
    "resource": _HeaderConditions,
    "scope": _HeaderConditions,
    "span": _SpanConditions,
    "spanevent": _EventConditions,
}
