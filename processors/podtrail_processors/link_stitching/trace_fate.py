"""What became of the trace that a link points to: kept, or dropped by which policy and why."""

from typing import NamedTuple

from podtrail.otlp import Verdict

_LONGEST_TEXT = 200


class TraceFate(NamedTuple):
    """Kept, or not kept for a reason."""

    kept: bool
    policy: str = ""
    reason: str = ""
    at: int = 0
    """When the trace happened, by its own clock: the start of a span of it; 0 when unknown. Unix nanoseconds."""


def fate_of(verdict: Verdict) -> TraceFate:
    """Return what a verdict that did not keep a trace means for links to it."""
    return TraceFate(kept=False, policy=verdict.policy[:_LONGEST_TEXT], reason=verdict.reason[:_LONGEST_TEXT])
