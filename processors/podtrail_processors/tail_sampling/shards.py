"""`num_shards`: several samplers side by side, each for its share of the traces, as in the Collector.

Room, caches and rates are divided among them; a burst is not, for it says how large a single trace may be.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import BaseModel

from podtrail.component import Context, Taken
from podtrail.otlp import Batch, Group
from podtrail.state import PartlyRestored, StateError, StateShape, known_version
from podtrail_processors.tail_sampling.config.sampler import Config, DecisionCacheConfig, DecisionMemoryConfig
from podtrail_processors.tail_sampling.judging.instruments import Instruments
from podtrail_processors.tail_sampling.policies import bytes_limiting, composite, rate_limiting, target_rate
from podtrail_processors.tail_sampling.processor import Divisible, TailSampling, redistribute
from podtrail_processors.tail_sampling.voting.limiter import burst_of

_MASK = 2**64 - 1


_SHAPE: Final = StateShape[tuple[tuple[int, Any], ...]](tuple[tuple[int, Any], ...])


class Sharded:
    """Deals traces out by their id."""

    def __init__(self, make: Callable[[Config, Context], TailSampling], config: Config, context: Context) -> None:
        part = share_of(config)
        self._shards = [make(part, context) for _ in range(config.num_shards)]
        # Made last, so that the traces in memory are those of all.
        Instruments(context.metrics, lambda: sum(len(shard.memory.traces) for shard in self._shards), context.gates)

    def parts(self) -> Sequence[TailSampling]:
        """Return the samplers."""
        return self._shards

    state_version = 1

    def save_state(self) -> Any:
        """Return what its samplers hold and remember."""
        return tuple([(shard.state_version, shard.save_state()) for shard in self._shards])

    def restore_state(self, version: int, state: Any) -> None:
        """Have its samplers hold and remember what was saved.

        Raises:
            StateError: they can't.
            PartlyRestored: some of their policies begin empty.
        """
        known_version(version, 1)
        saved = _SHAPE.read(state)
        if len(saved) != len(self._shards):
            raise StateError(f"it is of {len(saved)} shards, not {len(self._shards)}")
        problems: list[str] = []
        for shard, one in zip(self._shards, saved, strict=True):
            try:
                shard.restore_state(*one)
            except PartlyRestored as partly:
                problems += partly.problems
        if problems:
            raise PartlyRestored(problems)

    def add(self, batch: Batch, now: int) -> Taken:
        """Hand spans to the samplers of their traces."""
        dealt: dict[int, list[Group]] = {}
        for group in batch.groups:
            dealt.setdefault(shard_of(group.trace_id, len(self._shards)), []).append(group)
        out = [Batch((), batch.arrived, batch.verdicts)] if batch.verdicts else []
        rest: list[Group] = []
        for at, groups in dealt.items():
            taken = self._shards[at].add(Batch(groups, batch.arrived), now)
            out += taken.out
            rest += taken.rest.groups if taken.rest else ()
        return Taken(out, Batch(rest, batch.arrived) if rest else None)

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        """Have the sampler with the earliest deadline judge what is due."""
        dues = [(due, at) for at, shard in enumerate(self._shards) if (due := shard.deadline()) is not None]
        if not dues or min(dues)[0] > now:
            return ()
        return self._shards[min(dues)[1]].expire(now, limit)

    def deadline(self) -> int | None:
        """Return when the next trace falls due."""
        return min((due for shard in self._shards if (due := shard.deadline()) is not None), default=None)

    def held(self) -> int:
        """Return the number of spans of undecided traces."""
        return sum(shard.held() for shard in self._shards)

    def held_since(self) -> int | None:
        """Return the arrival of the oldest undecided span."""
        return min((since for shard in self._shards if (since := shard.held_since()) is not None), default=None)

    def take_over(self, predecessor: Divisible, now: int) -> None:
        """Take what another sampler holds and remembers, however many shards it has."""
        others, shards = predecessor.parts(), len(self._shards)
        if len(others) == shards:
            for ours, other in zip(self._shards, others, strict=True):
                ours.take_over(other, now)
        else:
            redistribute(others, self._shards, lambda trace_id: shard_of(trace_id, shards), now)

    def drain(self, now: int) -> Sequence[Batch]:
        """Have all let go of everything."""
        return [batch for shard in self._shards for batch in shard.drain(now)]


def shard_of(trace_id: bytes, shards: int) -> int:
    """Return the number of a trace's shard: its id folded and mixed (the last step of splitmix64)."""
    mixed = int.from_bytes(trace_id[:8], "little") ^ int.from_bytes(trace_id[8:], "little")
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return (mixed ^ mixed >> 31) % shards


def share_of(config: Config) -> Config:
    """Return the configuration of one of `num_shards` samplers."""
    shards, caches, memory = config.num_shards, config.decision_cache, config.decision_memory
    return config.model_copy(
        update={
            "num_traces": max(1, config.num_traces // shards),
            "maximum_held_mib": _share(config.maximum_held_mib, shards),
            "decision_cache": DecisionCacheConfig(
                sampled_cache_size=_share(caches.sampled_cache_size, shards),
                non_sampled_cache_size=_share(caches.non_sampled_cache_size, shards),
            ),
            "decision_memory": DecisionMemoryConfig(
                kept=_share(memory.kept, shards), not_kept=_share(memory.not_kept, shards)
            ),
            "stress_relief": config.stress_relief.shared_among(shards),
            "policies": _divided(config.policies, shards),
            "shadow_policies": _divided(config.shadow_policies, shards),
        }
    )


def _share(rate: int, shards: int) -> int:
    """Return a shard's share of a limit; at least 1, for 0 would mean something else."""
    return max(1, rate // shards) if rate > 0 else rate


def _divided(value: Any, shards: int) -> Any:
    """Return settings with the rates in them divided."""
    if isinstance(value, tuple):
        return tuple(_divided(part, shards) for part in value)
    if not isinstance(value, BaseModel):
        return value
    changed: dict[str, Any] = {name: _divided(getattr(value, name), shards) for name in type(value).model_fields}
    match value:
        case rate_limiting.Config():
            changed["burst_capacity"] = burst_of(value.burst_capacity, value.spans_per_second)
            changed["spans_per_second"] = _share(value.spans_per_second, shards)
        case bytes_limiting.Config():
            changed["burst_capacity"] = burst_of(value.burst_capacity, value.bytes_per_second)
            changed["bytes_per_second"] = _share(value.bytes_per_second, shards)
        case composite.Config():
            changed["max_total_spans_per_second"] = _share(value.max_total_spans_per_second, shards)
        case target_rate.Config():
            return value.shared_among(shards)
        case _:
            pass
    return value.model_copy(update=changed)
