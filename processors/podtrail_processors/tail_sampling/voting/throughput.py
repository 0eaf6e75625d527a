"""Probabilities that keep to a rate: measured in windows of time, and smoothed from one to the next.

They are set anew at once when there is plainly more than was reckoned with. All of it follows from what came before and
when, never from the randomness of the trace in question: so each trace is kept exactly with the probability that is
recorded, and kept traces weighted by its inverse add up to what there was.
"""

from itertools import repeat
from typing import NamedTuple

from podtrail.config.types import SECOND
from podtrail_processors.probability import ALWAYS, NEVER, probability_of, threshold_for
from podtrail_processors.tail_sampling.voting.allotment import SampledAmounts, SavedAmounts, allot

_PRECISION = 4
"""Hexadecimal digits of a threshold."""
_SHORT = 16
"""At the start and after a surprise windows are a 16th of the interval, and double from there."""
_MANY = 16
"""So many kept traces too many tell of a change rather than of chance."""
_FEW = 2
_SUDDEN = 8
"""What comes in no time is taken for 8 times the budget's pace."""
_FAR_BELOW = 0.75
"""When less of the budget is spent in an interval although traces are thinned, that interval counts for more."""
_FORGOTTEN = 0.1
"""A key is forgotten when it brings fewer traces an interval."""
LEAST_BUDGET = 1e-6
MOST_BUDGET = 1e15
"""A second. Outside of these bounds, which nobody needs, doubles do not add up."""
OTHER = "(other)"
"""The label of all keys beyond the most that are told apart."""


class FlowShare(NamedTuple):
    """What a key has of the budget until the next plan."""

    label: str
    threshold: int
    rate: float
    """How much comes a second; 0 when nothing is known yet."""
    kept: float
    """How much of it is to be kept a second."""


class Flow:
    """One key: what comes of it, and with what probability it is kept."""

    __slots__ = ("demand", "kept", "kept_rate", "known", "label", "probability", "seen", "share", "threshold")

    def __init__(self, label: str) -> None:
        self.label = label
        self.demand = SampledAmounts()
        """A second, smoothed."""
        self.seen = SampledAmounts()
        """In this window."""
        self.kept = self.kept_rate = 0.0
        self.known = False
        """Whether it came in the last window, so that it may be reckoned with in this one."""
        self.set(1.0, self.demand)

    def saved(self) -> "SavedFlow":
        """Return what is known of it."""
        return SavedFlow(
            *(self.label, self.demand.saved(), self.seen.saved(), self.kept, self.kept_rate, self.known),
            *(self.threshold, self.probability, self.share),
        )

    @classmethod
    def restored(cls, saved: "SavedFlow") -> "Flow":
        """Return the key that was saved."""
        flow = cls(OTHER if saved.label == OTHER else saved.label)
        flow.demand, flow.seen = SampledAmounts.restored(saved.demand), SampledAmounts.restored(saved.seen)
        flow.kept, flow.kept_rate, flow.known = saved.kept, saved.kept_rate, saved.known
        flow.threshold, flow.probability, flow.share = saved.threshold, saved.probability, saved.share
        return flow

    def set(self, probability: float, expected: SampledAmounts) -> None:
        """Keep it with this probability from here on. `expected`: what is to come of it a second."""
        self.threshold = threshold_for(max(probability, 1 / NEVER), _PRECISION) if probability < 1 else ALWAYS
        self.probability = probability_of(self.threshold)
        self.share = FlowShare(self.label, self.threshold, expected.total(), expected.kept_at(self.probability))


class SavedFlow(NamedTuple):
    """A key in a saved state."""

    label: str
    demand: SavedAmounts
    seen: SavedAmounts
    kept: float
    kept_rate: float
    known: bool
    threshold: int
    probability: float
    share: FlowShare


class SavedThroughput(NamedTuple):
    """What was measured in a saved state: counts and sums in the order in which `Throughput.restore` has them."""

    flows: tuple[tuple[str, SavedFlow], ...]
    others: SavedFlow
    later: SavedAmounts
    counts: tuple[int, int, int, int, int]
    sums: tuple[float, float, float, float, float]


