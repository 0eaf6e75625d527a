"""`probabilistic_sampler`: keeps a share of all spans, chosen by their trace id. The Collector's processor, for traces.

Each span is decided by itself, at once; the same trace id gives the same answer but for the attribute
`sampling.priority` and for what trace states say.
"""

import math
import struct
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from podtrail.component import Context, Factory, Taken
from podtrail.component.passing import PassingProcessor
from podtrail.config.types import Model, WarningPath
from podtrail.otlp import Batch, Group, SpanFields, frame, raw_span_reader, read_key_value, set_trace_state, split
from podtrail_processors.probability import (
    ALWAYS,
    HEX_DIGITS,
    NEVER,
    SamplingState,
    probability_of,
    randomness_of,
    randomness_text,
    read_sampling_state,
    threshold_for,
)

_LEAST_PROBABILITY = 1 / NEVER
_BUCKET_BITS = 14
_BUCKETS = 1 << _BUCKET_BITS
_PRIORITY = "sampling.priority"
_PRIORITY_BYTES = _PRIORITY.encode()
_OFFSET, _PRIME, _MASK = 0x811C9DC5, 0x01000193, 2**32 - 1
_read = raw_span_reader({"trace_state", "attributes"})


def _whole(value: object) -> object:
    """Cut off a fraction, as the Collector does."""
    return int(value) if isinstance(value, float) and math.isfinite(value) else value


def _wrapped(value: object) -> object:
    """Cut a seed to 32 bits, as the Collector does; a negative one is refused."""
    whole = _whole(value)
    if isinstance(whole, int) and not isinstance(whole, bool):
        if whole < 0:
            raise ValueError("must not be negative")
        return whole & _MASK
    return value


class Config(Model):
    """Settings of `probabilistic_sampler`."""

    sampling_percentage: float = Field(
        0.0, description="The share of spans to keep, in percent; 0 keeps none but those with a `sampling.priority`."
    )
    mode: Literal["hash_seed", "equalizing", "proportional", ""] = Field(
        "",
        description="`hash_seed`: by a hash of the trace id, for spans that were not sampled before. `equalizing`: by "
        "the randomness in the trace state or the trace id, so that all have been sampled at least so far. "
        "`proportional`: likewise, but the share is taken of what arrives.",
    )
    hash_seed: Annotated[int, BeforeValidator(_wrapped)] = Field(
        0, description="Samplers with the same seed choose the same traces (`hash_seed` only)."
    )
    fail_closed: bool = Field(
        True, description="Drop spans whose sampling information is unusable or contradicts itself; else keep them."
    )
    sampling_precision: Annotated[int, BeforeValidator(_whole)] = Field(
        4,
        le=HEX_DIGITS,
        description="Hexadecimal digits of the threshold that is written, 1 to 14; below 0 it is rounded away.",
    )
    attribute_source: Literal["traceID", "record", ""] = Field(
        "traceID", description="Accepted from the Collector, where it is about logs."
    )
    from_attribute: str = Field("", description="Accepted from the Collector, where it is about logs.")
    sampling_priority: str = Field("", description="Accepted from the Collector, where it is about logs.")

    @model_validator(mode="after")
    def _in_range(self) -> Self:
        percentage = _single(self.sampling_percentage)
        if not math.isfinite(percentage):
            raise ValueError(f"sampling_percentage is {percentage}, which is no share")
        if percentage < 0:
            raise ValueError("sampling_percentage is negative")
        if 0 < percentage / 100 < _LEAST_PROBABILITY:
            raise ValueError("sampling_percentage is too small: at least 2**-56 of all")
        if self.sampling_precision == 0:
            raise ValueError("invalid sampling precision: 0")
        return self

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant."""
        if self.sampling_precision < 0 and self.mode in ("equalizing", "proportional"):
            return [(("sampling_precision",), "below 0 the threshold is rounded away: everything is kept, or nothing")]
        return []


class SpanRandomness(NamedTuple):
    """What a span brings for its decision."""

    randomness: int
    policy: str
    """How the randomness was found, for the metric."""
    state: SamplingState | None
    """The trace state, to be written when the span is kept; None to leave it as it is."""
    failed: bool
    """Whether the sampling information can't be used."""


class Sampler(NamedTuple):
    """A way to decide."""

    find: Callable[[bytes, SamplingState], SpanRandomness]
    decide: Callable[[SamplingState | None], int]
    """The threshold for a span with such a trace state."""


def make_sampler(config: Config) -> Sampler:
    """Return the way to decide that a configuration asks for."""
    percentage = _single(min(config.sampling_percentage, 100.0))
    ratio = max(percentage / 100, _LEAST_PROBABILITY)
    never = Sampler(_find_anything, lambda _state: NEVER)
    if percentage == 0:
        return never
    if config.mode == "equalizing":
        threshold = threshold_for(ratio, config.sampling_precision)
        return Sampler(_find_consistent, lambda state: max(threshold, (state and state.threshold) or ALWAYS))
    if config.mode == "proportional":
        return Sampler(_find_consistent, lambda state: _share_of(state, ratio, config.sampling_precision))
    accepted = int(_single(percentage * _single(_BUCKETS / 100)))
    if not accepted:
        return never
    seed = _hash(config.hash_seed.to_bytes(4, "little"))
    rejected = (_BUCKETS - accepted) << 42
    return Sampler(lambda trace_id, state: _find_hashed(seed, trace_id, state), lambda _state: rejected)


