"""The unit that flows through a pipeline: spans as bytes, grouped by the trace, resource and scope they belong to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from podtrail.otlp.group import Group
from podtrail.otlp.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Batch:
    """Groups in order of arrival. Immutable, so that a fan-out copies nothing."""

    groups: Sequence[Group]
    arrived: int
    """Unix nanoseconds; the minimum where batches were merged."""
    verdicts: Sequence[Verdict] = ()
    """What `tail_sampling` decided since its last batch, about kept and dropped traces alike."""

    @property
    def span_count(self) -> int:
        """The number of spans."""
        return sum([group[4] for group in self.groups])

    @property
    def size(self) -> int:
        """The bytes of the spans themselves, headers left out."""
        return sum([len(group[3]) for group in self.groups])


def merge(batches: Iterable[Batch]) -> Batch:
    """Return the batches as one, in order.

    Raises:
        ValueError: there is none.
    """
    merged = list(batches)
    if len(merged) == 1:
        return merged[0]
    return Batch(
        groups=[group for batch in merged for group in batch.groups],
        arrived=min(batch.arrived for batch in merged),
        verdicts=[verdict for batch in merged for verdict in batch.verdicts],
    )
