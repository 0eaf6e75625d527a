"""`probabilistic`: a share of all traces, chosen by their trace id, as the Collector chooses them.

FNV-1a (64 bits) over salt and trace id, so that samplers with the same salt choose the same traces.
"""

import math
from fractions import Fraction

from pydantic import Field

from podtrail.config.types import WarningPath
from podtrail.otlp import Decision, native
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.probability import ALWAYS, NEVER, threshold_for
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig

_DEFAULT_SALT = "default-hash-seed"
_OFFSET, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, 2**64 - 1
_MANTISSA = 64


def fnv1a(data: bytes, state: int = _OFFSET) -> int:
    """Return the FNV-1a hash of bytes; `state` is the hash of what stands before them."""
    known = native.fnv1a(data, state)
    if known is not None:
        return known
    for byte in data:
        state = (state ^ byte) * _PRIME  # what is beyond 64 bits changes nothing below, and is cut off once
    return state & _MASK


def threshold(percentage: float) -> int:
    """Return the largest hash that is sampled: the share of the largest hash, computed with a 64-bit mantissa."""
    ratio = percentage / 100
    if ratio <= 0:
        return 0
    if ratio >= 1:
        return _MASK
    share = Fraction(ratio) * _MASK
    scale = Fraction(2) ** (_MANTISSA - int(share).bit_length())
    return int(round(share * scale) / scale)


class Probabilistic(Evaluator):
    """Says yes by the hash of the trace id, or by the randomness that spans tell of where that counts."""

    def __init__(self, percentage: float, salt: str) -> None:
        self.reason = f"it is among the {percentage:g}% chosen by trace id"
        self.threshold = _consistent(percentage / 100)
        self._percentage = percentage
        self._threshold = threshold(percentage)
        self._salted = fnv1a((salt or _DEFAULT_SALT).encode())

    def vote(self, trace: Evidence) -> Decision:
        """Hash the trace id."""
        randomness = trace.randomness
        if randomness is not None:
            return "sampled" if self.threshold <= randomness else "not_sampled"
        return "sampled" if fnv1a(trace.trace_id, self._salted) <= self._threshold else "not_sampled"

    def why_not(self, trace: Evidence) -> str:
        """Tell where chance has put the trace."""
        randomness = trace.randomness
        if randomness is not None:
            at, by = (NEVER - randomness) / NEVER, "its randomness"
        else:
            at, by = fnv1a(trace.trace_id, self._salted) / _MASK, "the hash of its trace id"
        return f"{by} puts it at {at * 100:.4g}%, not within the {self._percentage:g}% chosen"


def _consistent(ratio: float) -> int:
    """Return the threshold for randomness that gives the same share."""
    if ratio >= 1:
        return ALWAYS
    return threshold_for(ratio) if ratio >= 1 / NEVER else NEVER


class Config(PolicyConfig):
    """Settings of `probabilistic`."""

    hash_salt: str = Field("", description="Samplers with the same salt choose the same traces.")
    sampling_percentage: float = Field(0.0, description="The share of traces to keep, in percent.")

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: the percentage is not a number.
        """
        if math.isnan(self.sampling_percentage):
            raise ValueError("sampling_percentage is not a number")
        return Probabilistic(self.sampling_percentage, self.hash_salt)

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        if self.sampling_percentage <= 0:
            return [(("sampling_percentage",), "of no percentage it keeps nothing")]
        return [(("sampling_percentage",), "more than 100 is everything")] if self.sampling_percentage > 100 else []