def _share_of(state: SamplingState | None, ratio: float, precision: int) -> int:
    before = state.threshold if state else None
    probability = ratio * (1.0 if before is None else probability_of(before))
    return NEVER if probability < _LEAST_PROBABILITY else threshold_for(probability, precision)


def _find_anything(_trace_id: bytes, state: SamplingState) -> SpanRandomness:
    return SpanRandomness(NEVER - 1, "sampling_priority", state, not state.sound)


def _find_consistent(trace_id: bytes, state: SamplingState) -> SpanRandomness:
    if not state.sound:
        return SpanRandomness(NEVER - 1, "missing_randomness", None, failed=True)
    explicit = state.randomness
    if explicit is None and not any(trace_id):
        return SpanRandomness(NEVER - 1, "missing_randomness", state, failed=True)
    if explicit is None:
        return SpanRandomness(randomness_of(trace_id), "trace_id_w3c", state, failed=False)
    return SpanRandomness(explicit, "sampling_randomness", state, failed=False)


def _find_hashed(seed: int, trace_id: bytes, state: SamplingState) -> SpanRandomness:
    """Find the randomness in a hash. Who uses it must not use trace states: what they say would be contradicted."""
    missing = not any(trace_id)
    policy = "missing_randomness" if missing else "trace_id_hash"
    hashed = _hash(trace_id, seed)
    bucket = hashed % _BUCKETS
    rest = hashed >> (32 - _BUCKET_BITS)
    randomness = NEVER - 1 if missing else (_BUCKETS - 1 - bucket) << 42 | ((rest ^ rest << 10) << 14) | bucket
    if not state.sound or state.rv or state.th:
        return SpanRandomness(randomness, policy, None, failed=True)
    state.rv = randomness_text(randomness)
    return SpanRandomness(randomness, policy, state, failed=missing)


def _hash(data: bytes, state: int = _OFFSET) -> int:
    """Return the FNV-1a hash of 32 bits; `state` is the hash of what stands before."""
    for byte in data:
        state = ((state ^ byte) * _PRIME) & _MASK
    return state


def _single(value: float) -> float:
    """Return a number as single precision holds it: the Collector computes shares so."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


class ProbabilisticSampler(PassingProcessor):
    """Decides on each span as it comes."""

    def __init__(self, config: Config, context: Context) -> None:
        self._sampler = make_sampler(config)
        self._when_failed = NEVER if config.fail_closed else ALWAYS
        self._ledger = context.ledger
        self._counted = context.metrics.counter(
            "otelcol_processor_probabilistic_sampler_count_traces_sampled",
            "Spans decided, by how their randomness was found.",
            ("policy", "sampled"),
        )

    def add(self, batch: Batch, now: int) -> Taken:  # noqa: ARG002 - nothing here depends on the time
        """Decide on each span."""
        groups = [kept for group in batch.groups if (kept := self._sample(group)) is not None]
        self._ledger.sampled_out += batch.span_count - sum(group.span_count for group in groups)
        return Taken([Batch(groups, batch.arrived, batch.verdicts)] if groups or batch.verdicts else [])

    def _sample(self, group: Group) -> Group | None:
        kept: list[bytes] = []
        for raw, span in zip(split(group.spans), _read(group.spans), strict=True):
            before = span.trace_state.decode("utf-8", "replace")
            found = self._sampler.find(group.trace_id, read_sampling_state(before))
            threshold, policy = self._threshold_for(span, found)
            sampled = threshold <= found.randomness
            self._counted.add(1, policy, "true" if sampled else "false")
            if not sampled:
                continue
            if found.state is None:
                kept.append(raw)
                continue
            found.state.update(threshold)
            after = found.state.text()
            kept.append(raw if after == before else set_trace_state(raw, after))
        return group._replace(spans=frame(kept), span_count=len(kept)) if kept else None

    def _threshold_for(self, span: SpanFields, found: SpanRandomness) -> tuple[int, str]:
        state, failed = found.state, found.failed
        if not failed and state is not None and (state.threshold or ALWAYS) > found.randomness:
            # It can't have been sampled at this threshold, so the threshold is of no use.
            state.th, failed = "", True
        priority = _priority_of(span)
        if priority is not None:
            return ALWAYS if priority else NEVER, "sampling_priority"
        return self._when_failed if failed else self._sampler.decide(state), found.policy


def _priority_of(span: SpanFields) -> bool | None:
    """Return whether the span asks to be kept or to be dropped; None when it does not say."""
    for pair in span.attributes:
        if _PRIORITY_BYTES in pair:
            key, value = read_key_value(pair)
            if key == _PRIORITY:
                return _wish(value)
    return None


def _wish(value: object) -> bool | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return None
    return value > 0


def _create(config: Config, context: Context) -> ProbabilisticSampler:
    return ProbabilisticSampler(config, context)


FACTORY = Factory(kind="processor", type="probabilistic_sampler", Config=Config, create=_create)
