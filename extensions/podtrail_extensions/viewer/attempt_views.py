"""View models of attempts: a Pod's list page by page, one of them, two side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podtrail.story import (
    AttemptComparison,
    AttemptsNotHeld,
    AttemptStory,
    Explanation,
    Library,
    Line,
    PodStory,
    TimeShare,
    TraceStory,
    answer,
    attempt_numbered,
    attempts_not_held,
    nearest_held,
    plain,
    time_shares,
    why_node,
    why_not_held,
)
from podtrail_extensions.viewer.views import AttemptRow, PodRow

ATTEMPTS_A_PAGE = 50
_SHARES = 12


@dataclass(frozen=True, slots=True)
class AttemptsPage:
    """Attempts of a Pod from a number on; rows that are not held stand where they would."""

    pod: PodRow
    rows: tuple[AttemptRow | AttemptsNotHeld, ...]
    first: int
    """The number asked for."""
    before: int | None
    """From which number the page before begins; None on the first."""
    after: int | None
    """From which number the next page begins; None on the last."""
    held: int
    """Attempts that are held of all."""


@dataclass(frozen=True, slots=True)
class AttemptPage:
    """One attempt."""

    pod: PodRow
    attempt: AttemptStory
    explanation: Explanation
    """What `podtrail why` says of it."""
    fate: str
    held: bool
    """Its spans are kept here."""
    why_node: str
    shares: tuple[TimeShare, ...]
    """Where its time went; () where its spans are not here."""
    before: AttemptStory | None
    after: AttemptStory | None
    trace: TraceStory | None


class AttemptNotHeld(NamedTuple):
    """An attempt that there is nothing to show of."""

    pod: PodRow
    number: int
    why: str
    before: AttemptStory | None
    after: AttemptStory | None


@dataclass(frozen=True, slots=True)
class ComparePage:
    """Two attempts side by side."""

    pod: PodRow
    comparison: AttemptComparison
    changes: tuple[Line, ...]
    """Of the scheduler's configuration between them."""
    held: tuple[bool, bool]
    """Whether the traces can be opened."""


class AttemptViews:
    """Puts together what is asked for of a Pod's attempts."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def listed(self, pod: PodStory, first: int) -> AttemptsPage:
        """Return the attempts from number `first` on."""
        gaps = {gap.last + 1: gap for gap in attempts_not_held(pod)}
        wanted = [one for one in pod.attempts if (one.number or 0) >= first]
        shown, rest = wanted[:ATTEMPTS_A_PAGE], wanted[ATTEMPTS_A_PAGE:]
        passed = [one for one in pod.attempts if (one.number or 0) < first]
        rows: list[AttemptRow | AttemptsNotHeld] = []
        before: AttemptStory | None = passed[-1] if passed else None
        for one in shown:
            gap = gaps.get(one.number or 0)
            if gap is not None:
                rows.append(gap)
            rows.append(self._row(one, before))
            before = one
        return AttemptsPage(
            pod=PodRow.of(pod),
            rows=tuple(rows),
            first=first,
            before=(passed[-ATTEMPTS_A_PAGE:][0].number or 1) if passed else None,
            after=rest[0].number if rest else None,
            held=len(pod.attempts),
        )

    def one(self, pod: PodStory, number: int, now: int, *, live: bool) -> AttemptPage | AttemptNotHeld:
        """Return an attempt by its number, or why it is not held."""
        attempt = attempt_numbered(pod, number)
        before, after = nearest_held(pod, number)
        if attempt is None:
            return AttemptNotHeld(PodRow.of(pod), number, why_not_held(pod, number), before, after)
        spans = self._library.spans_of(attempt.trace_id)
        return AttemptPage(
            pod=PodRow.of(pod),
            attempt=attempt,
            explanation=self._library.why_pod(pod, now, live=live, attempt=number) or Explanation(()),
            fate=self._library.decision(attempt),
            held=self._is_held(attempt),
            why_node=" ".join(map(plain, why_node(pod, attempt))) if attempt.result == "Success" else "",
            shares=time_shares(spans)[:_SHARES],
            before=before,
            after=after,
            trace=self._library.trace(attempt.trace_id),
        )

    def compared(self, pod: PodStory, one: AttemptStory, other: AttemptStory) -> ComparePage:
        """Return two attempts side by side."""
        return ComparePage(
            pod=PodRow.of(pod),
            comparison=self._library.compare(one, other),
            changes=self._library.changes_between(pod, one, other),
            held=(self._is_held(one), self._is_held(other)),
        )

    def _row(self, attempt: AttemptStory, before: AttemptStory | None) -> AttemptRow:
        same = before is not None and answer(attempt) == answer(before)
        return AttemptRow(attempt, self._is_held(attempt), self._library.decision(attempt), same)

    def _is_held(self, attempt: AttemptStory) -> bool:
        return bool(self._library.store.get(attempt.trace_id))


def first_and_last(attempts: Sequence[AttemptStory]) -> tuple[int, int]:
    """Return the numbers of the attempts that are compared unless others are asked for."""
    return (attempts[0].number or 1, attempts[-1].number or 1) if attempts else (1, 1)
