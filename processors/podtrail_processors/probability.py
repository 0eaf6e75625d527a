"""Probability sampling as spans carry it: randomness and threshold in the member `ot` of their trace state.

OpenTelemetry's "TraceState: Probability Sampling", read and written as the Collector's package `pkg/sampling` does.
Randomness and thresholds are whole numbers of 56 bits: a randomness that is not below the threshold is sampled.
"""

import math
import re
from dataclasses import dataclass, field

NEVER = 1 << 56
"""The threshold that no randomness reaches."""
ALWAYS = 0
"""The threshold that every randomness reaches."""
HEX_DIGITS = 14
"""So many hexadecimal digits make 56 bits."""

_HEX_BITS = 4
_LONGEST = 1024
_MOST_MEMBERS = 31
"""One fewer than the W3C allows: so does the Collector."""
_PLAIN = r"[a-z][a-z0-9_\-*/]{0,255}"
_TENANT = r"[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13}"
_member = re.compile(rf"({_PLAIN}|{_TENANT})=([ -+\--<>-~]{{0,255}}[!-+\--<>-~])").fullmatch
_field = re.compile(r"([a-z][a-z0-9]*):([A-Za-z0-9._\-]*)").fullmatch
_randomness = re.compile(r"[0-9A-Fa-f]{14}").fullmatch
_threshold = re.compile(r"[0-9A-Fa-f]{1,14}").fullmatch


@dataclass(slots=True)
class SamplingState:
    """A trace state, of which the sampling information can be changed."""

    sound: bool = True
    """Whether it follows the rules; what does not is left out."""
    rv: str = ""
    th: str = ""
    _fields: list[tuple[str, str]] = field(default_factory=list)
    _members: list[tuple[str, str]] = field(default_factory=list)

    @property
    def randomness(self) -> int | None:
        """The randomness that was given explicitly."""
        return int(self.rv, 16) if self.rv else None

    @property
    def threshold(self) -> int | None:
        """The threshold at which the span was sampled so far."""
        return int(self.th.ljust(HEX_DIGITS, "0"), 16) if self.th else None

    def update(self, threshold: int) -> bool:
        """Write a threshold unless there is a higher one, which may not be lowered; return whether it was written."""
        if (before := self.threshold) is not None and before > threshold:
            return False
        self.th = threshold_text(threshold)
        return True

    def text(self) -> str:
        """Return the trace state, `ot` first."""
        own = [("rv", self.rv)] * bool(self.rv) + [("th", self.th)] * bool(self.th) + self._fields
        ot = ";".join(f"{key}:{value}" for key, value in own)
        return ",".join([f"ot={ot}"] * bool(own) + [f"{key}={value}" for key, value in self._members])

    def _read_fields(self, text: str) -> None:
        pairs = [_field(part) for part in text.split(";")]
        self.rv, self.th, self._fields = "", "", []
        for pair in pairs:
            if pair is None:
                self.sound, self.rv, self.th, self._fields = False, "", "", []
                return
            key, value = pair.groups()
            if key == "rv":
                self.rv = value if _randomness(value) else ""
                self.sound = self.sound and bool(self.rv)
            elif key == "th":
                self.th = value if _threshold(value) else ""
                self.sound = self.sound and bool(self.th)
            else:
                self._fields.append((key, value))


def read_sampling_state(text: str) -> SamplingState:
    """Return what a trace state says; one that breaks the W3C's rules says nothing and is not `sound`."""
    state = SamplingState()
    members = [part.strip(" \t") for part in text.split(",")]
    pairs = [_member(member) for member in members if member]
    if len(text) > _LONGEST or len(members) > _MOST_MEMBERS or None in pairs:
        return SamplingState(sound=False)
    for pair in pairs:
        assert pair is not None
        key, value = pair.groups()
        if key == "ot":
            state._read_fields(value)
        else:
            state._members.append((key, value))
    return state


def randomness_of(trace_id: bytes) -> int:
    """Return the randomness of a trace without an explicit one: the last 56 bits of its id."""
    return int.from_bytes(trace_id[9:], "big")


def randomness_text(randomness: int) -> str:
    """Return a randomness as it stands in `rv`."""
    return f"{randomness:014x}"


def threshold_text(threshold: int) -> str:
    """Return a threshold as it stands in `th`; "" for `NEVER`."""
    if threshold == NEVER:
        return ""
    return f"{threshold:014x}".rstrip("0") or "0"


def threshold_for(probability: float, precision: int = HEX_DIGITS) -> int:
    """Return the threshold that samples with a probability; `precision` in hexadecimal digits, more near 0 and 1.

    Raises:
        ValueError: the probability is not between 2**-56 and 1.
    """
    if not 1 / NEVER <= probability <= 1:
        raise ValueError(f"the probability {probability} is not between 2**-56 and 1")
    if probability == 1:
        return ALWAYS
    # Leading digits that are all 0 or all f say little: as many more are kept.
    leading = max(int(math.frexp(share)[1] / -_HEX_BITS) for share in (probability, 1 - probability))
    threshold = NEVER - math.floor(probability * NEVER + 0.5)
    shift = _HEX_BITS * (HEX_DIGITS - min(HEX_DIGITS, precision + leading))
    return (threshold + (1 << shift >> 1)) >> shift << shift


def probability_of(threshold: int) -> float:
    """Return the probability with which a threshold samples."""
    return (NEVER - threshold) / NEVER
