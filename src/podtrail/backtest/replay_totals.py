"""A configuration tried on a recording: what leaves, what each policy costs, which failures are lost."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from podtrail.backtest.comparison import RecordingCounts
from podtrail.backtest.measure import TraceCost, outcome_of
from podtrail.backtest.side import Contender, Side
from podtrail.backtest.weight import Probabilities
from podtrail.otlp import Verdict, attempt_of
from podtrail.pipeline.settings import Settings
from podtrail.recording import Record


@dataclass(slots=True)
class ReplayTotals:
    """What a replay of a configuration came to."""

    intakes: RecordingCounts = field(default_factory=RecordingCounts)
    costs: defaultdict[str, TraceCost] = field(default_factory=lambda: defaultdict(TraceCost))
    """Of what each policy decided to keep; "" for what is not kept."""
    by_trace: bool = False
    """Whether traces count by their spans' statuses: no attempt is in the recording."""
    attempts: int = 0
    failed: int = 0
    lost: int = 0
    """Failed attempts, or traces, that are not kept."""
    output: TraceCost = field(default_factory=TraceCost)
    """All that leaves, amendments and headers with it."""

    @property
    def chosen(self) -> TraceCost:
        """What was decided to be kept."""
        return sum((cost for policy, cost in self.costs.items() if policy), TraceCost())

    def overhead(self, unit: str) -> float:
        """Return how much more leaves than was chosen: links, amendments, headers."""
        chosen = self.chosen.of(unit)
        return self.output.of(unit) / chosen if chosen else 1.0

    @property
    def days(self) -> float:
        """From the first arrival to the last."""
        return (self.intakes.last - self.intakes.first) / 86_400e9

    def decided(self, verdict: Verdict, probability: float) -> None:
        """Take note of a decision about a trace that came with a probability."""
        kept = verdict.decision == "sampled"
        self.costs[verdict.policy if kept else ""].add(verdict, probability)
        attempt = None if self.by_trace else attempt_of(verdict.groups)
        self.attempts += attempt is not None or self.by_trace
        if outcome_of(verdict)[0] if self.by_trace else attempt is not None and attempt.failed:
            self.failed += 1
            self.lost += not kept


def run(
    settings: Settings,
    records: Iterable[Record],
    probability: float,
    told: Callable[[Verdict, float], None] | None = None,
    *,
    by_trace: bool = False,
) -> ReplayTotals:
    """Run a configuration over a recording. `told` is shown every decision as well."""
    trial = ReplayTotals(by_trace=by_trace)
    probabilities = Probabilities(probability)

    def decided(verdict: Verdict) -> None:
        came_with = probabilities.of(verdict.trace_id)
        trial.decided(verdict, came_with)
        if told is not None:
            told(verdict, came_with)

    side = Side(Contender("proposal", "", settings), decided, lambda _trace, _target: None)
    for record in records:
        trial.intakes.add(record)
        probabilities.note(record.intake.groups)
        side.add(record.arrival, record.intake)
    side.finish()
    seen = side.policies
    ratio = trial.chosen.spans / seen.kept_spans if seen.kept_spans else 1.0
    trial.output = TraceCost(seen.kept, side.output.spans * ratio, side.output.size * ratio)
    return trial
