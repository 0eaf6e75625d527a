"""Memories that only enrich spans or pages: under memory pressure they shrink before a span is refused."""

from typing import Protocol
from weakref import WeakSet


class EnrichingMemory(Protocol):
    """A bounded memory whose loss costs numbers, links or pages, never a span or a sampling decision."""

    def memory_size(self) -> int:
        """Return about how many bytes it takes."""

    def shrink(self) -> None:
        """Forget the older half, or all that a memory of few entries has."""


class EnrichingMemories:
    """The enriching memories of a process. A component that a reload has replaced drops out by itself."""

    def __init__(self) -> None:
        self._memories: WeakSet[EnrichingMemory] = WeakSet()

    def register(self, memory: EnrichingMemory) -> None:
        """Add a memory; it is not kept alive for this."""
        self._memories.add(memory)

    def size(self) -> int:
        """Return about how many bytes all of them take."""
        return sum(memory.memory_size() for memory in self._memories)

    def shrink(self) -> None:
        """Have each forget the older half."""
        for memory in self._memories:
            memory.shrink()
