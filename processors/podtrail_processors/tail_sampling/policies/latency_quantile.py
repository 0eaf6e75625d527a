"""`latency_quantile`: attempts slower than nearly all recent ones of their profile.

A fixed threshold is wrong on the day the cluster grows; this one follows the traffic. An attempt is compared with the
attempts of the same profile that were decided in the last `window`, kept or not, then counts among them itself. Until
there were `min_attempts` nothing is said. Profiles do not share: a batch scheduler's seconds are not held against a
web profile's milliseconds. Times come from the root's start and end; a root without them is not looked at.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic import Field

from podtrail.config.types import MINUTE, PositiveDuration, WarningPath, format_duration
from podtrail.otlp import Attempt
from podtrail.recent import Recent
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig, PolicyMemory
from podtrail_processors.tail_sampling.voting.learner import FINDINGS_BYTES, Learner
from podtrail_processors.tail_sampling.voting.recent_quantile import RecentQuantile, SavedQuantile
from podtrail_processors.tail_sampling.voting.words import cut, lasting, times

_LONGEST_PROFILE = 253
_PROFILE_BYTES: Final = 90 << 10
"""What a profile takes at most, as measured."""


class Compared(NamedTuple):
    """How long an attempt took, beside the others of its profile."""

    span_id: bytes
    yes: bool
    profile: str
    took: int | None
    """Nanoseconds; None when it does not say."""
    limit: int
    """How long nearly all the others took at most."""
    others: int
    """How many these are."""


class LatencyQuantile(Learner[Compared]):
    """Says yes to attempts above a quantile of those before them."""

    def __init__(self, quantile: float, window: int, min_attempts: int, max_profiles: int) -> None:
        super().__init__()
        self._share = f"{quantile * 100:.10g}%"
        self._window = format_duration(window)
        self.reason = f"it was slower than {self._share} of its profile's attempts of the last {self._window}"
        self._min_attempts = min_attempts
        self._recent = partial(RecentQuantile, quantile, window)
        self._of: Recent[str, RecentQuantile] = Recent(max_profiles, window, self.forgot)

    def learn(self, attempt: Attempt, trace: Evidence) -> Compared:
        """Compare it with those before, then count it among them."""
        now, profile = trace.now, attempt.profile[:_LONGEST_PROFILE]
        took = attempt.end - attempt.start if 0 < attempt.start <= attempt.end else None
        if took is None:
            return Compared(attempt.span_id, False, cut(profile), None, 0, 0)
        self._of.expire(now)
        others = self._of.refresh(profile, now)
        if others is None:
            others = self._recent()
            self._of.put(profile, others, now)
        count = others.count
        enough = count >= self._min_attempts
        # Rounded, for a mean of equal numbers may be a hair less than each.
        limit = round(others.answer(now)) if enough else 0
        others.add(took, now)
        return Compared(attempt.span_id, enough and took > limit, cut(profile), took, limit, count)

    def told(self, finding: Compared) -> str:
        """Tell how long it took and how long the others."""
        who = f"of {finding.profile or 'no profile'} in the last {self._window}"
        others = times(finding.others, "attempt")
        if finding.took is None:
            return "it does not tell how long it took"
        if finding.others < self._min_attempts:
            return f"it was compared with nothing: {others} {who}, {self._min_attempts} needed"
        longer = "longer than" if finding.yes else "no longer than"
        return f"it took {lasting(finding.took)}, {longer} {self._share} of {others} {who}: {lasting(finding.limit)}"

    finding_shape = Compared
    memory_shape = tuple[tuple[str, int, SavedQuantile], ...]

    def saved_memory(self) -> Any:
        """Return what is known of the profiles."""
        return tuple([(profile, seen, others.saved()) for profile, others, seen in self._of.dated()])

    def restore_memory(self, saved: Any) -> None:
        """Know the profiles."""
        self._of.restore([(profile, seen, self._restored(others)) for profile, seen, others in saved])

    def _restored(self, saved: SavedQuantile) -> RecentQuantile:
        others = self._recent()
        others.restore(saved)
        return others

    def memories(self) -> Sequence[PolicyMemory]:
        """Return what it remembers."""
        return (*super().memories(), self._of)

    def take_over(self, predecessor: Evaluator) -> None:
        """Go on from what is known of the profiles, if the question is the same."""
        assert isinstance(predecessor, LatencyQuantile)
        if predecessor._recent.args == self._recent.args:
            for profile, others, seen in predecessor._of.dated():
                self._of.put(profile, others.copy(), seen)


class Config(PolicyConfig):
    """Settings of `latency_quantile`."""

    quantile: float = Field(0.99, gt=0, lt=1, description="Keep attempts slower than this share of the others.")
    window: PositiveDuration = Field(10 * MINUTE, description="How far back the others go.")
    min_attempts: int = Field(
        100, ge=1, description="How many attempts of the profile there must have been before any is kept."
    )
    max_profiles: int = Field(
        64, ge=1, le=100_000, description="How many profiles are remembered, at 90 KiB each at most; the latest."
    )

    def create(self) -> Evaluator:
        """Return the policy."""
        return LatencyQuantile(self.quantile, self.window, self.min_attempts, self.max_profiles)

    def memory_bound(self) -> int:
        """Return the bytes of what is remembered and of the last findings."""
        return self.max_profiles * _PROFILE_BYTES + FINDINGS_BYTES

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        needed = round(1 / (1 - self.quantile))
        if self.min_attempts >= needed:
            return []
        return [(("min_attempts",), f"among fewer than {needed} the quantile is the slowest of them")]
