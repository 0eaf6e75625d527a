"""`slow_attempt`: scheduling attempts that took too long, as a whole, in a phase, in a plugin or in the queue.

Names are KEP-5927's: the root `SchedulePod` with `scheduler.queue_wait_ms`, phases by their span name (`filter`),
plugins as `plugin: <Name>`.
"""

from collections.abc import Mapping

from pydantic import Field

from podtrail.config.types import MILLISECOND, PositiveDuration, format_duration
from podtrail.otlp import ROOT_NAME, Decision, SpanFields
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig
from podtrail_processors.tail_sampling.voting.words import milliseconds, some

_ROOT = ROOT_NAME.encode()
_PLUGIN_PREFIX = "plugin: "
_TIMES = frozenset({"start_time_unix_nano", "end_time_unix_nano"})


class SlowAttempt(Evaluator):
    """Says yes when a span of a given name took longer than its limit. Nothing is said about traces without a root.

    Spans without start or end, or that end before they start, have no length and are passed over.
    """

    reads = Reads(_TIMES, _TIMES | {"name"})

    def __init__(self, limits: Mapping[str, int]) -> None:
        self.reason = "it took longer than allowed: " + ", ".join(
            f"{name} {format_duration(limit)}" for name, limit in limits.items()
        )
        self._shortest = min(limits.values())
        self._limits = {name.encode(): limit for name, limit in limits.items()}

    def vote(self, trace: Evidence) -> Decision:
        """Compare the length of every span that has a limit."""
        return "sampled" if self.slow_span(trace) else "not_sampled"

    def because(self, trace: Evidence) -> str:
        """Tell which part took how long."""
        return self._told(self.slow_span(trace)) or self.reason

    def why_not(self, trace: Evidence) -> str:
        """Tell how long the parts that have a limit took at most."""
        if _ROOT not in trace.raw:
            return f"it has no span {ROOT_NAME}"
        longest: dict[bytes, int] = {}
        for span in trace.detailed:
            if span.name in self._limits and span.start_time_unix_nano:
                took = span.end_time_unix_nano - span.start_time_unix_nano
                longest[span.name] = max(took, longest.get(span.name, 0))
        told = [
            f"{name.decode()} took {milliseconds(took)}, not longer than {format_duration(self._limits[name])}"
            for name, took in longest.items()
        ]
        return some(told) if told else f"it has no span {some([name.decode() for name in self._limits], ' or ')}"

    def slow_span(self, trace: Evidence) -> SpanFields | None:
        """Return the first span that took too long."""
        first, last, _ = trace.extent
        # No span is longer than its trace, which is soon measured.
        if last - first <= self._shortest or _ROOT not in trace.raw:
            return None
        limit_of = self._limits.get
        for span in trace.detailed:
            limit, start = limit_of(span.name), span.start_time_unix_nano
            if limit is not None and start and span.end_time_unix_nano - start > limit:
                return span
        return None

    def _told(self, span: SpanFields | None) -> str:
        if span is None:
            return ""
        took, limit = span.end_time_unix_nano - span.start_time_unix_nano, self._limits[span.name]
        return f"{span.name.decode()} took {took // MILLISECOND} ms, longer than {format_duration(limit)}"


class SlowQueue(Evaluator):
    """Says yes when the Pod of a `SchedulePod` waited in the queue longer than the limit, or when `also` says yes."""

    def __init__(self, limit: int, also: SlowAttempt | None) -> None:
        self.reason = f"its Pod waited longer than {format_duration(limit)} in the queue"
        if also:
            self.reads = also.reads
            self.reason += f" or {also.reason}"
        self._limit = limit
        self._also = also

    def vote(self, trace: Evidence) -> Decision:
        """Look at the wait that the roots tell."""
        slow = self._longest_wait(trace) > self._limit or (self._also and self._also.slow_span(trace))
        return "sampled" if slow else "not_sampled"

    def because(self, trace: Evidence) -> str:
        """Tell how long the Pod waited, or which part took how long."""
        waited = self._longest_wait(trace)
        if waited <= self._limit:
            return self._also.because(trace) if self._also else self.reason
        return f"its Pod waited {waited / MILLISECOND:g} ms in the queue, longer than {format_duration(self._limit)}"

    def why_not(self, trace: Evidence) -> str:
        """Tell how long the Pod waited, and how long the parts took."""
        limit = format_duration(self._limit)
        waited = self._longest_wait(trace)
        told = f"its Pod waited {waited / MILLISECOND:g} ms in the queue, not longer than {limit}"
        if not waited:
            told = f"no {ROOT_NAME} tells of a wait in the queue"
        return told + (f"; {self._also.why_not(trace)}" if self._also else "")

    def _longest_wait(self, trace: Evidence) -> int:
        return max((attempt.queue_wait or 0 for attempt in trace.attempts), default=0)


class Config(PolicyConfig):
    """Settings of `slow_attempt`."""

    threshold: PositiveDuration | None = Field(None, description="Keep attempts that took longer than this.")
    phases: dict[str, PositiveDuration] = Field(
        {}, description="Keep attempts with a phase (filter, score, bindingCycle, …) longer than this."
    )
    plugins: dict[str, PositiveDuration] = Field(
        {}, description="Keep attempts in which a plugin took longer than this in one phase."
    )
    queue_wait: PositiveDuration | None = Field(
        None, description="Keep attempts whose Pod had waited in the scheduling queue longer than this."
    )

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: no limit is given.
        """
        limits = dict(self.phases) | {_PLUGIN_PREFIX + name: limit for name, limit in self.plugins.items()}
        if self.threshold is not None:
            limits[ROOT_NAME] = self.threshold
        spans = SlowAttempt(limits) if limits else None
        if self.queue_wait is not None:
            return SlowQueue(self.queue_wait, spans)
        if spans is None:
            raise ValueError("threshold, phases, plugins or queue_wait must be given")
        return spans
