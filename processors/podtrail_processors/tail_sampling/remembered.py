"""Decisions remembered after their trace is forgotten: the Collector's decision cache."""

from collections import OrderedDict
from collections.abc import Container

from podtrail.otlp import Decision
from podtrail_processors.tail_sampling.config import Config

TAIL = slice(8, 16)
"""The part of a trace id that counts."""


class DecisionCache:
    """The least recently used go first. Keyed by the last 8 bytes of the trace id alone, as in the Collector."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._policies: OrderedDict[bytes, str] = OrderedDict()

    @property
    def tails(self) -> Container[bytes]:
        """The tails of the ids that are remembered now: for a quick look that does not count as use."""
        return self._policies

    def put(self, trace_id: bytes, policy: str) -> bool:
        """Remember who decided about a trace; return whether there is room for any."""
        if self._size <= 0:
            return False
        tail = trace_id[TAIL]
        self._policies[tail] = policy
        self._policies.move_to_end(tail)
        if len(self._policies) > self._size:
            self._policies.popitem(last=False)
        return True

    def get(self, trace_id: bytes) -> str | None:
        """Return the policy ("" for none) that decided about a trace, None when nothing is remembered."""
        tail = trace_id[TAIL]
        policy = self._policies.get(tail)
        if policy is not None:
            self._policies.move_to_end(tail)
        return policy

    def take_over(self, predecessor: "DecisionCache") -> None:
        """Remember what another cache does, the oldest first, as far as there is room."""
        for tail, policy in predecessor._policies.items():
            self.put(tail.rjust(16, b"\0"), policy)

    def __bool__(self) -> bool:
        """Say whether anything can be remembered."""
        return self._size > 0


class Remembered:
    """The decisions that are remembered, on kept traces and on others."""

    def __init__(self, config: Config) -> None:
        self.kept = DecisionCache(config.decision_cache.sampled_cache_size)
        self.others = DecisionCache(config.decision_cache.non_sampled_cache_size)
        self.any = bool(self.kept) or bool(self.others)
        """Whether anything can be remembered."""

    def put(self, trace_id: bytes, decision: Decision, policy: str) -> bool:
        """Remember a decision; return whether there is a cache for it."""
        return (self.kept if decision == "sampled" else self.others).put(trace_id, policy)

    def recalls(self, trace_id: bytes) -> bool:
        """Say whether a decision on this trace is remembered."""
        return trace_id[TAIL] in self.kept.tails or trace_id[TAIL] in self.others.tails

    def take_over(self, predecessor: "Remembered") -> None:
        """Remember what another does."""
        self.kept.take_over(predecessor.kept)
        self.others.take_over(predecessor.others)
