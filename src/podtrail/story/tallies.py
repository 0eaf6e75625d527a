"""Sums over all that was told, kept while a podtrail runs."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class StoryTallies:
    """Sums since the start; forgetting a Pod takes nothing from them."""

    attempts: Counter[str] = field(default_factory=Counter)
    """By result."""
    decided: int = 0
    """Traces that a sampler decided."""
    kept: Counter[str] = field(default_factory=Counter)
    """Traces sampled, by policy."""
    links: Counter[str] = field(default_factory=Counter)
    """Links on kept spans, by type."""
    unresolved: int = 0
    """Links whose target was not kept or never seen."""
    dropped_targets: int = 0
    """Of these, links whose target was seen, and let go by a decision."""
    forgotten_pods: int = 0
