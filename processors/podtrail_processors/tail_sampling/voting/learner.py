"""Policies that learn from every attempt that is decided, whether they are asked about it or not."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, Generic, Protocol, TypeVar

from podtrail.component import Context, Counter
from podtrail.config.types import HOUR
from podtrail.otlp import Attempt, Decision
from podtrail.recent import Recent
from podtrail.state import StateShape, known_version
from podtrail_processors.evidence.evidence import Evidence
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyMemory, label_of
from podtrail_processors.tail_sampling.voting.words import NO_ATTEMPT

_TTL: Final = 24 * HOUR
_REMEMBERED: Final = 2048
"""Findings that are remembered, for those who ask why; and all of the trace that was shown last."""
FINDINGS_BYTES: Final = _REMEMBERED * 2048
"""What they take: at most 2 KiB each, mostly a quarter of that."""


class Finding(Protocol):
    """What a learner found about an attempt, in so many bytes however long the attempt's texts are."""

    @property
    def span_id(self) -> bytes:
        """The attempt's root."""

    @property
    def yes(self) -> bool:
        """Whether it is to be kept."""


F = TypeVar("F", bound=Finding)


class Learner(Evaluator, Generic[F]):
    """Compares each attempt with those before it, then learns from it.

    It is shown every trace ahead of the votes, so that it knows of attempts that it was not asked about: behind the
    other parts of an `and`, or after a first match. An attempt that is shown twice is learnt from once.
    """

    stateful = True

    def __init__(self) -> None:
        self._findings: Recent[bytes, tuple[F, ...]] = Recent(_REMEMBERED, _TTL, self._no_longer_found)
        self._found = 0
        """How many there are, of all traces."""
        self._forgotten: Counter | None = None
        self._label = ""

    def attach(self, context: Context, name: str) -> None:
        """Count what is forgotten."""
        self._label = label_of(context.id, name)
        self._forgotten = context.metrics.counter(
            "otelcol_processor_tail_sampling_policy_forgotten",
            "What policies no longer remember, each a Pod, a reason or a profile, by why: `ttl` or `full`.",
            ("policy", "reason"),
        )

    def forgot(self, _key: object, _value: object, reason: str) -> None:
        """Take note that something is no longer remembered."""
        if self._forgotten is not None:
            self._forgotten.add(1, self._label, reason)

    @abstractmethod
    def learn(self, attempt: Attempt, trace: Evidence) -> F:
        """Return what there is to say about an attempt and remember it for those to come."""

    @abstractmethod
    def told(self, finding: F) -> str:
        """Return a finding in words."""

    memory_shape: Any
    """The type of what `saved_memory` returns."""
    finding_shape: Any
    """The type of its findings."""

    @abstractmethod
    def saved_memory(self) -> Any:
        """Return what it has learnt as plain values."""

    @abstractmethod
    def restore_memory(self, saved: Any) -> None:
        """Know what was saved."""

    @classmethod
    @cache
    def _shape(cls) -> StateShape[Any]:
        findings = tuple[tuple[bytes, int, tuple[cls.finding_shape, ...]], ...]  # type: ignore[name-defined]
        return StateShape(tuple[findings, cls.memory_shape])  # type: ignore[name-defined]

    def save_state(self) -> Any:
        """Return what it has found and learnt."""
        return self._findings.saved(), self.saved_memory()

    def restore_state(self, version: int, state: Any) -> None:
        """Go on from what it had learnt."""
        known_version(version, 1)
        findings, memory = self._shape().read(state)
        self.restore_memory(memory)
        self._found = sum(len(found) for _, _, found in findings)
        self._findings.restore(findings)

    def learners(self) -> Sequence[Callable[[Evidence], None]]:
        """Return what has to see every trace."""
        return (self.observe,)

    def observe(self, trace: Evidence) -> None:
        """Compare and learn, ahead of the vote."""
        attempts = trace.attempts
        if not attempts:
            return
        findings = self._findings
        known = findings.get(trace.trace_id) or ()
        seen = [finding.span_id for finding in known]
        new = [self.learn(attempt, trace) for attempt in attempts if attempt.span_id not in seen]
        if new:
            self._found += len(new) - len(known)
            findings.put(trace.trace_id, tuple(new), trace.now)
            while self._found > _REMEMBERED and len(findings) > 1:
                findings.forget_oldest()

    def _no_longer_found(self, _key: bytes, found: tuple[F, ...], _reason: str) -> None:
        self._found -= len(found)

    def memories(self) -> Sequence[PolicyMemory]:
        """Return what it remembers of attempts that it was shown."""
        return (self._findings,)

    def vote(self, trace: Evidence) -> Decision:
        """Repeat what was found when the trace was shown."""
        for finding in self._findings.get(trace.trace_id) or ():
            if finding.yes:
                return "sampled"
        return "not_sampled"

    def revote(self, trace: Evidence) -> Decision | None:
        """Repeat the vote, as long as what it followed from is remembered."""
        if not trace.attempts:
            return "not_sampled"
        return self.vote(trace) if trace.trace_id in self._findings else None

    def because(self, trace: Evidence) -> str:
        """Tell what was found, as long as that is remembered."""
        return self._words(trace, yes=True) or self.reason

    def why_not(self, trace: Evidence) -> str:
        """Tell what was found, as long as that is remembered."""
        if not trace.attempts:
            return NO_ATTEMPT
        return self._words(trace, yes=False) or f"{super().why_not(trace)}; more is no longer known"

    def _words(self, trace: Evidence, *, yes: bool) -> str:
        found = self._findings.get(trace.trace_id) or ()
        return next((self.told(finding) for finding in found if finding.yes is yes), "")
