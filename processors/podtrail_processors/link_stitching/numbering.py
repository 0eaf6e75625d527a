"""The chain of a Pod's attempts: which number each has, and which came before and after it.

The rule: attempts are ordered by their start. The number of an attempt is that of the one before it plus one, or what
its root says in `scheduler.attempts` if that is more. So numbers are right without that attribute when all attempts
were seen (kept or sampled out, in any order within the reorder window); with it they are also right for a Pod whose
first attempts happened before this memory began; and they go on when the scheduler restarts and counts from one again.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from podtrail.otlp import Attempt
from podtrail.pod_identity import PodEvidence
from podtrail_processors.link_stitching.trace_fate import TraceFate

_MOST_HELD = 500


class RequestSpan(NamedTuple):
    """A request's span; its times by its own clock, Unix nanoseconds."""

    key: bytes
    """Trace and span id."""
    start: int
    end: int
    evidence: PodEvidence
    """How it is known whose Pod it is about."""


@dataclass(slots=True)
class NumberedAttempt:
    """An attempt as it is remembered; `start` and `end` in Unix nanoseconds."""

    trace_id: bytes
    span_id: bytes
    pod_uid: str
    start: int
    end: int
    succeeded: bool
    declared: int
    may_bind: bool
    """Whether it may have asked for a binding: it did not end before that as unschedulable."""
    clock: int
    """Which clock its times are by."""
    fate: TraceFate
    binding: RequestSpan | None = None
    """The request that bound its Pod."""
    number: int = 0
    """1 for the first."""
    left: bool = False
    """Whether its span has left with its number on it."""
    told_next: bool = False
    """Whether its span was told of the attempt after it."""
    told: frozenset[str] = frozenset()
    """Of which types of links that are told once its span was told."""

    @classmethod
    def of(cls, attempt: Attempt, fate: TraceFate, clock: int) -> "NumberedAttempt":
        """Return what is worth remembering of an attempt."""
        return cls(
            trace_id=attempt.trace_id,
            span_id=attempt.span_id,
            pod_uid=attempt.pod_uid,
            start=attempt.start,
            end=attempt.end,
            succeeded=attempt.result == "Success",
            declared=attempt.declared,
            clock=clock,
            may_bind=attempt.result != "Unschedulable",
            fate=fate,
        )

    @property
    def key(self) -> bytes:
        """Trace id and span id, 24 bytes."""
        return self.trace_id + self.span_id


class SavedAttempt(NamedTuple):
    """An attempt in a saved state: the fields of a `NumberedAttempt`."""

    trace_id: bytes
    span_id: bytes
    pod_uid: str
    start: int
    end: int
    succeeded: bool
    declared: int
    may_bind: bool
    clock: int
    fate: TraceFate
    binding: RequestSpan | None
    number: int
    left: bool
    told_next: bool
    told: tuple[str, ...]


class SavedChain(NamedTuple):
    """A Pod's attempts in a saved state."""

    uid: str
    place: str
    attempts: tuple[SavedAttempt, ...]
    counted: int
    horizon: tuple[int, bytes]


_order = attrgetter("start", "span_id")


class AttemptChain:
    """The remembered attempts of one Pod by start."""

    def __init__(self, uid: str, place: str) -> None:
        self.uid = uid
        self.place = place
        """`namespace/name`; "" when unknown."""
        self._attempts: list[NumberedAttempt] = []
        self._counted = 0
        self._horizon: tuple[int, bytes] = (-1, b"")

    def __len__(self) -> int:
        return len(self._attempts)

    @property
    def attempts(self) -> Sequence[NumberedAttempt]:
        """By start."""
        return self._attempts

    def reaches(self, attempt: Attempt) -> bool:
        """Say whether an attempt can still be numbered: it did not start before one that is counted but forgotten."""
        return (attempt.start, attempt.span_id) > self._horizon

    def insert(self, known: NumberedAttempt) -> bool:
        """Give an attempt its place and number; return whether attempts after it had left with theirs already."""
        at = bisect_left(self._attempts, _order(known), key=_order)
        self._attempts.insert(at, known)
        number = self._attempts[at - 1].number if at else self._counted
        for later in self._attempts[at:]:
            number = later.number = max(number + 1, later.declared)
        return any(later.left for later in self._attempts[at + 1 :])

    def trim(self, limit: int) -> list[NumberedAttempt]:
        """Forget the earliest beyond `limit`, but go on counting from them.

        Attempts that are still held stay, with the one before the first of them, as far as there are not too many.
        """
        known = len(self._attempts)
        held = next((at for at, one in enumerate(self._attempts) if one.fate.kept and not one.left), known)
        surplus = self._attempts[: max(0, min(known - limit, held - 1), known - limit - _MOST_HELD)]
        if surplus:
            del self._attempts[: len(surplus)]
            self._counted = surplus[-1].number
            self._horizon = _order(surplus[-1])
        return surplus

    def saved(self) -> "SavedChain":
        """Return the attempts."""
        attempts = [
            SavedAttempt(
                *(one.trace_id, one.span_id, one.pod_uid, one.start, one.end, one.succeeded, one.declared),
                *(one.may_bind, one.clock, one.fate, one.binding, one.number, one.left, one.told_next),
                tuple(sorted(one.told)),
            )
            for one in self._attempts
        ]
        return SavedChain(self.uid, self.place, tuple(attempts), self._counted, self._horizon)

    @classmethod
    def restored(cls, saved: "SavedChain") -> "AttemptChain":
        """Return the chain that was saved."""
        chain = cls(saved.uid, saved.place)
        chain._attempts = [NumberedAttempt(**{**one._asdict(), "told": frozenset(one.told)}) for one in saved.attempts]
        chain._counted, chain._horizon = saved.counted, saved.horizon
        return chain

    def before(self, known: NumberedAttempt) -> NumberedAttempt | None:
        """Return the attempt before this one; None when it is not known, so also behind a gap."""
        at = bisect_left(self._attempts, _order(known), key=_order)
        previous = self._attempts[at - 1] if at else None
        return previous if previous and previous.number == known.number - 1 else None

    def after(self, known: NumberedAttempt) -> NumberedAttempt | None:
        """Return the attempt after this one; None when it is not known, so also before a gap."""
        at = bisect_right(self._attempts, _order(known), key=_order)
        following = self._attempts[at] if at < len(self._attempts) else None
        return following if following and following.number == known.number + 1 else None

    def running_at(self, time: int) -> NumberedAttempt | None:
        """Return the attempt that started last, at `time` or before it."""
        at = bisect_right(self._attempts, time, key=attrgetter("start"))
        return self._attempts[at - 1] if at else None

    def failing_at(self, time: int, slack: int) -> NumberedAttempt | None:
        """Return the attempt under way at `time`, or the one that had just failed then; clocks differ by `slack`.

        One that has succeeded writes no status behind its end.
        """
        latest = self.running_at(time)
        if latest and time <= latest.end + (0 if latest.succeeded else slack):
            return latest
        following = self.running_at(time + slack)
        return following if following is not latest else None

    def bound(self) -> NumberedAttempt | None:
        """Return the attempt that bound the Pod: the last that succeeded. There is one, but where a scheduler erred."""
        return next((known for known in reversed(self._attempts) if known.succeeded), None)

    def between(self, start: int, end: int) -> Sequence[NumberedAttempt]:
        """Return the attempts that were under way between two times."""
        return [known for known in self._attempts if known.start <= end and start <= known.end]
