"""The policies that stand for themselves: alone, or as parts of `and`, `not`, `drop` and `composite`.

A new one takes a module beside this one and a line here.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import ConfigDict, Field, model_validator

from podtrail.config.mistakes import below
from podtrail.config.problem import did_you_mean
from podtrail.config.types import Model, WarningPath
from podtrail_processors.tail_sampling.policies.about_pod import Config as AboutPod
from podtrail_processors.tail_sampling.policies.always_sample import Config as AlwaysSample
from podtrail_processors.tail_sampling.policies.attempts import Config as Attempts
from podtrail_processors.tail_sampling.policies.boolean_attribute import Config as BooleanAttribute
from podtrail_processors.tail_sampling.policies.bytes_limiting import Config as BytesLimiting
from podtrail_processors.tail_sampling.policies.latency import Config as Latency
from podtrail_processors.tail_sampling.policies.latency_quantile import Config as LatencyQuantile
from podtrail_processors.tail_sampling.policies.new_reason import Config as NewReason
from podtrail_processors.tail_sampling.policies.numeric_attribute import Config as NumericAttribute
from podtrail_processors.tail_sampling.policies.ottl_condition import Config as OttlCondition
from podtrail_processors.tail_sampling.policies.probabilistic import Config as Probabilistic
from podtrail_processors.tail_sampling.policies.python import Config as Python
from podtrail_processors.tail_sampling.policies.queue_wait import Config as QueueWait
from podtrail_processors.tail_sampling.policies.rate_limiting import Config as RateLimiting
from podtrail_processors.tail_sampling.policies.recovered import Config as Recovered
from podtrail_processors.tail_sampling.policies.rejected_by import Config as RejectedBy
from podtrail_processors.tail_sampling.policies.scheduling_result import Config as SchedulingResult
from podtrail_processors.tail_sampling.policies.slow_attempt import Config as SlowAttempt
from podtrail_processors.tail_sampling.policies.span_count import Config as SpanCount
from podtrail_processors.tail_sampling.policies.status_code import Config as StatusCode
from podtrail_processors.tail_sampling.policies.string_attribute import Config as StringAttribute
from podtrail_processors.tail_sampling.policies.target_rate import Config as TargetRate
from podtrail_processors.tail_sampling.policies.trace_flags import Config as TraceFlags
from podtrail_processors.tail_sampling.policies.trace_state import Config as TraceState
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig


class Leaf(Model):
    """A policy: its name, its type and, under a key like the type, its settings.

    Settings of other types are checked but unused, an unknown key is passed over if a map stands under it: all as in
    the Collector.
    """

    model_config = ConfigDict(extra="allow", populate_by_name=False)

    plain: ClassVar[frozenset[str]] = frozenset({"name", "type"})
    """The keys that are not named like a type."""

    name: str = Field("", description="The name that verdicts and metrics show.")
    type: str = Field("", description="The type of the policy.")
    about_pod: AboutPod = Field(
        AboutPod(), description="Traces that say of a Pod, an Event, a sandbox or a container which it is."
    )
    always_sample: AlwaysSample = Field(AlwaysSample(), description="Every trace.")
    attempts: Attempts = Field(Attempts(), description="Scheduling attempts of Pods that were tried at least so often.")
    boolean_attribute: BooleanAttribute = Field(
        BooleanAttribute(), description="Traces with an attribute that is true, or false."
    )
    bytes_limiting: BytesLimiting = Field(
        BytesLimiting(), description="As many traces as so many bytes a second allow."
    )
    latency: Latency = Field(Latency(), description="Traces that took longer than a threshold.")
    latency_quantile: LatencyQuantile = Field(
        LatencyQuantile(), description="Scheduling attempts slower than nearly all recent ones of their profile."
    )
    new_reason: NewReason = Field(
        NewReason(), description="Failed scheduling attempts, the first of each kind of reasons."
    )
    numeric_attribute: NumericAttribute = Field(
        NumericAttribute(), description="Traces with an integer attribute within bounds."
    )
    ottl_condition: OttlCondition = Field(
        OttlCondition(), description="Traces of which a span or an event meets a condition in the Collector's language."
    )
    probabilistic: Probabilistic = Field(Probabilistic(), description="A share of all traces.")
    python: Python = Field(Python(), description="Traces that a function or class of your own says yes to.")
    queue_wait: QueueWait = Field(
        QueueWait(), description="Scheduling attempts whose Pod had waited long in the queue."
    )
    rate_limiting: RateLimiting = Field(RateLimiting(), description="As many traces as so many spans a second allow.")
    recovered: Recovered = Field(
        Recovered(), description="Scheduling attempts that got their Pod a node after others had failed."
    )
    rejected_by: RejectedBy = Field(RejectedBy(), description="Scheduling attempts in which a plugin rejected nodes.")
    scheduling_result: SchedulingResult = Field(
        SchedulingResult(), description="Scheduling attempts that ended in one of these results."
    )
    slow_attempt: SlowAttempt = Field(
        SlowAttempt(), description="Scheduling attempts that took too long, in all or in a part."
    )
    span_count: SpanCount = Field(SpanCount(), description="Traces by their number of spans.")
    status_code: StatusCode = Field(StatusCode(), description="Traces with a span of this status.")
    string_attribute: StringAttribute = Field(
        StringAttribute(), description="Traces with an attribute of one of these values."
    )
    target_rate: TargetRate = Field(
        TargetRate(), description="As many traces as a target allows, chosen by probabilities that follow the traffic."
    )
    trace_flags: TraceFlags = Field(TraceFlags(), description="Traces of which a span carries the sampled flag.")
    trace_state: TraceState = Field(TraceState(), description="Traces with one of these values in the trace state.")

    @model_validator(mode="before")
    @classmethod
    def _as_the_collector_reads_it(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        known = cls.types() | cls.plain
        for key, value in data.items():
            if key not in known and value is not None and not isinstance(value, Mapping):
                raise ValueError(f"unknown key {key!r}; a policy has name, type and {', '.join(sorted(cls.types()))}")
        return {key: value for key, value in data.items() if value is not None}

    @classmethod
    def types(cls) -> frozenset[str]:
        """Return the types that may stand here."""
        names = {field.alias or name for name, field in cls.model_fields.items()}
        return frozenset(names - cls.plain)

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: its type is unknown here or its settings can't be met.
        """
        types = self.types()
        if self.type not in types:
            raise ValueError(self._unknown(types))
        with below(self.type):
            return self._block().create()

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what its settings are hardly meant to do, and which of them do nothing."""
        if self.type not in self.types():
            return []
        found: list[tuple[WarningPath, str]] = [((self.type, *path), text) for path, text in self._block().lints()]
        fields = type(self).model_fields
        for name in sorted(self.model_fields_set & fields.keys() - self.plain):
            key = fields[name].alias or name
            if key != self.type:
                found.append(((key,), f"has no effect: the type is {self.type}"))
        found += [((key,), "is not known and passed over, as in the Collector") for key in self.model_extra or ()]
        return found

    def leaves(self) -> "Iterator[Leaf]":
        """Yield this policy and, if it is made of others, those."""
        yield self
        for value in vars(self._block()).values():
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Leaf):
                    yield from part.leaves()

    def memory_bound(self) -> int:
        """Return the bytes that this policy may remember, and those that it is made of."""
        return sum(leaf._block().memory_bound() for leaf in self.leaves())

    def _block(self) -> PolicyConfig:
        for name, field in type(self).model_fields.items():
            if (field.alias or name) == self.type:
                block = getattr(self, name)
                assert isinstance(block, PolicyConfig)
                return block
        raise AssertionError(self.type)

    def _unknown(self, types: frozenset[str]) -> str:
        supported = did_you_mean(self.type, sorted(types), "supported here")
        if not self.type:
            return f"a policy without type; {supported}"
        return f"unknown sampling policy type {self.type!r}; {supported}"
