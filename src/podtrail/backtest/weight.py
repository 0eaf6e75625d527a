"""Where a recording is itself a sample: what each of its traces stands for, and how sure that makes a figure.

A span that was sampled with OpenTelemetry's probability sampling says so in its trace state (`ot=th:…`): it was chosen
with the probability 1 - th / 2^56, so it stands for the inverse of that (Horvitz and Thompson).
"""

import math
import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from podtrail.otlp import Group, raw_span_reader

_MARK = b"th:"
_THRESHOLD = re.compile(rb"(?:^|,)[ \t]*ot=(?:[^,]*;)?th:([0-9a-f]{1,14})(?:[;, \t]|$)")
_DIGITS = 14
_ALL = 1 << 56
_RAREST = 1e-6
"""A probability below this counts as this: one span must not outweigh a whole recording."""
_MOST_TOLD = 200_000
_Z = 1.96
"""95 % of a normal distribution lie within so many standard deviations."""

_read_states = raw_span_reader({"trace_state"})


class Interval(NamedTuple):
    """Where a figure lies with 95 % confidence."""

    low: float
    high: float


def probability_of(group: Group) -> float | None:
    """Return with which probability a trace came into the recording, as its spans say; None where they do not."""
    if _MARK in group.spans:
        for span in _read_states(group.spans):
            if found := _THRESHOLD.search(span.trace_state):
                threshold = int(found[1].ljust(_DIGITS, b"0"), 16)
                return max(1 - threshold / _ALL, _RAREST)
    return None


class Probabilities:
    """With which probability each trace came, noted as it comes: samplers write thresholds of their own."""

    def __init__(self, otherwise: float) -> None:
        """Take `otherwise` where spans do not say."""
        self._otherwise = otherwise
        self._told: OrderedDict[bytes, float] = OrderedDict()

    def note(self, groups: Iterable[Group]) -> None:
        """Take note of what comes."""
        for group in groups:
            if (told := probability_of(group)) is not None:
                self._told[group.trace_id] = told
                if len(self._told) > _MOST_TOLD:
                    self._told.popitem(last=False)

    def of(self, trace_id: bytes) -> float:
        """Return the probability of a trace."""
        return self._told.get(trace_id, self._otherwise)


@dataclass(slots=True)
class WeightedShare:
    """The share of some traces among others, and how sure it is. Everything is weighted by what it stands for."""

    count: int = 0
    within: int = 0
    """How many of the counted."""
    whole: float = 0.0
    part: float = 0.0
    _spread: float = 0.0

    def add(self, probability: float, *, within: bool) -> None:
        """Count a trace that came with a probability, and is within the part or not."""
        weight = 1 / probability
        self.count += 1
        self.within += within
        self.whole += weight
        self.part += weight * within
        self._spread += weight * weight * (1 - probability)

    @property
    def value(self) -> float:
        """Between 0 and 1; 0 of nothing."""
        return self.part / self.whole if self.whole else 0.0

    @property
    def interval(self) -> Interval | None:
        """Wilson's interval, for as many traces as the weights are worth (Kish); None when nothing was left out."""
        if not self._spread:
            return None
        return wilson(self.value, self.whole * self.whole / self._spread)


@dataclass(slots=True)
class WeightedTotal:
    """A sum over traces, estimated for all of which those in the recording are a sample."""

    seen: float = 0.0
    estimate: float = 0.0
    _variance: float = 0.0

    def add(self, amount: float, probability: float) -> None:
        """Add what one trace contributes."""
        self.seen += amount
        self.estimate += amount / probability
        self._variance += (amount / probability) ** 2 * (1 - probability)

    @property
    def ratio(self) -> float:
        """How much more there was than the recording holds."""
        return self.estimate / self.seen if self.seen else 1.0

    @property
    def error(self) -> float:
        """Half the width of the 95 % interval, as a share of the estimate; 0 when nothing was left out."""
        return _Z * math.sqrt(self._variance) / self.estimate if self.estimate else 0.0


def wilson(share: float, count: float) -> Interval:
    """Return Wilson's 95 % interval of a share seen among so many."""
    square = _Z * _Z / count
    middle = (share + square / 2) / (1 + square)
    half = _Z / (1 + square) * math.sqrt(share * (1 - share) / count + square / (4 * count))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))
