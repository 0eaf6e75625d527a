"""`stress_relief`: under stress new traces are not held but decided at once, by their trace id.

What is held already takes its usual way. A trace gets the same answer whenever its spans come, for it follows from its
randomness; and those lately decided are remembered, so that what came with an error is kept with all that follows, and
what follows after the end of the stress is not taken for a new trace.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from podtrail.component import Context
from podtrail.config.types import SECOND
from podtrail.otlp import Group
from podtrail.otlp.columns import column_reader
from podtrail_processors.probability import ALWAYS, NEVER, probability_of, threshold_for
from podtrail_processors.tail_sampling.config import Config
from podtrail_processors.tail_sampling.departures import Departures, Outcome
from podtrail_processors.tail_sampling.held import FORGOTTEN, HeldTrace
from podtrail_processors.tail_sampling.instruments import Instruments
from podtrail_processors.tail_sampling.judge import Judgement
from podtrail_processors.tail_sampling.stress import Stress
from podtrail_processors.tail_sampling.thresholds import sampled_before, weighed
from podtrail_processors.tail_sampling.throughput import Throughput

_V = TypeVar("_V")
POLICY = "stress_relief"
"""The name in verdicts."""
_PREFIX = "otelcol_processor_tail_sampling_"
_MIB = 2**20
_ERROR = 2
_MOST_REMEMBERED = 16_384
"""Of kept traces, and of others."""
_PRECISION = 4
_ERROR_INTERVAL = 10 * SECOND


class Level(NamedTuple):
    """How much stress there is."""

    percentage: float
    cause: str


class Relief:
    """Decides new traces at once while there is stress, and remembers them for a while."""

    def __init__(
        self,
        config: Config,
        context: Context,
        instruments: Instruments,
        departures: Departures,
        *,
        weighs: bool,
    ) -> None:
        """Relieve the sampler with these departures. `weighs`: they write thresholds themselves."""
        settings = config.stress_relief
        self._settings = settings
        self._room = config.maximum_held_mib * _MIB
        self._memory_used, self._lag, self._log = context.memory_used, context.lag, context.log
        self._instruments = instruments
        self._memory = departures.memory
        self._departures = departures
        self._weighs = weighs
        self._stress = Stress(
            settings.activate_at_percentage, settings.deactivate_at_percentage, settings.minimum_duration
        )
        self._threshold = _threshold_of(settings.sampling_percentage)
        rate = settings.errors_per_second
        self._errors = Throughput(rate, _ERROR_INTERVAL, most_keys=1) if rate else None
        self._read = column_reader({"status", "trace_state"})
        self._wait = max(config.decision_wait, SECOND)
        self._remembers_until = 0
        self._kept: OrderedDict[bytes, Judgement] = OrderedDict()
        self._others: OrderedDict[bytes, None] = OrderedDict()
        self._level = Level(0.0, "")
        self._times = [0, 0]
        """How many traces were decided in this time of stress, and how many of them kept."""
        metrics = context.metrics
        active = metrics.gauge(_PREFIX + "stress_relief_active", "Whether new traces are decided at once: 1 or 0.")
        active.read_from(lambda: float(self._stress.since is not None))
        level = metrics.gauge(_PREFIX + "stress_level", "The level of stress, in percent.")
        level.read_from(lambda: self._level.percentage)
        self._decided = metrics.counter(
            _PREFIX + "traces_decided_under_stress", "Traces decided at once by stress_relief.", ("decision",)
        )

    def take(self, groups: Sequence[Group], arrived: int, now: int, out: Outcome) -> Sequence[Group]:
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
                if self._errors and _ERROR in self._read(group.spans).status.code:
                    new.setdefault(trace_id, []).append(group)
                else:
                    self._departures.late_unkept(group, now, out)
            elif not stressed or trace_id in self._memory.traces or self._departures.remembered.recalls(trace_id):
                usual.append(group)
            elif not (self._departures.knows and self._departures.claims(group, now, out)):
                new.setdefault(trace_id, []).append(group)
        for trace_id, of_trace in new.items():
            self._decide(trace_id, of_trace, arrived, now, out)
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

    def take_over(self, predecessor: "Relief") -> None:
        """Go on where another was."""
        self._stress.since = predecessor._stress.since
        self._times, self._remembers_until = predecessor._times, predecessor._remembers_until
        self._kept, predecessor._kept = predecessor._kept, OrderedDict()
        self._others, predecessor._others = predecessor._others, OrderedDict()
        if self._errors and predecessor._errors:
            self._errors.take_over(predecessor._errors)

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

    def _decide(self, trace_id: bytes, groups: Sequence[Group], arrived: int, now: int, out: Outcome) -> None:
        judgement = self._judged(trace_id, b"".join(group.spans for group in groups), now)
        sampled = judgement.decision == "sampled"
        first = groups[0]
        header = self._memory.headers.intern(first.resource, first.scope)
        trace = HeldTrace(trace_id, header, arrived, now, now)
        trace.span_count = sum(group.span_count for group in groups)
        trace.close(FORGOTTEN)
        self._departures.conclude(trace, judgement, self._told(groups, judgement) if sampled else groups, now, now, out)
        if trace_id not in self._others:
            self._instruments.new_traces.add(1)
        self._instruments.decided.add(1, "true" if sampled else "false", judgement.decision)
        self._decided.add(1, judgement.decision)
        self._times[0] += 1
        self._times[1] += sampled
        if sampled:
            self._others.pop(trace_id, None)
            _remember(self._kept, trace_id, judgement)
        else:
            _remember(self._others, trace_id, None)

    def _judged(self, trace_id: bytes, spans: bytes, now: int) -> Judgement:
        columns = self._read(spans)
        before = sampled_before(columns.trace_state, trace_id)
        threshold, share = self._threshold, f"{self._settings.sampling_percentage:g} % chosen by trace id"
        reason = f"among the {share}" if threshold <= before.randomness else f"not among the {share}"
        if self._errors and _ERROR in columns.status.code:
            flow = self._errors.admit("errors", "errors", 1, probability_of(before.threshold), now)
            if flow.threshold <= before.randomness:
                reason = "a span has status ERROR"
            elif threshold > before.randomness:
                most = self._settings.errors_per_second
                reason = f"a span has status ERROR, but there are more such traces than {most:g} a second"
            threshold = min(threshold, flow.threshold)
        reason = f"stress relief: {reason}"
        if threshold <= before.randomness:
            return Judgement("sampled", POLICY, reason, {}, threshold)
        return Judgement("not_sampled", "", reason, {}, threshold)

    def _told(self, groups: Sequence[Group], judgement: Judgement) -> Sequence[Group]:
        """Return kept groups with their threshold."""
        groups = self._departures.inscribed(groups, judgement)
        if self._weighs:
            return groups
        told = [weighed(group, judgement.threshold) for group in groups]
        self._instruments.unparseable.add(sum(one.unparseable for one in told))
        return [one.group for one in told]


def _threshold_of(percentage: float) -> int:
    if percentage >= 100:
        return ALWAYS
    return threshold_for(percentage / 100, _PRECISION) if percentage / 100 >= 1 / NEVER else NEVER


def _remember(memory: OrderedDict[bytes, _V], trace_id: bytes, value: _V) -> None:
    memory[trace_id] = value
    if len(memory) > _MOST_REMEMBERED:
        memory.popitem(last=False)
