"""The part of a slow attempt that used its time: a plugin, a phase, a wait, or time outside all phases."""

from typing import NamedTuple

from podtrail.story.attempt import AttemptStory
from podtrail.story.words import duration


class SlowPart(NamedTuple):
    """The part of an attempt that took most of its time."""

    point: str
    """The phase, or a part outside the phases."""
    plugin: str
    """The plugin that took at least half of the phase; "" where none did."""
    took: int
    """Nanoseconds, at most those of the attempt."""

    @property
    def what(self) -> str:
        """Its name in lists: `score: CostScorer`, `score`, `waitOnPermit`."""
        return f"{self.point}: {self.plugin}" if self.plugin and self.point else self.plugin or self.point


def slow_part(attempt: AttemptStory) -> SlowPart | None:
    """Return the part that took most of an attempt's time; None if its spans do not show it."""
    whole = attempt.duration
    if not whole or not attempt.phases:
        return None
    phase = attempt.phases[0]
    took = min(phase.took, whole)
    outside = _outside(attempt, whole)
    if outside is not None and outside.took > took:
        return outside
    if not took:
        return None
    by_one = bool(phase.plugin) and 2 * phase.plugin_took >= phase.took
    return SlowPart(phase.name, phase.plugin if by_one else "", min(phase.plugin_took, whole) if by_one else took)


def _outside(attempt: AttemptStory, whole: int) -> SlowPart | None:
    """Return the longest time outside all phases, in a cycle or between the cycles; None if that is unknown."""
    sums, parts = attempt.phase_sums, []
    if attempt.cycle is not None:
        parts.append(SlowPart("scheduling cycle outside its phases", "", attempt.cycle - sums.scheduling))
    if attempt.binding is not None:
        parts.append(SlowPart("binding cycle outside its phases", "", attempt.binding - sums.binding))
    if attempt.cycle is not None and attempt.binding is not None:
        parts.append(SlowPart("between scheduling and binding", "", whole - attempt.cycle - attempt.binding))
    return max(parts, key=lambda part: part.took, default=None)


def slow_words(attempt: AttemptStory) -> str:
    """Return the part that used the time of a slow attempt, in one line: `waitOnPermit took 97 %`."""
    whole = attempt.duration or 0
    part = slow_part(attempt)
    if part is None or not whole:
        return f"an attempt took {duration(whole)}"
    return f"{part.what} took {round(100 * part.took / whole)} %"
