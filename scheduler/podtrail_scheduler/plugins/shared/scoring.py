"""What several Score plugins do to their numbers."""

from collections.abc import Sequence

from podtrail_scheduler.framework.extension_points import MAX_SCORE


def shares_of_best(scores: Sequence[int]) -> list[int]:
    """The best becomes 100, the others their share of it; all 0 stays so."""
    best = max(scores, default=0)
    return [MAX_SCORE * score // best for score in scores] if best else list(scores)


def shares_below_worst(scores: Sequence[int]) -> list[int]:
    """As `shares_of_best` where fewer is better: the most becomes 0, nothing 100."""
    return [MAX_SCORE - share for share in shares_of_best(scores)]
