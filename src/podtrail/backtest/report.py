"""What a comparison comes to, ready to be shown: on a terminal, as JSON, as a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from podtrail.backtest.budget import DailyBudget
from podtrail.backtest.pods import BrokenPod
from podtrail.backtest.weight import Interval

AttemptKind = Literal["failed", "slow", "other"]
Direction = Literal["lost", "gained"]
"""By the candidate: kept only by the baseline, or only by the candidate."""


class ReportedVote(NamedTuple):
    """What a policy said of a trace, and why."""

    policy: str
    decision: str | None
    why: str


class ReportedDecision(NamedTuple):
    """What one side made of a trace."""

    decision: str
    policy: str
    reason: str
    votes: Sequence[ReportedVote]


class ChangedAttempt(NamedTuple):
    """An attempt that only one side keeps."""

    direction: Direction
    kind: AttemptKind
    trace_id: bytes
    pod: str
    pod_uid: str
    started_unix_nano: int
    duration_nanos: int
    result: str
    profile: str
    plugins: Sequence[str]
    decided: Sequence[ReportedDecision]
    """By side."""


class DailyRate(NamedTuple):
    """A rate, estimated where the recording is a sample."""

    a_day: float
    interval: Interval | None


class PolicyFigures(NamedTuple):
    """What a policy did on one side; None in all three where it is not there, in the last where nobody can know."""

    voted_yes: int | None
    decided: int | None
    only_it: int | None
    spans: int | None


class PolicyComparison(NamedTuple):
    """A policy on both sides."""

    name: str
    sides: Sequence[PolicyFigures]


class BreakdownRow(NamedTuple):
    """Attempts of one namespace, profile, result or plugin."""

    name: str
    attempts: int
    kept: Sequence[int]
    """By side."""
    spans_a_day: Sequence[float | None]
    """By side; None where the recording has no length."""
    bytes_a_day: Sequence[float | None]


class BreakdownTable(NamedTuple):
    """Attempts by one thing they have."""

    by: str
    parts: Sequence[BreakdownRow]


class SideReport(NamedTuple):
    """One side as a whole."""

    name: str
    source: str
    decides: bool
    """Whether it has a sampler in every pipeline."""
    traces: int
    """Decided; 0 where it does not decide."""
    kept_traces: int
    spans: int
    """That leave."""
    bytes: int
    spans_a_day: DailyRate | None
    """None where the recording has no length."""
    bytes_a_day: DailyRate | None
    kept_attempts: int
    attempts_share: float
    attempts_interval: Interval | None
    lost_failed: int
    """Failed attempts it does not keep."""
    lost_failed_interval: Interval | None
    """Of their share among failed attempts."""
    lost_slow: int
    pods_whole: int
    pods_broken: int
    pods_gone: int
    links: int
    """Of spans that leave."""
    links_dangling: int
    """To traces that were not kept."""
    links_unknown: int
    """To traces that are not in the recording, or too far from it."""
    over_budget: bool


class CheckedExpectation(NamedTuple):
    """An expectation that was asked for."""

    option: str
    held: bool
    got: str


class RecordingFigures(NamedTuple):
    """What the recording holds."""

    requests: int
    spans: int
    rejected: int
    damages: int
    untimed: int
    first_unix_nano: int
    last_unix_nano: int
    attempts: int
    failed: int
    slow: int

    @property
    def length(self) -> int:
        """From the first arrival to the last, nanoseconds."""
        return self.last_unix_nano - self.first_unix_nano


@dataclass(frozen=True, slots=True)
class Report:
    """A comparison of a candidate with a baseline, or with the recording itself."""

    sentence: str
    alone: bool
    """There is no baseline: the first side is the recording, of which everything is kept."""
    recordings: Sequence[str]
    came: RecordingFigures
    slow_threshold_nanos: int
    slow_chosen: str
    """How the threshold was chosen, in words."""
    sampling: str
    """Whether the recording is a sample, and what that means for the figures, in words."""
    budget: DailyBudget | None
    sides: Sequence[SideReport]
    lost: dict[AttemptKind, int]
    gained: dict[AttemptKind, int]
    newly_broken: int
    mended: int
    policies: Sequence[PolicyComparison]
    tables: Sequence[BreakdownTable]
    examples: Sequence[ChangedAttempt]
    broken_pods: Sequence[BrokenPod]
    gates: Sequence[CheckedExpectation]
    notes: Sequence[str]
