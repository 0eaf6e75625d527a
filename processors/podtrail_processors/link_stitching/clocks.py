"""Whether the clocks of an API server and of a scheduler agree, by bindings of which it is sure who made them."""

from collections.abc import Sequence
from typing import Final

from podtrail.lru import Lru
from podtrail.pod_identity import CLOCK_SLACK, PodClues, SpanSource
from podtrail_processors.link_stitching.numbering import NumberedAttempt

_MOST_PAIRS: Final = 1024


class ClockPairs:
    """What is known of pairs of clocks: the latest comparison of each, and so many pairs at most."""

    def __init__(self) -> None:
        self._agree: Lru[tuple[int, int], bool] = Lru(_MOST_PAIRS)

    def compare(self, request: PodClues, server: SpanSource, attempt: NumberedAttempt) -> None:
        """Learn from a request that was made during an attempt: the one lies in the other, by one clock."""
        ahead, behind = request.end - attempt.end, attempt.start - request.start
        self._agree.put((server.clock, attempt.clock), ahead <= CLOCK_SLACK // 2 and behind <= CLOCK_SLACK // 2)

    def agree(self, server: SpanSource, attempt: NumberedAttempt) -> bool:
        """Say whether a server's clock and that of an attempt are known to agree."""
        return self._agree.get((server.clock, attempt.clock), False)

    def saved(self) -> tuple[tuple[tuple[int, int], bool], ...]:
        """Return which pairs agree."""
        return tuple(self._agree.items())

    def restore(self, saved: Sequence[tuple[tuple[int, int], bool]]) -> None:
        """Know pairs that were saved."""
        for pair, agree in saved[-_MOST_PAIRS:]:
            self._agree.put(pair, agree)

    def take_over(self, other: "ClockPairs") -> None:
        """Take what another knows."""
        for pair, agree in other._agree.items():
            self._agree.put(pair, agree)
