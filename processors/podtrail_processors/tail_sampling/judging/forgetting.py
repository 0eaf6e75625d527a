"""Memories of policies, and of changed configurations, end with their time, though nothing comes."""

from collections.abc import Sequence
from typing import Final

from podtrail.config.types import SECOND
from podtrail.recent import first
from podtrail_processors.tail_sampling.voting.evaluator import PolicyMemory

_STEP: Final = SECOND


class Forgetting:
    """Has memories forget at the right time. They are looked at in steps, as deadlines are asked for often."""

    def __init__(self, memories: Sequence[PolicyMemory]) -> None:
        self._memories = memories
        self._due: int | None = None

    def include(self, memory: PolicyMemory) -> None:
        """Have one more memory forget at the right time."""
        self._memories = (*self._memories, memory)

    def deadline(self) -> int | None:
        """Return when something may be too old; None while nothing is remembered."""
        return self._due

    def watch(self) -> None:
        """Take note that policies may have learnt something. What gets younger meanwhile changes nothing."""
        if self._due is None and self._memories:
            self.plan()

    def saved(self) -> int | None:
        """Return when memories are looked at next."""
        return self._due

    def restore(self, due: int | None) -> None:
        """Look at memories at a saved time."""
        self._due = due

    def plan(self) -> None:
        """Look up when the first of it is too old."""
        due = first(memory.deadline() for memory in self._memories)
        self._due = None if due is None else due - due % -_STEP

    def expire(self, now: int) -> bool:
        """Forget what is too old at a time, Unix nanoseconds; return whether it was time to look."""
        if self._due is None or self._due > now:
            return False
        for memory in self._memories:
            memory.expire(now)
        self.plan()
        return True
