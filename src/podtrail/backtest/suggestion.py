"""A proposal that was tried: reckoned from what was measured, replayed, and reckoned again where it was too much."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from podtrail.backtest.budget import DailyBudget
from podtrail.backtest.measure import RecordingCosts, TraceCost
from podtrail.backtest.proposal import (
    CAPPED,
    MARGIN,
    MEASURING,
    REST,
    KeepWish,
    Proposal,
    ReckoningTerms,
    propose,
    settings_around,
)
from podtrail.backtest.replay_totals import ReplayTotals, run
from podtrail.config.types import format_duration
from podtrail.recording import Record
from podtrail.story import duration, several

_HOW: Final = "Lay it over your configuration: --config yours.yaml --config this.yaml"
_MOST_TRIES: Final = 8
_TRIES_OF_RATES: Final = 4
"""After so many a rate is given up for a percentage."""
_STEP: Final = 0.005
"""By so much less than what has room is given away the next time, and by twice as much each time after that."""

_THINNED: Final = (
    "and of all else a sample.",
    "and all else is thinned to what is left, the frequent more than the rare.",
)

Records = Callable[[], Iterable[Record]]
"""Reads the recording, each time from its beginning."""


class Unsuitable(ValueError):
    """Nothing can be reckoned from a recording; the text says why."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A proposal with what it came to in its replay."""

    wish: KeepWish
    measured: RecordingCosts
    everything: ReplayTotals
    proposal: Proposal
    trial: ReplayTotals

    @property
    def fits(self) -> bool:
        """Whether what left in the replay was within the budget."""
        budget = self.proposal.budget
        return self._a_day(self.trial.output.of(budget.unit)) <= budget.a_day

    @property
    def fulfilled(self) -> bool:
        """Whether it fits and keeps all that was asked for."""
        return self.fits and not self.proposal.shortfall

    def yaml(self, recordings: Iterable[str]) -> str:
        """Return the block of YAML, with what each policy costs."""
        unit = self.proposal.budget.unit
        more = self.trial.overhead(unit)
        comments = {
            policy: f"{several(cost.traces, 'trace')}, {self._words(cost.of(unit) * more)}"
            for policy, cost in self.trial.costs.items()
            if policy
        }
        return self.proposal.yaml([*self._head(recordings), *self.shortage(), _HOW], comments)

    def shortage(self) -> list[str]:
        """Return, in words, what the budget can't hold, and what could go first; nothing when it holds all."""
        told: list[str] = []
        if self.proposal.shortfall == "failed":
            told = self._failed_short()
        elif self.proposal.shortfall == "slow":
            told = self._slow_short()
        if not self.fits:
            told.append(f"The replay exceeds the budget all the same, after {_MOST_TRIES} tries.")
        return told

    def _failed_short(self) -> list[str]:
        failed, first = self._all_of(self.measured.failed), self._all_of(self.measured.first)
        told = [f"The budget can't hold all failed {self._subject}s: they alone cost {self._words(failed)}."]
        if self.proposal.by_trace:
            return [*told, f"That is too much: none is kept as such, {_THINNED[self.proposal.rate is not None]}"]
        kept = "So these are kept," if self.proposal.first else "That is too much as well: none is kept as such,"
        return [
            *told,
            f"What could go first: failures of a kind seen within the hour, {self._words(failed - first)}.",
            f"The first of each kind cost {self._words(first)}. {kept}",
            _THINNED[self.proposal.rate is not None],
        ]

    def _slow_short(self) -> list[str]:
        asked, room = self.wish.longer_than(self.measured), self.proposal.slow
        assert asked is not None, "it was asked for"
        slow = self._words(self._all_of(self.measured.longer_than(asked)))
        beside = f" beside {self._words(self._all_of(self.measured.failed))} of failed ones" if self.wish.failed else ""
        longer = f"those longer than {format_duration(asked)} cost {slow}{beside}"
        return [
            f"The budget can't hold all slow {self._subject}s: {longer}.",
            "There is room for none of them."
            if room is None
            else f"There is room for those longer than {format_duration(room)}.",
        ]

    def _all_of(self, cost: TraceCost) -> float:
        unit = self.proposal.budget.unit
        return cost.of(unit) * self.everything.overhead(unit)

    def _head(self, recordings: Iterable[str]) -> list[str]:
        came, trial, unit = self.everything.intakes, self.trial, self.proposal.budget.unit
        kept = f"{trial.failed - trial.lost:,} of {several(trial.failed, f'failed {self._subject}')} kept"
        length = duration(came.last - came.first)
        return [
            f"Proposed for {self.proposal.budget}, from {', '.join(recordings)}:",
            f"{several(trial.attempts, self._subject)}, {several(came.spans, 'span')} in {length}."
            + (" There are no scheduling attempts." if self.proposal.by_trace else ""),
            f"All of it would cost {self._words(self.everything.output.of(unit))}.",
            f"Replayed, with link_stitching and batch behind: {self._words(trial.output.of(unit))}, {kept}.",
        ]

    @property
    def _subject(self) -> str:
        return "trace" if self.proposal.by_trace else "attempt"

    def _a_day(self, amount: float) -> float:
        return amount / self.everything.days

    def _words(self, amount: float) -> str:
        return str(DailyBudget(self._a_day(amount), self.proposal.budget.unit))


def suggest(budget: DailyBudget, wish: KeepWish, records: Records, probability: float = 1.0) -> Suggestion:
    """Return what keeps to a budget. Reads the recording twice or more.

    Raises:
        Unsuitable: the recording holds no trace, or all of it came at one moment.
    """
    measured = RecordingCosts()
    everything = run(settings_around(MEASURING), records(), probability, measured.add)
    if not everything.output.traces:
        raise Unsuitable("the recordings hold no span: there is nothing to reckon from")
    if everything.days <= 0:
        raise Unsuitable("all of the recording came at one moment: nothing a day can be told")
    by_trace = measured.traces is not None
    measured = measured.traces or measured
    terms = ReckoningTerms(everything.days, everything.overhead(budget.unit), by_trace=by_trace)
    for at in range(_MOST_TRIES):
        proposal = propose(budget, wish, measured, terms)
        trial = run(proposal.settings(), records(), probability, by_trace=by_trace)
        done = Suggestion(wish, measured, everything, proposal, trial)
        if done.fits:
            break
        if proposal.rate is not None and at + 1 == _TRIES_OF_RATES:
            terms = terms._replace(steady=True, given=MARGIN)
        else:
            terms = _stricter(terms, done, 1 - _STEP * 2**at)
    return done


def _stricter(terms: ReckoningTerms, done: Suggestion, margin: float) -> ReckoningTerms:
    """Return terms under which less is kept: by chance where that suffices, else of what is kept whole."""
    budget, trial = done.proposal.budget, done.trial
    more = trial.overhead(budget.unit) / terms.days
    chance = sum(trial.costs[policy].of(budget.unit) for policy in (REST, CAPPED)) * more
    whole = trial.output.of(budget.unit) / terms.days - chance
    if whole >= budget.a_day:
        return terms._replace(overhead=terms.overhead * whole / budget.a_day / margin)
    return terms._replace(given=terms.given * margin * (budget.a_day - whole) / chance)
