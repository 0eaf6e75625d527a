"""Two configurations over one recording, in one pass and in virtual time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from podtrail.backtest.breakdown import Breakdown
from podtrail.backtest.compared_traces import ComparedTrace, ComparedTraces, SideDecision
from podtrail.backtest.pods import PodStories, pod_name
from podtrail.backtest.report import AttemptKind, ChangedAttempt, Direction, ReportedDecision, ReportedVote
from podtrail.backtest.side import Contender, Side
from podtrail.backtest.weight import WeightedShare
from podtrail.otlp import Attempt, Verdict
from podtrail.recording import Record

MOST_EXAMPLES: Final = 200
"""Of each direction."""
_MOST_VOTES: Final = 40
_LONGEST: Final = 500
KINDS: Final[tuple[AttemptKind, ...]] = ("failed", "slow", "other")


@dataclass(slots=True)
class RecordingCounts:
    """What the recording held: requests, spans, damage, and when the first and the last request arrived."""

    requests: int = 0
    spans: int = 0
    rejected: int = 0
    damages: int = 0
    untimed: int = 0
    first: int = 0
    last: int = 0

    def add(self, record: Record) -> None:
        """Count a request."""
        self.first = record.arrival if not self.requests else self.first
        self.last = max(self.last, record.arrival)
        self.requests += 1
        self.spans += sum([group.span_count for group in record.intake.groups])
        self.rejected += record.intake.rejected
        self.untimed += not record.timed


@dataclass(slots=True)
class KeptLinks:
    """How many links kept spans have, and how many of them lead to what is not kept or not known."""

    all: int = 0
    dangling: int = 0
    unknown: int = 0


@dataclass(slots=True)
class KeptAttempts:
    """What a side keeps of the attempts."""

    attempts: WeightedShare = field(default_factory=WeightedShare)
    failed: WeightedShare = field(default_factory=WeightedShare)
    slow: WeightedShare = field(default_factory=WeightedShare)
    links: KeptLinks = field(default_factory=KeptLinks)


class Backtest:
    """Feeds two sides with the same recording and compares what they decide."""

    def __init__(
        self, baseline: Contender | None, candidate: Contender, *, slow: int, probability: float = 1.0, seed: int = 0
    ) -> None:
        """Compare a candidate with a baseline, or (None) with the recording itself.

        Args:
            baseline: what is, or None.
            candidate: what may come.
            slow: nanoseconds beyond which an attempt that succeeded is slow.
            probability: with which a trace came into the recording where its spans do not say.
            seed: of all randomness.
        """
        self.slow = slow
        self.intakes = RecordingCounts()
        contenders = (baseline, candidate)
        self.sides = [
            Side(contender, partial(self._decided, at), partial(self._linked, at), seed)
            for at, contender in enumerate(contenders)
        ]
        self.fates = ComparedTraces([side.decides for side in self.sides], probability, self._settled, self._fold)
        self.kept = [KeptAttempts() for _ in self.sides]
        self.pods = PodStories(len(self.sides))
        self.tables = [Breakdown(by, len(self.sides)) for by in ("namespace", "profile", "result", "plugin")]
        self.changes: dict[Direction, Counter[AttemptKind]] = {"lost": Counter(), "gained": Counter()}
        self._examples: dict[tuple[Direction, AttemptKind], list[ChangedAttempt]] = {}
        self._asked: Counter[tuple[Direction, AttemptKind]] = Counter()
        self.thinned = WeightedShare()
        """All traces: whether, and how much, the recording is a sample."""

    def add(self, record: Record) -> None:
        """Take a recorded request."""
        self.intakes.add(record)
        self.fates.came(record.intake.groups)
        for side in self.sides:
            side.add(record.arrival, record.intake)

    def finish(self) -> None:
        """Let all be decided."""
        for side in self.sides:
            side.finish()
        self.fates.finish()
        self.pods.finish()

    @property
    def examples(self) -> list[ChangedAttempt]:
        """Attempts that one side keeps alone, failed ones first, then slow ones."""
        directions: tuple[Direction, ...] = ("lost", "gained")
        found: list[ChangedAttempt] = []
        for direction in directions:
            some = [example for kind in KINDS for example in self._examples.get((direction, kind), ())]
            found += some[:MOST_EXAMPLES]
        return found

    def kind(self, attempt: Attempt) -> AttemptKind:
        """Return whether an attempt is failed, slow or neither."""
        if attempt.failed:
            return "failed"
        return "slow" if attempt.end - attempt.start > self.slow else "other"

    def _decided(self, side: int, verdict: Verdict) -> None:
        self.fates.decided(side, verdict)

    def _linked(self, side: int, trace_id: bytes, target: bytes) -> None:
        self.fates.linked(side, trace_id, target)

    def _settled(self, fate: ComparedTrace) -> None:
        """Ask why, as long as the spans are here, where an example may be made of a trace."""
        direction = _direction(fate.bits)
        if direction is None or fate.attempt is None:
            return
        kind = self.kind(fate.attempt)
        if self._asked[direction, kind] < MOST_EXAMPLES:
            self._asked[direction, kind] += 1
            for outcome in fate.outcomes:
                if outcome is not None and outcome.verdict is not None:
                    outcome.explained = outcome.verdict.explained()

    def _fold(self, fate: ComparedTrace) -> None:
        bits = fate.bits
        if not fate.late:
            self.thinned.add(fate.probability, within=bits > 0)
            for at, side in enumerate(self.sides):
                if bits >> at & 1:
                    side.output.weighed.add(fate.spans, fate.probability)
        dangling = [self._follow_links(at, fate) for at in range(len(self.sides))]
        if fate.attempt is None:
            return
        kind = self.kind(fate.attempt)
        for at, kept in enumerate(self.kept):
            within = bool(bits >> at & 1)
            kept.attempts.add(fate.probability, within=within)
            if kind == "failed":
                kept.failed.add(fate.probability, within=within)
            elif kind == "slow":
                kept.slow.add(fate.probability, within=within)
        self.pods.add(fate.attempt, bits, dangling)
        self._tabulate(fate, fate.attempt, bits)
        if (direction := _direction(bits)) is not None:
            self.changes[direction][kind] += 1
            examples = self._examples.setdefault((direction, kind), [])
            if len(examples) < MOST_EXAMPLES:
                examples.append(_example(direction, kind, fate, fate.attempt))

    def _tabulate(self, fate: ComparedTrace, attempt: Attempt, bits: int) -> None:
        names = ({attempt.namespace}, {attempt.profile}, {attempt.result}, fate.plugins or fate.named)
        for table, some in zip(self.tables, names, strict=True):
            table.add(some, bits, fate.spans, fate.size, fate.probability)

    def _follow_links(self, side: int, fate: ComparedTrace) -> int:
        dangling = 0
        links = self.kept[side].links
        if fate.bits >> side & 1:
            for target in fate.links[side]:
                bits = self.fates.kept(target)
                links.all += 1
                links.unknown += bits is None
                dangling += bits is not None and not bits >> side & 1
        links.dangling += dangling
        return dangling


def _direction(bits: int) -> Direction | None:
    """Return what the candidate does to a trace in comparison; None when both sides agree."""
    return {0b01: "lost", 0b10: "gained"}.get(bits)  # type: ignore[return-value] # the values are directions


def _example(direction: Direction, kind: AttemptKind, fate: ComparedTrace, attempt: Attempt) -> ChangedAttempt:
    return ChangedAttempt(
        direction,
        kind,
        fate.trace_id,
        pod_name(attempt),
        attempt.pod_uid,
        attempt.start,
        attempt.end - attempt.start,
        attempt.result,
        attempt.profile,
        sorted(fate.plugins or fate.named),
        [_told(outcome) for outcome in fate.outcomes],
    )


def _told(outcome: SideDecision | None) -> ReportedDecision:
    assert outcome is not None, "only what every side has decided is folded"
    votes: Sequence[ReportedVote] = [
        ReportedVote(vote.policy, vote.decision, vote.why[:_LONGEST]) for vote in outcome.explained if not vote.shadow
    ]
    if not votes:
        votes = [ReportedVote(policy, vote, "") for policy, vote in outcome.votes.items()]
    return ReportedDecision(outcome.decision, outcome.policy, outcome.reason[:_LONGEST], votes[:_MOST_VOTES])
