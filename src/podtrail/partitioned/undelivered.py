"""What has left the processors of a partition and no exporter is done with."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from podtrail.durable.owed import Way
from podtrail.otlp import Batch
from podtrail.partitioned.delivered import MOST_GAPS, DeliveredSteps, PartitionStep


class OwedAtStep(NamedTuple):
    """A batch that an exporter owes."""

    step: PartitionStep
    """When it left."""
    batch: Batch


class Undelivered:
    """The batches that exporters owe to one partition, in the order in which they left."""

    def __init__(self) -> None:
        self.spans = 0
        """In all of it."""
        self.ended = asyncio.Event()
        """Set whenever an exporter is done with something."""
        self._owed: dict[Way, dict[int, OwedAtStep]] = defaultdict(dict)
        self._left: Counter[Way] = Counter()

    def begin(self, way: Way, step: PartitionStep, batch: Batch) -> Callable[[], None]:
        """Owe a batch that has left at a step; return what is to be called when the exporter is done with it."""
        number = self._left[way]
        self._left[way] += 1
        self._owed[way][number] = OwedAtStep(step, batch)
        self.spans += batch.span_count

        def end() -> None:
            if self._owed[way].pop(number, None) is not None:
                self.spans -= batch.span_count
                self.ended.set()

        return end

    def pass_over(self, way: Way) -> None:
        """Note that something lies before what is owed next which is not owed: no stretch reaches across it."""
        self._left[way] += 1

    def give_up(self, exporters: Collection[str]) -> int:
        """Owe nothing any more to others than these exporters; return how many spans that were."""
        given_up = 0
        for (_, exporter), owed in self._owed.items():
            if exporter not in exporters:
                given_up += sum(each.batch.span_count for each in owed.values())
                owed.clear()
        self.spans -= given_up
        if given_up:
            self.ended.set()
        return given_up

    def __iter__(self) -> Iterator[tuple[Way, OwedAtStep]]:
        for way, owed in self._owed.items():
            for each in owed.values():
                yield way, each

    def ways(self) -> Sequence[Way]:
        """Return the ways on which something is owed."""
        return [way for way, owed in self._owed.items() if owed]

    def since(self) -> int | None:
        """Return the arrival of the oldest of it, Unix nanoseconds."""
        return min((each.batch.arrived for owed in self._owed.values() for each in owed.values()), default=None)

    def delivered(self, way: Way, left: PartitionStep) -> DeliveredSteps:
        """Return what is delivered on a way, when everything until the step `left` has left."""
        gaps: list[tuple[PartitionStep, PartitionStep]] = []
        before = None
        for number, (step, _) in self._owed[way].items():
            if step > left:
                break
            if gaps and (before == number - 1 or step <= gaps[-1][1]):
                gaps[-1] = (gaps[-1][0], step)
            elif len(gaps) == MOST_GAPS:
                return _until(step.before(), gaps)
            else:
                gaps.append((step, step))
            before = number
        return _until(left, gaps)


def _until(left: PartitionStep, gaps: Sequence[tuple[PartitionStep, PartitionStep]]) -> DeliveredSteps:
    """Return what is delivered; a gap that reaches to the end is none."""
    if gaps and gaps[-1][1] >= left:
        return _until(gaps[-1][0].before(), gaps[:-1])
    return DeliveredSteps(left, tuple(gaps))