class Throughput:
    """Divides a budget a second among keys. Times are pipeline time in Unix nanoseconds.

    What is spent counts as expected, probability times amount. In any interval that is at most about twice the budget,
    whatever comes. Keys that are new or come again share a probability: they are kept whole until there are too many.
    """

    def __init__(self, budget: float, interval: int, *, most_keys: int, least: float = 0.0) -> None:
        self.budget = budget
        self.flows: dict[str, Flow] = {}
        self._interval = interval
        self._most_keys = most_keys
        self._least = least
        self._began = 0
        self._length = max(1, interval // _SHORT)
        self._basis = 0
        """Over what time the rates were measured, at most an interval."""
        self._others = Flow("")
        """Keys that are not known: what is seen are the first traces of each, to which `_later` ones come."""
        self._later = SampledAmounts()
        self._other_keys = 1
        self._planned = 0
        """How many traces have come since the last plan."""
        self._spent = self._pace = self._slack = 0.0
        """In this window: spent, to be spent a second, and what may be spent above that."""
        self._amount = self._traces = 0.0
        """Of recent traces, for their mean."""

    def admit(self, key: str, label: str, amount: float, sampled: float, now: int) -> Flow:
        """Take note of a trace; return its key with the threshold for it.

        `sampled`: the probability with which it was sampled before it came.
        """
        if now - self._began >= self._length:
            self._finish(now)
        flow = self.flows.get(key) or self._new(key, label)
        if not flow.known:
            if flow.seen.came:
                self._later.add(amount, sampled)
            else:
                self._other_keys += 1
                self._others.seen.add(amount, sampled)
        flow.seen.add(amount, sampled)
        self._planned += 1
        self._amount += amount
        self._traces += 1
        spent = self._spent + amount * min(1.0, flow.probability / sampled)
        if spent > self._pace * (now - self._began) / SECOND + self._slack:
            self._check(spent, now)
        self._spent += amount * min(1.0, flow.probability / sampled)
        return flow

    def saved(self) -> "SavedThroughput":
        """Return what was measured."""
        flows = tuple([(key, flow.saved()) for key, flow in self.flows.items()])
        counts = (self._began, self._length, self._basis, self._other_keys, self._planned)
        return SavedThroughput(
            *(flows, self._others.saved(), self._later.saved(), counts),
            (self._spent, self._pace, self._slack, self._amount, self._traces),
        )

    def restore(self, saved: "SavedThroughput") -> None:
        """Go on from what was measured."""
        self.flows = {OTHER if key == OTHER else key: Flow.restored(flow) for key, flow in saved.flows}
        self._others, self._later = Flow.restored(saved.others), SampledAmounts.restored(saved.later)
        self._began, self._length, self._basis, self._other_keys, self._planned = saved.counts
        self._spent, self._pace, self._slack, self._amount, self._traces = saved.sums

    def take_over(self, predecessor: "Throughput") -> None:
        """Take what another has measured of the same keys in the same unit; the budget is this one's."""
        flows = sorted(predecessor.flows.items(), key=lambda item: item[1].demand.total(), reverse=True)
        self.flows, predecessor.flows = dict(flows[: self._most_keys]), {}
        self._began, self._basis = predecessor._began, min(predecessor._basis, self._interval)
        self._spent, self._pace, self._slack = predecessor._spent, predecessor._pace, predecessor._slack
        self._amount, self._traces = predecessor._amount, predecessor._traces
        self._length = min(predecessor._length, self._interval)
        self._others, self._other_keys = predecessor._others, predecessor._other_keys
        self._later = predecessor._later
        self._plan({key: flow.demand for key, flow in self.flows.items() if flow.known}, self._others.demand)

    def _new(self, key: str, label: str) -> Flow:
        if len(self.flows) >= self._most_keys:
            if (other := self.flows.get(OTHER)) is not None:
                return other
            key = label = OTHER
        flow = self.flows[key] = Flow(label)
        flow.set(self._others.probability, flow.demand)
        return flow

    def _begin(self, now: int) -> None:
        self._began = now
        self._spent = 0.0
        self._slack = self._allowance()
        for flow in self.flows.values():
            flow.known = bool(flow.seen.came)
            flow.seen, flow.kept = SampledAmounts(), 0.0
        self._plan({key: flow.demand for key, flow in self.flows.items() if flow.known}, self._others.demand)
        self._others.seen, self._later, self._other_keys = SampledAmounts(), SampledAmounts(), 0
        self._pace = self._others.share.kept + sum(flow.share.kept for flow in self.flows.values() if flow.known)

    def _allowance(self) -> float:
        """Return how much more than planned may be spent before that is called a surprise."""
        mean = self._amount / self._traces if self._traces else 0.0
        of_window, of_interval = (self.budget * time / SECOND for time in (self._length, self._interval))
        return max(_FEW * mean, min(of_interval / 2, max(of_window / 4, _MANY * mean)))

    def _finish(self, now: int) -> None:
        """End a window that went as expected, or in which less came."""
        if not self._traces:
            self._begin(now)
            return
        took = now - self._began
        thinned = any(flow.threshold != ALWAYS for flow in self.flows.values())
        if took >= self._interval and thinned and self._spent < _FAR_BELOW * self.budget * took / SECOND:
            self._basis = min(self._basis, took // 3)
        self._measure(took)
        self._basis = min(self._basis + took, self._interval)
        self._length = min(2 * self._length, self._interval)
        self._begin(now)

    def _check(self, spent: float, now: int) -> None:
        """See whether more comes than was reckoned with; if so, reckon with what came in this window."""
        took, allowance = now - self._began, self._allowance()
        self._slack = max(self._slack, allowance)
        if spent <= self._pace * took / SECOND + self._slack or self._planned < len(self.flows) // 4:
            return
        sudden = int(allowance / self.budget / _SUDDEN * SECOND)
        if took < sudden:
            self._slack += allowance / 2
            seconds = sudden / SECOND
            known = {key: flow for key, flow in self.flows.items() if flow.known or flow.seen.came}
            expected = {key: flow.demand.raised(flow.seen, seconds) for key, flow in known.items()}
            self._plan(expected, self._others.demand.raised(self._others.seen, seconds))
            return
        came = {key: flow.seen for key, flow in self.flows.items()}
        self._measure(took)
        for key, flow in self.flows.items():
            flow.demand = flow.demand.raised(came[key], took / SECOND)
        self._basis = min(took, self._interval)
        self._length = max(1, self._interval // _SHORT)
        self._begin(now)

    def _measure(self, took: int) -> None:
        """Mix what came in a window into the rates, the more of it the longer it was; forget keys that have ceased."""
        share, seconds = took / (self._basis + took), took / SECOND
        mean = self._amount / self._traces if self._traces else 0.0
        least = _FORGOTTEN * mean * SECOND / self._interval
        self._amount, self._traces = self._amount / 2, self._traces / 2
        first = SampledAmounts().mixed(self._others.seen, seconds, 1.0, 0.0)
        # Keys that stay are known from now on; where they don't, others like them are to be expected.
        self._others.demand = first.plus(self._later, self._gone() / seconds)
        for key, flow in list(self.flows.items()):
            unseen = not flow.seen.came
            flow.demand = flow.demand.mixed(flow.seen, seconds, share, least)
            flow.kept_rate = (1 - share) * flow.kept_rate + share * flow.kept / seconds
            if unseen and not flow.demand.came:
                del self.flows[key]

    def _gone(self) -> float:
        """Return what share of what was known has not come again in this window."""
        known = [flow for flow in self.flows.values() if flow.known]
        total = sum(flow.demand.total() for flow in known)
        return sum(flow.demand.total() for flow in known if not flow.seen.came) / total if total else 0.0

    def _plan(self, known: dict[str, SampledAmounts], others: SampledAmounts) -> None:
        """Set the probabilities for what is to be expected of the known keys, and of all others."""
        self._planned = 0
        mean = self._amount / self._traces if self._traces else 1.0
        interval = self._interval / SECOND
        rates = [others, *known.values()]
        traces = [rate.total() / mean * interval for rate in rates]
        keys = [max(1, self._other_keys), *repeat(1, len(known))]
        for_others, *probabilities = allot(rates, traces, keys, self.budget, self._least)
        self._others.set(for_others, others)
        for key, rate, probability in zip(known, known.values(), probabilities, strict=True):
            self.flows[key].set(probability, rate)
        for key, flow in self.flows.items():
            if key not in known:
                flow.set(self._others.probability, flow.demand)
