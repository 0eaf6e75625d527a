"""The ledger: no span leaves without a line in it.

Every pipeline has one ledger, every exporter of a pipeline one of its own. At any moment, for each of them,

    received + created = delivered + sampled_out + rejected + dropped{reason} + in_memory + in_queue

`in_memory` and `in_queue` are asked of the processors and queues that hold the spans, never computed from the rest, so
the equation can fail and a test can see it fail.
"""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Ledger:
    """Sums of spans, from the start. A pipeline's ledger or an exporter's part of it."""

    received: int = 0
    """Taken in by the pipeline."""
    created: int = 0
    """Made by a processor: amendment spans."""
    delivered: int = 0
    """Acknowledged by an exporter."""
    sampled_out: int = 0
    """Let go on purpose by a decision."""
    rejected: int = 0
    """Refused for good by the other side or as invalid."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Lost, by reason."""

    def drop(self, reason: str, spans: int) -> None:
        """Count lost spans under their reason."""
        if spans:
            self.dropped[reason] += spans
