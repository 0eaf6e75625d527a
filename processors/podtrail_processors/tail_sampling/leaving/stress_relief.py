"""`stress_relief`: under stress new traces are not held but decided at once, by their trace id.

What is held already takes its usual way. A trace gets the same answer whenever its spans come, for it follows from its
randomness; and those lately decided are remembered, so that what came with an error is kept with all that follows, and
what follows after the end of the stress is not taken for a new trace.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from podtrail.component import Context
from podtrail.config.types import SECOND
from podtrail.lru import Lru
from podtrail.otlp import Group
from podtrail.otlp.columns import column_reader
from podtrail_processors.evidence.evidence import Header
from podtrail_processors.probability import ALWAYS, NEVER, probability_of, randomness_of, threshold_for
from podtrail_processors.tail_sampling.config.sampler import Config
from podtrail_processors.tail_sampling.config.stress_relief import MOST_REMEMBERED
from podtrail_processors.tail_sampling.holding.held_trace import FORGOTTEN, HeldTrace
from podtrail_processors.tail_sampling.judging.instruments import Instruments
from podtrail_processors.tail_sampling.judging.judge import Judge, Judgement
from podtrail_processors.tail_sampling.judging.shadow import SavedJudgement
from podtrail_processors.tail_sampling.leaving.failures import failure_in
from podtrail_processors.tail_sampling.leaving.releaser import Released, Releaser
from podtrail_processors.tail_sampling.voting.throughput import SavedThroughput, Throughput
from podtrail_processors.thresholds import MARK, Before, sampled_before, weighed

_V = TypeVar("_V")
POLICY = "stress_relief"
"""The name in verdicts."""
_PREFIX = "otelcol_processor_tail_sampling_"
_MIB = 2**20
_ERROR = 2
_statuses = column_reader({"status"})
_trace_states = column_reader({"trace_state"})
_HINTS = tuple(bytes([len(result)]) + result for result in (b"Unschedulable", b"Error"))
"""Results of failed attempts as they stand in a message, their length before them."""
_PRECISION = 4
_ERROR_INTERVAL = 10 * SECOND


class Level(NamedTuple):
    """How much stress there is, in percent of the limit that is nearest."""

    percentage: float
    cause: str


class Stress:
    """Begins at a level and ends below a lower one, never before some time has passed. Times in nanoseconds."""

    def __init__(self, begin_at: float, end_below: float, least: int) -> None:
        self._begin_at = begin_at
        self._end_below = end_below
        self._least = least
        self.since: int | None = None
        """Since when there is stress."""

    def update(self, level: float, now: int) -> bool:
        """Take note of the level at a time; return whether stress has begun or ended with it."""
        if self.since is None:
            if level < self._begin_at:
                return False
            self.since = now
            return True
        if level >= self._end_below or now - self.since < self._least:
            return False
        self.since = None
        return True


class SavedStress(NamedTuple):
    """Stress and what is remembered of it, in a saved state."""

    since: int | None
    remembers_until: int
    level: Level
    times: tuple[int, int]
    kept: tuple[tuple[bytes, SavedJudgement], ...]
    others: tuple[bytes, ...]
    errors: SavedThroughput | None


class StressRelief:
    """Decides new traces at once while there is stress, and remembers them for a while."""

    def __init__(
        self,
        config: Config,
        context: Context,
        instruments: Instruments,
        releaser: Releaser,
        *,
        weighs: bool,
    ) -> None:
        """Relieve the sampler with these releaser. `weighs`: they write thresholds themselves."""
        settings = config.stress_relief
        self._settings = settings
        self._room = config.maximum_held_mib * _MIB
        self._memory_used, self._lag, self._log = context.memory_used, context.lag, context.log
        self._instruments = instruments
        self._memory = releaser.memory
        self._releaser = releaser
        self._weighs = weighs
        self._stress = Stress(
            settings.activate_at_percentage, settings.deactivate_at_percentage, settings.minimum_duration
        )
        self._threshold = _threshold_of(settings.sampling_percentage)
        share = f"among the {settings.sampling_percentage:g} % chosen by trace id"
        self._chosen = Judgement("sampled", POLICY, f"stress relief: {share}", {}, self._threshold)
        self._not_chosen = Judgement("not_sampled", "", f"stress relief: not {share}", {}, self._threshold)
        rate = settings.errors_per_second
        self._errors = Throughput(rate, _ERROR_INTERVAL, most_keys=1) if rate else None
        self._wait = max(config.decision_wait, SECOND)
        self._remembers_until = 0
        self._kept: Lru[bytes, Judgement] = Lru(MOST_REMEMBERED)
        self._others: Lru[bytes, None] = Lru(MOST_REMEMBERED)
        self._level = Level(0.0, "")
        self._times = [0, 0]
        """How many traces were decided in this time of stress, and how many of them kept."""
        metrics = context.metrics
        active = metrics.gauge(
            _PREFIX + "stress_relief_active", "Whether new traces are decided at once: 1 or 0.", combine=max
        )
        active.read_from(lambda: float(self._stress.since is not None))
        level = metrics.gauge(_PREFIX + "stress_level", "The level of stress, in percent.", combine=max)
        level.read_from(lambda: self._level.percentage)
        self._decided = metrics.counter(
            _PREFIX + "traces_decided_under_stress", "Traces decided at once by stress_relief.", ("decision",)
        )

    def take(self, groups: Sequence[Group], arrived: int, now: int, out: Released) -> Sequence[Group]:
        """Decide what is new, if there is stress; return what takes its usual way."""
        self.observe(now)
        stressed = self._stress.since is not None
        if not stressed and now >= self._remembers_until:
            self._kept.clear()
            self._others.clear()
            return groups
        usual: list[Group] = []
        new: dict[bytes, list[Group]] = {}
        for group in groups:
            trace_id = group.trace_id
            if trace_id in self._kept:
                out.groups.extend(self._told([group], self._kept[trace_id]))
            elif trace_id in self._others:
                self._follow_other(group, arrived, now, out)
            elif not stressed or trace_id in self._memory.traces or self._releaser.remembered.recalls(trace_id):
                usual.append(group)
            elif not (self._releaser.knows and self._releaser.claims(group, now, out)):
                new.setdefault(trace_id, []).append(group)
        for trace_id, of_trace in new.items():
            self._instruments.new_traces.add(1)
            self._leave(of_trace, self._judged(trace_id, of_trace, now), arrived, now, out)
        return usual

    def observe(self, now: int) -> None:
        """See how much stress there is, and say so when it begins or ends."""
        settings = self._settings
        self._level = level = self._measured()
        if not self._stress.update(level.percentage, now):
            return
        if self._stress.since is not None:
            self._times = [0, 0]
            self._log.warning(
                "stress relief begins, %s: new traces are decided at once, %g %% of them kept by their trace id",
                level.cause,
                settings.sampling_percentage,
            )
        else:
            self._remembers_until = now + self._wait
            self._log.warning("stress relief ends: %d traces were decided at once, %d of them kept", *self._times)

    def deadline(self) -> int | None:
        """Return when what was decided at once is forgotten; None under stress, or where nothing was."""
        return self._remembers_until if self._stress.since is None and self.remembered else None

    def look(self, now: int) -> bool:
        """See how much stress there is, and forget what is to be forgotten; return whether that was due."""
        due = self.deadline()
        self.observe(now)
        if self._stress.since is None and now >= self._remembers_until:
            self._kept.clear()
            self._others.clear()
        return due is not None and due <= now

    @property
    def remembered(self) -> int:
        """How many traces that were decided at once are remembered."""
        return len(self._kept) + len(self._others)

    def saved(self, judge: Judge) -> "SavedStress":
        """Return since when there is stress, and what is remembered. `judge`: the sampler's."""
        kept = tuple([(trace_id, SavedJudgement.of(one, judge)) for trace_id, one in self._kept.items()])
        return SavedStress(
            *(self._stress.since, self._remembers_until, self._level, (self._times[0], self._times[1]), kept),
            *(tuple(self._others), self._errors.saved() if self._errors else None),
        )

    def restore(self, saved: "SavedStress", judge: Judge) -> None:
        """Go on from what was saved."""
        if self._errors and saved.errors:
            self._errors.restore(saved.errors)
        self._stress.since, self._remembers_until = saved.since, saved.remembers_until
        self._level, self._times = saved.level, [*saved.times]
        for trace_id, judgement in saved.kept:
            self._kept.put(trace_id, judgement.restored(judge))
        for trace_id in saved.others:
            self._others.put(trace_id, None)

    def take_over(self, predecessor: "StressRelief") -> None:
        """Go on where another was."""
        self._stress.since = predecessor._stress.since
        self._times, self._remembers_until = predecessor._times, predecessor._remembers_until
        self._kept, predecessor._kept = predecessor._kept, Lru(MOST_REMEMBERED)
        self._others, predecessor._others = predecessor._others, Lru(MOST_REMEMBERED)
        if self._errors and predecessor._errors:
            self._errors.take_over(predecessor._errors)

    def inherit(self, others: "Sequence[StressRelief]", mine: Callable[[bytes], bool]) -> None:
        """Go on where several others were, with those of the traces they remember that are `mine`."""
        began = [other._stress.since for other in others if other._stress.since is not None]
        self._stress.since = min(began, default=None)
        self._remembers_until = max((other._remembers_until for other in others), default=0)
        for other in others:
            for trace_id in filter(mine, other._kept):
                self._kept.put(trace_id, other._kept[trace_id])
            for trace_id in filter(mine, other._others):
                self._others.put(trace_id, None)

    def _measured(self) -> Level:
        settings = self._settings
        if settings.mode == "always":
            return Level(100.0, "mode is always")
        levels = [Level(0.0, "")]
        if self._room:
            share = 100 * self._memory.bytes / self._room
            levels.append(Level(share, f"undecided traces take {share:.0f} % of maximum_held_mib"))
        if settings.memory_limit_mib:
            share = 100 * self._memory_used() / (settings.memory_limit_mib * _MIB)
            levels.append(Level(share, f"the process takes {share:.0f} % of memory_limit_mib"))
        if settings.maximum_lag:
            lag = self._lag()
            levels.append(Level(100 * lag / settings.maximum_lag, f"decisions are {lag / SECOND:.1f} s late"))
        return max(levels)

    def _follow_other(self, group: Group, arrived: int, now: int, out: Released) -> None:
        """Let late spans of a trace go that was not kept, unless there is an error among them."""
        judgement = self._judged(group.trace_id, [group], now) if self._errors and self._failure_in(group) else None
        if judgement is None or judgement.decision != "sampled":
            judgement = self._releaser.rescue_by(group)
        if judgement is None:
            self._releaser.late_unkept(group, now, out)
        else:
            self._releaser.remembered.rescue(group.trace_id, judgement.policy)
            self._leave([group], judgement, arrived, now, out)

    def _leave(self, groups: Sequence[Group], judgement: Judgement, arrived: int, now: int, out: Released) -> None:
        """Let a trace go that was never held."""
        first, sampled = groups[0], judgement.decision == "sampled"
        trace = HeldTrace(first.trace_id, Header(first.resource, first.scope), arrived, now, now)
        trace.span_count = sum(group.span_count for group in groups)
        trace.close(FORGOTTEN)
        if sampled:
            self._releaser.kept_unheld(first.trace_id, judgement.policy, groups, now, out)
        self._releaser.conclude(trace, judgement, self._told(groups, judgement) if sampled else groups, now, now, out)
        self._instruments.decided.add(1, "true" if sampled else "false", judgement.decision)
        self._decided.add(1, judgement.decision)
        self._times[0] += 1
        self._times[1] += sampled
        if sampled:
            self._others.pop(first.trace_id, None)
            self._kept.put(first.trace_id, judgement)
        else:
            self._others.put(first.trace_id, None)

    def _judged(self, trace_id: bytes, groups: Sequence[Group], now: int) -> Judgement:
        before = _before(trace_id, groups)
        chosen = self._chosen if self._threshold <= before.randomness else self._not_chosen
        errors = self._errors
        failure = next((found for group in groups if (found := self._failure_in(group))), "") if errors else ""
        if not failure or errors is None:
            return chosen
        flow = errors.admit("errors", "errors", 1, probability_of(before.threshold), now)
        threshold = min(self._threshold, flow.threshold)
        if flow.threshold <= before.randomness:
            return Judgement("sampled", POLICY, f"stress relief: {failure}", {}, threshold)
        if chosen is self._chosen:
            return chosen._replace(threshold=threshold)
        most = self._settings.errors_per_second
        reason = f"stress relief: {failure}, but there are more such traces than {most:g} a second"
        return Judgement("not_sampled", "", reason, {}, threshold)

    def _failure_in(self, group: Group) -> str:
        """Return what failed; looks closer only where something hints at a failure, for time is short."""
        if _ERROR in _statuses(group.spans).status.code or any(hint in group.spans for hint in _HINTS):
            return failure_in(group)
        return ""

    def _told(self, groups: Sequence[Group], judgement: Judgement) -> Sequence[Group]:
        """Return kept groups with their threshold."""
        groups = self._releaser.inscribed(groups, judgement)
        if self._weighs:
            return groups
        told = [weighed(group, judgement.threshold) for group in groups]
        self._instruments.unparseable.add(sum(one.unparseable for one in told))
        return [one.group for one in told]


def _before(trace_id: bytes, groups: Sequence[Group]) -> Before:
    telling = [_trace_states(group.spans).trace_state for group in groups if MARK in group.spans]
    return (
        sampled_before(chain.from_iterable(telling), trace_id) if telling else Before(randomness_of(trace_id), ALWAYS)
    )


def _threshold_of(percentage: float) -> int:
    if percentage >= 100:
        return ALWAYS
    return threshold_for(percentage / 100, _PRECISION) if percentage / 100 >= 1 / NEVER else NEVER
