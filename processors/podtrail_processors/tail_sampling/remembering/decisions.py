"""Decisions remembered after their trace is forgotten: the Collector's decision cache, and a compact memory."""

from collections.abc import Container
from typing import NamedTuple

from podtrail.component import Context
from podtrail.lru import Lru
from podtrail.otlp import Decision
from podtrail_processors.probability import ALWAYS
from podtrail_processors.tail_sampling.config.sampler import Config
from podtrail_processors.tail_sampling.remembering.decision_memory import DecisionMemory, SavedDecisions

TAIL = slice(8, 16)
"""The part of a trace id that counts."""


class DecisionCache:
    """The least recently used go first. Keyed by the last 8 bytes of the trace id alone, as in the Collector."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._policies: Lru[bytes, str] = Lru(size)
        self._thresholds: dict[bytes, int] = {}
        """Of those that were not kept for sure."""

    @property
    def tails(self) -> Container[bytes]:
        """The tails of the ids that are remembered now: for a quick look that does not count as use."""
        return self._policies

    def put(self, trace_id: bytes, policy: str, threshold: int = ALWAYS) -> bool:
        """Remember who decided about a trace, at what threshold; return whether there is room for any."""
        if self._size <= 0:
            return False
        tail = trace_id[TAIL]
        forgotten = self._policies.put(tail, policy)
        if threshold != ALWAYS:
            self._thresholds[tail] = threshold
        if forgotten is not None:
            self._thresholds.pop(forgotten[0], None)
        return True

    def get(self, trace_id: bytes) -> str | None:
        """Return the policy ("" for none) that decided about a trace, None when nothing is remembered."""
        tail = trace_id[TAIL]
        policy = self._policies.get(tail)
        if policy is not None:
            self._policies.move_to_end(tail)
        return policy

    def threshold_of(self, trace_id: bytes) -> int:
        """Return the threshold at which a trace was kept."""
        return self._thresholds.get(trace_id[TAIL], ALWAYS)

    def discard(self, trace_id: bytes) -> bool:
        """Forget a decision; return whether one was remembered."""
        self._thresholds.pop(trace_id[TAIL], None)
        return self._policies.pop(trace_id[TAIL], None) is not None

    def take_over(self, predecessor: "DecisionCache") -> None:
        """Remember what another cache does, the oldest first, as far as there is room."""
        for tail, policy in predecessor._policies.items():
            self.put(tail.rjust(16, b"\0"), policy, predecessor._thresholds.get(tail, ALWAYS))

    def saved(self) -> "SavedCache":
        """Return all that is remembered."""
        return SavedCache(tuple(self._policies.items()), tuple(self._thresholds.items()))

    def restore(self, saved: "SavedCache") -> None:
        """Remember what was saved."""
        for tail, policy in saved.policies:
            self._policies.put(tail, policy)
        self._thresholds.update([(tail, threshold) for tail, threshold in saved.thresholds if tail in self._policies])

    def __bool__(self) -> bool:
        """Say whether anything can be remembered."""
        return self._size > 0


class SavedCache(NamedTuple):
    """A cache in a saved state, by the tails of ids."""

    policies: tuple[tuple[bytes, str], ...]
    thresholds: tuple[tuple[bytes, int], ...]


class SavedRemembered(NamedTuple):
    """All remembered decisions in a saved state."""

    kept: SavedCache
    others: SavedCache
    compact: SavedDecisions | None


class Remembered:
    """The decisions that are remembered, on kept traces and on others."""

    def __init__(self, config: Config, context: Context) -> None:
        caches, memory = config.decision_cache, config.decision_memory
        self._caches_kept = caches.sampled_cache_size > 0
        rescued = caches.non_sampled_cache_size if config.rescue_late_errors else 0
        self.kept = DecisionCache(max(caches.sampled_cache_size, rescued))
        self.others = DecisionCache(caches.non_sampled_cache_size)
        self.compact: DecisionMemory | None = None
        """Asked about traces that are neither in memory nor in a cache."""
        if memory.kept or memory.not_kept:
            self.compact = DecisionMemory(memory, context.rng.randbytes(16), context.metrics)
        self.any = bool(self.kept) or bool(self.others)
        """Whether there is a cache, of any kind."""
        self.active = self.any or self.compact is not None
        """Whether anything can be remembered."""

    def put(self, trace_id: bytes, decision: Decision, policy: str, threshold: int = ALWAYS) -> bool:
        """Remember a decision; return whether there is room for any of its kind."""
        if decision == "sampled":
            known = self._caches_kept and self.kept.put(trace_id, policy, threshold)
        else:
            known = self.others.put(trace_id, policy)
        if self.compact is not None:
            known = self.compact.put(trace_id, decision) or known
        return known

    def rescue(self, trace_id: bytes, policy: str) -> None:
        """Remember a trace as kept that was not, wherever it is remembered."""
        if self.others.discard(trace_id):
            self.kept.put(trace_id, policy)
        if self.compact is not None:
            self.compact.change(trace_id)

    def recalls(self, trace_id: bytes) -> bool:
        """Say whether a cache has the decision on this trace."""
        return trace_id[TAIL] in self.kept.tails or trace_id[TAIL] in self.others.tails

    def take_over(self, predecessor: "Remembered") -> None:
        """Remember what another does."""
        self.kept.take_over(predecessor.kept)
        self.others.take_over(predecessor.others)
        if self.compact is not None and predecessor.compact is not None:
            self.compact.take_over(predecessor.compact)

    def saved(self) -> SavedRemembered:
        """Return all that is remembered."""
        compact = None if self.compact is None else self.compact.saved()
        return SavedRemembered(self.kept.saved(), self.others.saved(), compact)

    def restore(self, saved: SavedRemembered) -> None:
        """Remember what was saved."""
        if self.compact is not None and saved.compact is not None:
            self.compact.restore(saved.compact)
        self.kept.restore(saved.kept)
        self.others.restore(saved.others)

    def __bool__(self) -> bool:
        """Say whether anything can be remembered."""
        return self.active
