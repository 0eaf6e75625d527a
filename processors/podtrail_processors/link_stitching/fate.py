"""What became of a trace, as far as links care."""

from typing import NamedTuple

from podtrail.otlp import Verdict

_LONGEST_TEXT = 200


class Fate(NamedTuple):
    """Kept, or not kept for a reason."""

    kept: bool
    policy: str = ""
    reason: str = ""
    at: int = 0
    """When the trace happened, by its own clock: the start of a span of it; 0 when unknown. Unix nanoseconds."""


def fate_of(verdict: Verdict) -> Fate:
    """Return what a verdict means for links to the trace."""
    if verdict.decision == "sampled":
        return Fate(kept=True)
    return Fate(kept=False, policy=verdict.policy[:_LONGEST_TEXT], reason=verdict.reason[:_LONGEST_TEXT])
