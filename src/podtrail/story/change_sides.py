"""Attempts before a moment and after it, beside each other: by Pods, so that one that retries often counts once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from podtrail.story.past_attempts import CountedAttempt
from podtrail.story.refusal_index import plugins_that_refused

MINUTE: Final = 60_000_000_000
_SILENCE: Final = 2 * MINUTE
_STRAGGLERS: Final = 20
"""One of so many attempts at most is left out, where a silence parts it from the others."""


@dataclass(frozen=True, slots=True)
class AttemptsBeside:
    """The attempts on one side of a moment. Lengths of time are nanoseconds."""

    from_unix_nano: int
    to_unix_nano: int
    attempts: int
    pods: int
    failed_pods: int
    """Pods of which an attempt was without success."""
    new_pods: int
    """Those without such an attempt before this side: who waits already fails here as well, whatever changed."""
    new_failed_pods: int
    a_minute: float
    results: dict[str, int]
    failed: float
    """The share of attempts without success; 0 where there is none."""
    median: int | None
    """Of the attempts that found a node."""
    p90: int | None
    refused_by: dict[str, int]
    """Attempts by the plugins that said no in them."""
    refused_pods: dict[str, int]
    """Pods by the plugins that said no to them."""
    left_out: int
    """Attempts far from the others, at the end that is away from the moment; in no figure here."""
    at_least: bool
    """There were more attempts than are counted: shares of them would be wrong."""

    @property
    def succeeded(self) -> int:
        """Attempts that found a node."""
        return self.results.get("Success", 0)


def attempts_beside(
    told: Sequence[CountedAttempt], first: int, last: int, *, after: bool, at_least: bool
) -> AttemptsBeside:
    """Return those of attempts, in order of their start, that began from `first` on and before `last`.

    `after`: that is behind the moment. Few attempts that are parted from the others by a silence don't stretch it.
    """
    waited = {one.key for one in told if one.attempt.start_unix_nano < first and one.attempt.result != "Success"}
    within = [one for one in told if first <= one.attempt.start_unix_nano < last]
    starts = [one.attempt.start_unix_nano for one in within]
    low, high = (0, _end(starts)) if after else (_begin(starts), len(starts))
    these = within[low:high]
    if low:
        first = starts[low]
    if high < len(starts):
        last = starts[high - 1] + 1
    results = Counter(one.attempt.result or "no result" for one in these)
    took = sorted(
        one.attempt.duration for one in these if one.attempt.result == "Success" and one.attempt.duration is not None
    )
    pods = {one.key for one in these}
    failed_pods = {one.key for one in these if one.attempt.result != "Success"}
    refused = [(plugin, one.key) for one in these for plugin in plugins_that_refused(one.attempt)]
    return AttemptsBeside(
        from_unix_nano=first,
        to_unix_nano=last,
        attempts=len(these),
        pods=len(pods),
        failed_pods=len(failed_pods),
        new_pods=len(pods - waited),
        new_failed_pods=len(failed_pods - waited),
        a_minute=len(these) * MINUTE / (last - first),
        results=dict(results.most_common()),
        failed=1 - results["Success"] / len(these) if these else 0.0,
        median=took[len(took) // 2] if took else None,
        p90=took[len(took) * 9 // 10] if took else None,
        refused_by=dict(Counter(plugin for plugin, _ in refused).most_common()),
        refused_pods=dict(Counter(plugin for plugin, _ in set(refused)).most_common()),
        left_out=len(within) - len(these),
        at_least=at_least,
    )


def _end(starts: Sequence[int]) -> int:
    """Return behind how many attempts there is a silence, and few others follow."""
    fewest = len(starts) - len(starts) // _STRAGGLERS
    silent = (at for at, (one, other) in enumerate(pairwise(starts), 1) if other - one >= _SILENCE)
    return next((at for at in silent if at >= fewest), len(starts))


def _begin(starts: Sequence[int]) -> int:
    return len(starts) - _end([-start for start in reversed(starts)])
