"""`target_rate`: so many spans, bytes or traces a second, with a probability for each key that follows the traffic.

Keys share the budget: rare ones are kept whole, frequent ones thinned. A trace is kept when its randomness reaches the
threshold of its key (OpenTelemetry's "TraceState: Probability Sampling"; the randomness is `rv`, else the last 56 bits
of the trace id). The threshold is written into the trace state of its spans (`ot=th:…`), so that kept traces weighted
by the inverse of their probability add up to all there were.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import Field, field_validator, model_validator

from podtrail.component import Context
from podtrail.config.types import HOUR, SECOND, PositiveDuration, WarningPath
from podtrail.otlp import Decision
from podtrail.recent import Recent
from podtrail.state import StateShape, known_version
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.probability import ALWAYS, probability_of
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig, PolicyMemory, label_of
from podtrail_processors.tail_sampling.voting.throughput import (
    LEAST_BUDGET,
    MOST_BUDGET,
    OTHER,
    FlowShare,
    SavedThroughput,
    Throughput,
)
from podtrail_processors.tail_sampling.voting.throughput_metrics import publish
from podtrail_processors.tail_sampling.voting.trace_key import TraceKey
from podtrail_processors.thresholds import MARK, Before, sampled_before

_MOST_REMEMBERED: Final = 4096
_TTL: Final = 24 * HOUR
_SHARE_BYTES: Final = 640
_FLOW_BYTES: Final = 1_100
"""What a remembered trace and a key take, as measured."""

_amounts: Mapping[str, Callable[[Evidence], int]] = {
    "spans": lambda trace: trace.total_spans,
    "bytes": lambda trace: len(trace.raw),
    "traces": lambda _: 1,
}


def _nobody() -> None:
    return


class _SavedRate(NamedTuple):
    threshold: int
    chosen: tuple[tuple[bytes, int, FlowShare], ...]
    throughput: SavedThroughput


_SHAPE: Final = StateShape[_SavedRate](_SavedRate)


def _forgotten(_trace_id: bytes, _share: FlowShare, _reason: str) -> None:
    """Do nothing: the words of an old decision are shorter then."""


class TargetRate(Evaluator):
    """Says yes by chance, with a probability that keeps what it says yes to near the target.

    What another policy keeps anyway counts as well, as it does for `rate_limiting`; within `and`, only what the parts
    before it have said yes to.
    """

    stateful = True
    dynamic = True

    def __init__(self, unit: str, throughput: Throughput, key: TraceKey) -> None:
        self.reads = Reads.union([key.reads, Reads(columns=frozenset({"trace_state"}))])
        self.reason = f"it is among those kept for a target of {throughput.budget:g} {unit}/s"
        self._unit = unit
        self._amount = _amounts[unit]
        self._throughput = throughput
        self._key = key
        self._threshold = ALWAYS
        self._chosen: Recent[bytes, FlowShare] = Recent(_MOST_REMEMBERED, _TTL, _forgotten)
        """By what share a trace was decided, of those last decided."""
        self._count_folded: Callable[[], None] = _nobody

    def attach(self, context: Context, name: str) -> None:
        """Show its keys in metrics."""
        self._count_folded = publish(self._throughput, self._unit, context.metrics, label_of(context.id, name))

    def take_over(self, predecessor: Evaluator) -> None:
        """Keep to the rates that were measured, if they are of the same keys in the same unit."""
        assert isinstance(predecessor, TargetRate)
        if (predecessor._unit, predecessor._key.names) == (self._unit, self._key.names):
            self._throughput.take_over(predecessor._throughput)
            self._chosen.move_in(predecessor._chosen)

    def memories(self) -> Sequence[PolicyMemory]:
        """Return by what shares traces were decided."""
        return (self._chosen,)

    def save_state(self) -> Any:
        """Return what was measured, and the shares of the traces last decided."""
        return _SavedRate(self._threshold, self._chosen.saved(), self._throughput.saved())

    def restore_state(self, version: int, state: Any) -> None:
        """Go on from what was measured."""
        known_version(version, 1)
        saved = _SHAPE.read(state)
        self._threshold = saved.threshold
        self._chosen.restore(saved.chosen)
        self._throughput.restore(saved.throughput)

    def vote(self, trace: Evidence) -> Decision:
        """Compare the randomness of the trace with the threshold of its key."""
        before = _before(trace)
        label, amount = self._key.of(trace), self._amount(trace)
        flow = self._throughput.admit(label, label, amount, probability_of(before.threshold), trace.now)
        if flow.label is OTHER:
            self._count_folded()
        self._threshold = max(flow.threshold, before.threshold)
        self._chosen.put(trace.trace_id, flow.share, trace.now)
        if flow.threshold > before.randomness:
            return "not_sampled"
        flow.kept += amount
        return "sampled"

    def threshold_of(self, trace: Evidence) -> int:  # noqa: ARG002 - that of the last vote
        """Return the threshold that it has just been compared with, or at which it had been sampled before."""
        return self._threshold

    def revote(self, trace: Evidence) -> Decision | None:
        """Return what it said, as long as it remembers by what threshold."""
        share = self._chosen.get(trace.trace_id)
        if share is None:
            return None
        return "not_sampled" if share.threshold > _before(trace).randomness else "sampled"

    def because(self, trace: Evidence) -> str:
        """Tell with what probability it was kept, and what that follows from."""
        return f"kept with {self._told(trace)}"

    def why_not(self, trace: Evidence) -> str:
        """Tell what probability it did not come up to, and what that follows from."""
        return f"not chosen, with {self._told(trace)}"

    def _told(self, trace: Evidence) -> str:
        share = self._chosen.get(trace.trace_id)
        if share is None:
            return f"a probability that is no longer known, for a target of {self._throughput.budget:g} {self._unit}/s"
        chance = f"probability {_percent(share.threshold)} (key {share.label}: "
        if not share.rate:
            return f"{chance}new)"
        rates = f"{_round(share.rate)} {self._unit}/s"
        if share.threshold == ALWAYS:
            return f"{chance}{rates} within a budget of {self._throughput.budget:g})"
        return f"{chance}{rates} for {_round(share.kept)} of a budget of {self._throughput.budget:g})"


def _before(trace: Evidence) -> Before:
    return sampled_before(trace.columns.trace_state if MARK in trace.raw else (), trace.trace_id)


def _percent(threshold: int) -> str:
    return f"{_round(100 * probability_of(threshold))} %"


def _round(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.2g}"


class Config(PolicyConfig):
    """Settings of `target_rate`."""

    spans_per_second: float | None = Field(None, gt=0, allow_inf_nan=False, description="Keep about so many spans.")
    bytes_per_second: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="Or keep about so many bytes, as spans come in OTLP."
    )
    traces_per_second: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="Or keep about so many traces."
    )
    key: tuple[str, ...] = Field(
        (),
        description="Attributes of the root span, or of a resource: traces that agree in them are kept with the same "
        "probability. Keys share the target so that rare ones are kept whole. Empty: one probability for all.",
    )
    adjustment_interval: PositiveDuration = Field(
        10 * SECOND,
        description="Over what time rates are measured; probabilities follow at its end, or as soon as more comes than "
        "was reckoned with.",
    )
    max_keys: int = Field(500, ge=1, le=2000, description="How many keys are told apart; all others share one.")
    minimum_percentage: float = Field(
        0.0, ge=0, le=100, description="No trace is kept with a lower probability, even if that exceeds the target."
    )

    @field_validator("spans_per_second", "bytes_per_second", "traces_per_second")
    @classmethod
    def _can_be_reckoned_with(cls, target: float | None) -> float | None:
        if target is not None and not LEAST_BUDGET <= target <= MOST_BUDGET:
            raise ValueError(f"must be from {LEAST_BUDGET:g} to {MOST_BUDGET:g}")
        return target

    @field_validator("adjustment_interval")
    @classmethod
    def _not_too_often(cls, interval: int) -> int:
        if interval < SECOND:
            raise ValueError("must be at least 1s")
        return interval

    @model_validator(mode="after")
    def _one_target(self) -> "Config":
        if len(self._targets()) > 1:
            raise ValueError("only one of spans_per_second, bytes_per_second and traces_per_second can be the target")
        return self

    def _targets(self) -> dict[str, float]:
        given = {unit: getattr(self, f"{unit}_per_second") for unit in _amounts}
        return {unit: target for unit, target in given.items() if target is not None}

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: no target is given.
        """
        if not (targets := self._targets()):
            raise ValueError("spans_per_second, bytes_per_second or traces_per_second must be given")
        ((unit, target),) = targets.items()
        throughput = Throughput(
            target, self.adjustment_interval, most_keys=self.max_keys, least=self.minimum_percentage / 100
        )
        return TargetRate(unit, throughput, TraceKey(self.key))

    def memory_bound(self) -> int:
        """Return the bytes of keys and of the traces last decided."""
        return self.max_keys * _FLOW_BYTES + _MOST_REMEMBERED * _SHARE_BYTES

    def shared_among(self, shards: int) -> "Config":
        """Return the settings of one of so many samplers."""
        shares = {f"{unit}_per_second": target / shards for unit, target in self._targets().items()}
        return self.model_copy(update=shares)

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        if self.minimum_percentage == 100:
            return [(("minimum_percentage",), "keeps everything, whatever the target")]
        return []
