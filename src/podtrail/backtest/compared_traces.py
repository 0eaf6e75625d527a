"""The decisions of both sides, joined trace by trace, and held a while longer for spans that come late.

Memory is bounded: by what the samplers hold (their own limits), by `MOST_PENDING`, and by `MOST_SETTLED`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from podtrail.backtest.weight import probability_of
from podtrail.lru import Lru
from podtrail.otlp import (
    REFUSAL,
    Attempt,
    Decision,
    Group,
    PolicyVote,
    Verdict,
    attempts_in,
    read_message,
    read_rejections,
    split,
)

MOST_PENDING: Final = 200_000
MOST_SETTLED: Final = 20_000
MOST_REMEMBERED: Final = 200_000
MOST_HELD: Final = 256 << 20
"""Bytes of spans that are held to say why, where one side decides later than the other."""
_MOST_PLUGINS: Final = 8
_LONGEST_NAME: Final = 253
_LONGEST_REASON: Final = 500
_MOST_LINKS: Final = 16

Bits = int
"""Which sides kept a trace: bit 0 for the baseline, bit 1 for the candidate."""


@dataclass(slots=True)
class SideDecision:
    """What one side decided about a trace."""

    decision: Decision
    policy: str = ""
    reason: str = ""
    votes: Mapping[str, Decision] = field(default_factory=dict)
    verdict: Verdict | None = None
    """As long as somebody may ask it why."""
    explained: Sequence[PolicyVote] = ()

    @property
    def kept(self) -> bool:
        """Whether the trace leaves."""
        return self.decision == "sampled"


def passes() -> SideDecision:
    """Return the outcome where no sampler decides."""
    return SideDecision("sampled", reason="no sampler: everything passes")


@dataclass(slots=True)
class ComparedTrace:
    """What both sides decided about one trace, and what the comparison needs to know of it."""

    trace_id: bytes
    outcomes: list[SideDecision | None]
    attempt: Attempt | None = None
    plugins: set[str] = field(default_factory=set)
    """Which said no, as plugin spans tell."""
    named: frozenset[str] = frozenset()
    """Which said no, as far as the attempt's message tells."""
    probability: float = 1.0
    spans: int = 0
    size: int = 0
    """Bytes of its spans."""
    links: list[set[bytes]] = field(default_factory=list)
    """By side: traces that its kept spans link to."""
    late: bool = False
    """It is over already, and has been counted: more spans have come."""

    @property
    def bits(self) -> Bits:
        """Which sides kept it."""
        return sum(1 << side for side, outcome in enumerate(self.outcomes) if outcome is not None and outcome.kept)


