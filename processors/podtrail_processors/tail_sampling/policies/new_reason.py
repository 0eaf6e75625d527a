"""`new_reason`: the first failed attempt of each kind: nobody has failed for these reasons lately.

The kind of a failure is the set of its refusals, each a plugin with its reason, without numbers, quoted names and the
Pod's own; of an attempt that ended in an error it is the error. Thousands of Pods that fail for want of cpu are one
kind, kept once; the first that fails for another reason is kept at once, however rare its kind. A kind that was not
seen for `forget_after` is new again. Attempts that succeed are not looked at.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from pydantic import Field

from podtrail.config.types import HOUR, PositiveDuration, format_duration
from podtrail.otlp import Attempt, Rejection
from podtrail.recent import Recent
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.evidence.refusals import refusals_in
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig, PolicyMemory
from podtrail_processors.tail_sampling.voting.learner import FINDINGS_BYTES, Learner
from podtrail_processors.tail_sampling.voting.words import cut, lasting, refusals

_LONGEST = 500
_KIND_BYTES: Final = 290
"""What a kind takes, as measured."""
_QUOTED = re.compile(r'"[^"]*"')
_WORD = re.compile(r"[\w./-]+")
_PIECE = re.compile(r"\w+")


class Reasons(NamedTuple):
    """Why an attempt failed, and since when that was not seen."""

    span_id: bytes
    yes: bool
    reasons: str
    """In words; "" when it did not fail or tells nothing."""
    ago: int | None
    """How long ago an attempt failed for these reasons, nanoseconds; None when none is known."""


class NewReason(Learner[Reasons]):
    """Says yes to attempts that failed as none has lately."""

    def __init__(self, forget_after: int, max_kinds: int) -> None:
        super().__init__()
        self._after = format_duration(forget_after)
        self.reason = f"it failed for reasons not seen in the last {self._after}"
        self._seen: Recent[bytes, int] = Recent(max_kinds, forget_after, self.forgot)

    def learn(self, attempt: Attempt, trace: Evidence) -> Reasons:
        """Remember its kind."""
        now = trace.now
        self._seen.expire(now)
        told = failures_of(attempt, trace) if attempt.failed else []
        if not told:
            return Reasons(attempt.span_id, False, "", None)
        kind = _kind(told, attempt)
        before = self._seen.get(kind)
        self._seen.put(kind, now, now)
        return Reasons(attempt.span_id, before is None, refusals(told), None if before is None else now - before)

    def told(self, finding: Reasons) -> str:
        """Tell the reasons and when they were last seen."""
        if finding.yes:
            return f"not seen in the last {self._after}: {finding.reasons}"
        if finding.ago is None:
            return "it did not fail, or does not tell why"
        return f"last seen {lasting(finding.ago)} before: {finding.reasons}"

    finding_shape = Reasons
    memory_shape = tuple[tuple[bytes, int, int], ...]

    def saved_memory(self) -> Any:
        """Return kinds of failure, and when they were last seen."""
        return self._seen.saved()

    def restore_memory(self, saved: Any) -> None:
        """Know kinds of failure."""
        self._seen.restore(saved)

    def memories(self) -> Sequence[PolicyMemory]:
        """Return what it remembers."""
        return (*super().memories(), self._seen)

    def take_over(self, predecessor: Evaluator) -> None:
        """Go on remembering."""
        assert isinstance(predecessor, NewReason)
        self._seen.move_in(predecessor._seen)


def failures_of(attempt: Attempt, trace: Evidence) -> list[Rejection]:
    """Return for what reasons a failed attempt failed; of one that ended in an error only that."""
    told = refusals_in(trace)
    if attempt.result == "Error":
        errors = [one for one in told if one.status == "Error"]
        return errors or [Rejection("", "", "Error", attempt.message, None)]
    return told


def _kind(told: Sequence[Rejection], attempt: Attempt) -> bytes:
    own = (attempt.pod_uid, attempt.namespace, attempt.name)
    kinds = {f"{cut(one.plugin)}\n{general(one.reason, own)}" for one in told}
    return blake2b("\n".join(sorted(kinds)).encode(), digest_size=16).digest()


class Config(PolicyConfig):
    """Settings of `new_reason`."""

    forget_after: PositiveDuration = Field(
        HOUR, description="After how long without such a failure its reasons are new again."
    )
    max_kinds: int = Field(
        10_000, ge=1, le=10_000_000, description="How many kinds of failure are remembered, the latest."
    )

    def create(self) -> Evaluator:
        """Return the policy."""
        return NewReason(self.forget_after, self.max_kinds)

    def memory_bound(self) -> int:
        """Return the bytes of what is remembered and of the last findings."""
        return self.max_kinds * _KIND_BYTES + FINDINGS_BYTES


def general(reason: str, own: Collection[str]) -> str:
    """Return a reason in general: what has a digit is `#`, what is quoted or one of `own` names is `…`.

    Only the beginning counts: the first 500 characters.
    """
    reason = reason[:_LONGEST]
    if any(name and name in reason for name in own):
        reason = _WORD.sub(lambda word: _without(word[0], own), reason)
    return _general(reason)


def _without(word: str, own: Collection[str]) -> str:
    return "…" if word.rstrip(".") in own else "/".join("…" if part in own else part for part in word.split("/"))


@lru_cache(maxsize=1024)
def _general(reason: str) -> str:
    return _PIECE.sub(_number, _QUOTED.sub("…", reason))


def _number(piece: re.Match[str]) -> str:
    return "#" if any(map(str.isdigit, piece[0])) else piece[0]
