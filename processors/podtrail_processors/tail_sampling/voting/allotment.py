"""Sharing a rate among keys, so that rare keys are kept whole and frequent ones are thinned.

Each key is worth the logarithm of its traces: one that is a thousand times as frequent gets a few times as much, not a
thousand times. What a key does not need goes to the others. (Refinery's dynamic samplers share alike.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_MOST_CLASSES: Final = 64


@dataclass(slots=True)
class SampledAmounts:
    """Amounts (spans, bytes or traces; a second or in all) by how thinly they had been sampled before they came.

    A class takes in what came with a probability between two powers of 2: it holds at most 57 of them. What was never
    sampled before is in class 0.
    """

    came: dict[int, float] = field(default_factory=dict)
    stands_for: dict[int, float] = field(default_factory=dict)
    """How much there was before it was sampled: each amount divided by its probability."""

    def add(self, amount: float, probability: float) -> None:
        """Add what comes with a probability above 0."""
        at = 0 if probability == 1.0 else int(-math.log2(probability))
        self.came[at] = self.came.get(at, 0.0) + amount
        self.stands_for[at] = self.stands_for.get(at, 0.0) + amount / probability

    def saved(self) -> "SavedAmounts":
        """Return the amounts of all classes."""
        return tuple([(at, came, self.stands_for[at]) for at, came in self.came.items()])

    @classmethod
    def restored(cls, saved: "SavedAmounts") -> "SampledAmounts":
        """Return the amounts that were saved."""
        classes = saved[:_MOST_CLASSES]
        return cls({at: came for at, came, _ in classes}, {at: stands_for for at, _, stands_for in classes})

    def total(self) -> float:
        """Return all that came."""
        return sum(self.came.values())

    def kept_at(self, probability: float) -> float:
        """Return how much of it is kept when all is sampled with a probability, where it was not more thinly before."""
        return sum(min(came, probability * self.stands_for[at]) for at, came in self.came.items())

    def probability_for(self, kept: float) -> float:
        """Return the probability at which so much of it is kept."""
        if len(self.came) == 1:
            return min(1.0, kept / next(iter(self.stands_for.values())))
        classes = sorted((came / self.stands_for[at], came, self.stands_for[at]) for at, came in self.came.items())
        for first, (before, came, _) in enumerate(classes):
            probability = kept / sum(stands_for for _, _, stands_for in classes[first:])
            if probability <= before:
                return probability
            kept -= came
        return 1.0

    def mixed(self, new: "SampledAmounts", seconds: float, share: float, least: float) -> "SampledAmounts":
        """Return rates of which `share` is that of `new` in so many seconds; classes below `least` are left out."""
        mixed = SampledAmounts()
        for at in self.came.keys() | new.came.keys():
            came = (1 - share) * self.came.get(at, 0.0) + share * new.came.get(at, 0.0) / seconds
            if came >= least:
                stands_for = new.stands_for.get(at, 0.0) / seconds
                mixed.came[at] = came
                mixed.stands_for[at] = (1 - share) * self.stands_for.get(at, 0.0) + share * stands_for
        return mixed

    def plus(self, other: "SampledAmounts", times: float) -> "SampledAmounts":
        """Return these amounts and `times` those of another."""
        both = SampledAmounts(dict(self.came), dict(self.stands_for))
        for at, came in other.came.items() if times else ():
            both.came[at] = both.came.get(at, 0.0) + times * came
            both.stands_for[at] = both.stands_for.get(at, 0.0) + times * other.stands_for[at]
        return both

    def raised(self, new: "SampledAmounts", seconds: float) -> "SampledAmounts":
        """Return rates that are those of `new` in so many seconds where these are higher."""
        raised = SampledAmounts(dict(self.came), dict(self.stands_for))
        for at, came in new.came.items():
            if came / seconds > raised.came.get(at, 0.0):
                raised.came[at], raised.stands_for[at] = came / seconds, new.stands_for[at] / seconds
        return raised


SavedAmounts = tuple[tuple[int, float, float], ...]
"""Amounts in a saved state: a class, what came of it, and what that stands for."""


def allot(
    demands: Sequence[SampledAmounts], traces: Sequence[float], keys: Sequence[int], budget: float, least: float
) -> list[float]:
    """Return the probability for each demand, so that what is kept of all adds up to the budget.

    `traces`: how many traces stand behind each. `keys`: how many keys these are of. `least`: the lowest probability, be
    the budget exceeded or not.
    """
    probabilities = [1.0] * len(demands)
    totals = [demand.total() for demand in demands]
    granted = [demand.kept_at(least) for demand in demands]
    budget -= sum(granted)
    worth = [number * math.log1p(of_them / number) for number, of_them in zip(keys, traces, strict=True)]
    wanted = sorted(
        ((totals[at] - granted[at]) / worth[at], at) for at in range(len(demands)) if worth[at] > 0 and totals[at] > 0
    )
    left = sum(worth[at] for _, at in wanted)
    for _, at in wanted:
        share = max(0.0, budget) * worth[at] / max(left, worth[at])
        if share < totals[at] - granted[at]:
            probabilities[at] = max(least, demands[at].probability_for(granted[at] + share))
        budget -= min(share, totals[at] - granted[at])
        left -= worth[at]
    return probabilities