class ComparedTraces:
    """Joins what two sides decide, trace by trace."""

    def __init__(
        self,
        deciding: Sequence[bool],
        probability: float,
        settled: Callable[[ComparedTrace], None],
        fold: Callable[[ComparedTrace], None],
    ) -> None:
        """Join sides, of each of which is told whether it decides at all.

        `settled` is shown each trace once every side has decided, `fold` when it is over.
        """
        self._deciding = deciding
        self._probability = probability
        self._tell_settled = settled
        self._fold = fold
        self._pending: OrderedDict[bytes, ComparedTrace] = OrderedDict()
        self._settled: OrderedDict[bytes, ComparedTrace] = OrderedDict()
        self._over: Lru[bytes, Bits] = Lru(MOST_REMEMBERED)
        self._held: OrderedDict[bytes, int] = OrderedDict()
        self._held_bytes = 0
        self.undecided = [0 for _ in deciding]
        """By side: attempts about which it never decided."""

    def came(self, groups: Sequence[Group]) -> None:
        """Take note of the attempts among what comes, and of who refused them."""
        for group in groups:
            attempt = next(attempts_in(group.spans), None)
            refusing = _refusing(group) if REFUSAL in group.spans else ()
            probability = probability_of(group)
            if attempt is None and probability is None and not refusing:
                continue
            fate = self._fate(group.trace_id)
            if attempt is not None and fate.attempt is None:
                fate.attempt, fate.named = _slim(attempt), _named(attempt)
            fate.plugins.update(refusing)
            fate.probability = fate.probability if probability is None else probability
            self._settle(fate)

    def decided(self, side: int, verdict: Verdict) -> None:
        """Take note of what a side decided."""
        fate = self._fate(verdict.trace_id)
        before = fate.outcomes[side]
        # Of several decisions about one trace (late spans, several pipelines) the one that keeps it counts.
        if before is None or (verdict.decision == "sampled" and not before.kept):
            fate.outcomes[side] = SideDecision(
                verdict.decision,
                verdict.policy,
                verdict.reason[:_LONGEST_REASON],
                verdict.votes,
                verdict if before is None else None,
            )
        if verdict.spans > fate.spans:
            fate.spans = verdict.spans
            fate.size = sum([len(group.spans) for group in verdict.groups])
        self._settle(fate)
        if fate.trace_id in self._pending:
            self._hold(fate)

    def linked(self, side: int, trace_id: bytes, target: bytes) -> None:
        """Take note of a link on a span that a side kept."""
        fate = self._settled.get(trace_id) or self._pending.get(trace_id)
        if fate is not None and len(fate.links[side]) < _MOST_LINKS:
            fate.links[side].add(target)

    def kept(self, trace_id: bytes) -> Bits | None:
        """Return which sides kept a trace; None when it never came, or too long ago."""
        fate = self._settled.get(trace_id) or self._pending.get(trace_id)
        return fate.bits if fate is not None else self._over.get(trace_id)

    def finish(self) -> None:
        """Fold all that is left."""
        for fate in list(self._left()):
            self._end(fate)

    def _left(self) -> Iterator[ComparedTrace]:
        yield from self._settled.values()
        yield from self._pending.values()

    def _fate(self, trace_id: bytes) -> ComparedTrace:
        fate = self._settled.get(trace_id) or self._pending.get(trace_id)
        if fate is not None:
            return fate
        sides = len(self._deciding)
        outcomes: list[SideDecision | None] = [None if decides else passes() for decides in self._deciding]
        before = self._over.get(trace_id)
        if before is not None:  # spans that come long after the decision share its fate
            outcomes = [SideDecision("sampled" if before >> side & 1 else "not_sampled") for side in range(sides)]
        links: list[set[bytes]] = [set() for _ in range(sides)]
        fate = ComparedTrace(trace_id, outcomes, probability=self._probability, links=links, late=before is not None)
        self._pending[trace_id] = fate
        if len(self._pending) > MOST_PENDING:
            self._end(self._pending.popitem(last=False)[1])
        return fate

    def _settle(self, fate: ComparedTrace) -> None:
        if fate.trace_id in self._settled or None in fate.outcomes:
            return
        self._tell_settled(fate)
        _let_go(fate)
        self._held_bytes -= self._held.pop(fate.trace_id, 0)
        self._pending.pop(fate.trace_id, None)
        self._settled[fate.trace_id] = fate
        if len(self._settled) > MOST_SETTLED:
            self._end(self._settled.popitem(last=False)[1])

    def _hold(self, fate: ComparedTrace) -> None:
        """Count the spans of a trace that the other side still decides about; let go of the oldest beyond the bound."""
        self._held_bytes += fate.size - self._held.pop(fate.trace_id, 0)
        self._held[fate.trace_id] = fate.size
        while self._held_bytes > MOST_HELD:
            trace_id, size = self._held.popitem(last=False)
            self._held_bytes -= size
            _let_go(self._pending[trace_id])

    def _end(self, fate: ComparedTrace) -> None:
        for side, outcome in enumerate(fate.outcomes):
            if outcome is None:  # a processor ahead of the sampler has taken its spans
                self.undecided[side] += fate.attempt is not None
                fate.outcomes[side] = SideDecision("not_sampled", reason="it never reached the sampler")
        self._held_bytes -= self._held.pop(fate.trace_id, 0)
        _let_go(fate)
        self._fold(fate)
        if fate.trace_id not in self._over:
            self._over.put(fate.trace_id, fate.bits)


def _refusing(group: Group) -> set[str]:
    found: set[str] = set()
    for span in split(group.spans):
        if REFUSAL in span and len(found) < _MOST_PLUGINS:
            found.update(refusal.plugin[:_LONGEST_NAME] for refusal in read_rejections(span) if refusal.plugin)
    return found


def _let_go(fate: ComparedTrace) -> None:
    """Forget what nobody asks any more, and with it the spans."""
    for outcome in fate.outcomes:
        if outcome is not None:
            outcome.verdict = None


def _slim(attempt: Attempt) -> Attempt:
    """Return an attempt whose texts take no more room than names do; of its message is known whether there is one."""
    return attempt._replace(
        pod_uid=attempt.pod_uid[:_LONGEST_NAME],
        namespace=attempt.namespace[:_LONGEST_NAME],
        name=attempt.name[:_LONGEST_NAME],
        result=attempt.result[:_LONGEST_NAME],
        profile=attempt.profile[:_LONGEST_NAME],
        message=attempt.message[:1],
    )


def _named(attempt: Attempt) -> frozenset[str]:
    if not attempt.failed:
        return frozenset()
    return frozenset(refusal.plugin for refusal in read_message(attempt.message).rejections if refusal.plugin)
