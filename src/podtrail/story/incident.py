"""What happened in a range of time: attempts, who said no and why, nodes, Pods, changes of the configuration.

A pure function of the Pods' stories. An attempt belongs to the range in which it ended, so that each is counted once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from podtrail.story.attempt import AttemptStory
from podtrail.story.bind import read_bind_refusal
from podtrail.story.change_question import ChangeAnswer, latest_change
from podtrail.story.configuration_change import configuration_changes
from podtrail.story.incident_rows import (
    ChangedConfiguration,
    ConcernedPod,
    IncidentAttempt,
    IncidentPlugin,
    IncidentRefusal,
    IncidentSlice,
    NodeFailure,
    NodeShare,
)
from podtrail.story.past_attempts import PastAttempts
from podtrail.story.pod import PodStory
from podtrail.story.pod_state import POD_STATES
from podtrail.story.refusal_index import names_some, plugins_that_refused, refusals_of, refused_by_all
from podtrail.story.slow_part import slow_part
from podtrail.story.time_range import TimeRange
from podtrail.story.words import duration, several

MOST_ROWS: Final = 50
"""Of a table; what is left out is counted."""
_MOST_SLOWEST: Final = 10
_SLICES: Final = 12
"""Parts of the range, none shorter than a second."""
_MOST_KINDS: Final = 5_000
"""Different reasons, plugins or nodes that are told apart; what comes after them is not."""
_MOST_RESULTS: Final = 12
_SECOND: Final = 1_000_000_000
_SLOW: Final = _SECOND
_NONE_PAST: Final = PastAttempts()


@dataclass(frozen=True, slots=True)
class Incident:
    """What happened in a range of time. Tables are cut at `MOST_ROWS`; `…_in_all` says how many there are."""

    start_unix_nano: int
    end_unix_nano: int
    attempts: Mapping[str, int]
    """By result, the most frequent first."""
    before: Mapping[str, int]
    """In the same length of time just before."""
    tried: int
    """Pods with an attempt."""
    decisions: Mapping[str, int]
    """Of these attempts: by what a sampler decided; "" where none did."""
    slices: tuple[IncidentSlice, ...]
    reasons: tuple[IncidentRefusal, ...]
    reasons_in_all: int
    plugins: tuple[IncidentPlugin, ...]
    plugins_in_all: int
    nodes: tuple[NodeShare, ...]
    nodes_in_all: int
    pods: tuple[ConcernedPod, ...]
    """The most failed attempts first, of those that still wait before others."""
    pods_in_all: int
    changes: tuple[ChangedConfiguration, ...]
    beside: ChangeAnswer | None
    """What the latest change did, also one between Pods that were each tried under one configuration alone."""
    slowest: tuple[IncidentAttempt, ...]
    failures: tuple[NodeFailure, ...]
    at_least: bool
    """There were more attempts in the range than are counted."""
    before_at_least: bool
    """There were more in the time just before."""
    gone_until_unix_nano: int
    """Attempts that ended until then are not all counted; 0 where all are."""
    earliest_unix_nano: int
    """When the earliest attempt that is known began; 0 without one."""
    pods_gone: int
    """Pods that were tried in the range and are no longer held: their attempts are counted."""
    briefly: int
    """Attempts in the range of which it is no longer known where the time went."""

    @property
    def range(self) -> TimeRange:
        """The range of time."""
        return TimeRange(self.start_unix_nano, self.end_unix_nano)

    @property
    def sentence(self) -> str:
        """What happened, in one or two sentences; results are as spans name them."""
        length = duration(self.range.length)
        if not self.attempts:
            earlier = f" {_counted(self.before)} in the {length} before." if self.before else ""
            return f"No attempt {'that is held ' if self.at_least else ''}ended in these {length}.{earlier}"
        known = self.range.start - self.earliest_unix_nano
        unknown = self.before_at_least or known <= 0 or not self.earliest_unix_nano
        earlier = _counted(self.before) if self.before else "none known" if unknown else "none"
        earlier = f"at least {earlier}" if self.before_at_least and self.before else earlier
        partly = f" ({duration(known)} of it known)" if 0 < known < self.range.length else ""
        least = "At least " if self.at_least else ""
        tried = f"{several(self.attempts_in_all, 'attempt')} of {several(self.tried, 'Pod')}"
        return f"{least}{tried} in {length}: {_counted(self.attempts)}. In the {length} before{partly}: {earlier}."

    @property
    def attempts_in_all(self) -> int:
        """Attempts that ended in the range."""
        return sum(self.attempts.values())


def _counted(results: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {result}" for result, count in results.items())


@dataclass(slots=True)
class _Reason:
    attempts: int = 0
    pods: set[str] = field(default_factory=set)
    first: int = 0
    last: int = 0


@dataclass(slots=True)
class _Plugin:
    refused: int = 0
    pods: set[str] = field(default_factory=set)
    took: int = 0
    slowest: int = 0
    point: str = ""
    trace_id: bytes = b""


@dataclass(slots=True)
class _Tally:
    """What is counted while the stories are read."""

    span: TimeRange
    attempts: Counter[str] = field(default_factory=Counter)
    before: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    slices: list[Counter[str]] = field(init=False)
    slice_slowest: list[int] = field(init=False)
    reasons: dict[tuple[str, str], _Reason] = field(default_factory=dict)
    plugins: dict[str, _Plugin] = field(default_factory=dict)
    bound: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    refused_all: int = 0
    """Attempts in which every node was refused."""
    refused_some: int = 0
    """Other attempts that do not name all nodes that they refused."""
    named_in_all: Counter[str] = field(default_factory=Counter)
    named_in_some: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    changes: dict[tuple[str, str], list[ChangedConfiguration]] = field(default_factory=dict)
    slowest: list[IncidentAttempt] = field(default_factory=list)
    failures: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """By reason: Pod and error, of each."""
    pods: list[ConcernedPod] = field(default_factory=list)
    tried: int = 0
    pods_gone: int = 0
    briefly: int = 0
    earliest: int = 0

    def __post_init__(self) -> None:
        count = max(1, min(_SLICES, self.span.length // _SECOND))
        self.slices = [Counter() for _ in range(count)]
        self.slice_slowest = [0] * count

    def add(self, pod: PodStory, past: Sequence[AttemptStory] = ()) -> None:
        """Take in a Pod's story, with the attempts that are no longer held in it."""
        attempts = sorted((*past, *pod.attempts), key=_begun) if past else pod.attempts
        within = self._count(pod.key, attempts)
        failed_there = self._on_node(pod)
        for attempt in within:
            self._slowest(pod, attempt)
        self._changes(attempts)
        failed = [attempt for attempt in within if attempt.result not in ("Success", "")]
        slow = [attempt for attempt in within if (attempt.duration or 0) >= _SLOW]
        if failed or slow or failed_there:
            self.pods.append(_concerned(pod, within, failed, failed_there))
        self.briefly += sum(self.span.around(_ended(attempt)) and not attempt.phases for attempt in past)

    def add_gone(self, key: str, past: Sequence[AttemptStory]) -> None:
        """Take in the attempts of a Pod that is no longer held."""
        attempts = sorted(past, key=_begun)
        within = self._count(key, attempts)
        self._changes(attempts)
        self.pods_gone += bool(within)
        self.briefly += sum(not attempt.phases for attempt in within)

    def _count(self, key: str, attempts: Sequence[AttemptStory]) -> list[AttemptStory]:
        """Count a Pod's attempts; return those in the range."""
        earlier = self.span.before()
        within: list[AttemptStory] = []
        for attempt in attempts:
            at = _ended(attempt)
            self.earliest = min(self.earliest or at, attempt.start_unix_nano or at)
            if self.span.around(at):
                within.append(attempt)
                self._attempt(key, attempt)
            elif earlier.around(at):
                self.before[self._result(attempt, self.before)] += 1
        self.tried += bool(within)
        return within

    def _attempt(self, key: str, attempt: AttemptStory) -> None:
        result, at, took = self._result(attempt, self.attempts), _ended(attempt), attempt.duration or 0
        self.attempts[result] += 1
        self.decisions[attempt.decision] += 1
        part = min(len(self.slices) - 1, (at - self.span.start) * len(self.slices) // self.span.length)
        self.slices[part][result] += 1
        self.slice_slowest[part] = max(self.slice_slowest[part], took)
        if attempt.result == "Success":
            self.bound[attempt.selected_node] += 1
        for plugin, reason in dict.fromkeys(reasons_of(attempt)):
            self._reason(key, plugin, reason, at)
        self._plugins(key, attempt)

    def _slowest(self, pod: PodStory, attempt: AttemptStory) -> None:
        took = attempt.duration or 0
        if took and (len(self.slowest) < _MOST_SLOWEST or took > (self.slowest[-1].attempt.duration or 0)):
            one = IncidentAttempt(pod.key, pod.cluster, pod.several_clusters, pod.namespace, pod.name, attempt)
            self.slowest = sorted([*self.slowest, one], key=lambda each: -(each.attempt.duration or 0))[:_MOST_SLOWEST]

    @staticmethod
    def _result(attempt: AttemptStory, known: Counter[str]) -> str:
        result = attempt.result or "no result"
        return result if result in known or len(known) < _MOST_RESULTS else "other"

    def _reason(self, key: str, plugin: str, reason: str, at: int) -> None:
        if (plugin, reason) not in self.reasons and len(self.reasons) >= _MOST_KINDS:
            return
        known = self.reasons.setdefault((plugin, reason), _Reason(first=at))
        known.attempts += 1
        known.pods.add(key)
        known.first, known.last = min(known.first, at), max(known.last, at)

    def _plugins(self, key: str, attempt: AttemptStory) -> None:
        said_no = plugins_that_refused(attempt)
        times = {phase.plugin: (phase.plugin_took, phase.name) for phase in reversed(attempt.phases) if phase.plugin}
        for plugin in {*said_no, *times}:
            if plugin not in self.plugins and len(self.plugins) >= _MOST_KINDS:
                continue
            known = self.plugins.setdefault(plugin, _Plugin())
            took, point = times.get(plugin, (0, ""))
            known.took += took
            if took > known.slowest:
                known.slowest, known.point, known.trace_id = took, point, attempt.trace_id
            if plugin in said_no:
                known.refused += 1
                known.pods.add(key)
        every = refused_by_all(attempt) is not None
        some = not every and names_some(attempt)
        self.refused_all += every
        self.refused_some += some
        for name in {name for no in refusals_of(attempt) for name in no.names}:
            if name in self.refused or len(self.refused) < _MOST_KINDS:
                self.refused[name] += 1
                self.named_in_all[name] += every
                self.named_in_some[name] += some

    def _on_node(self, pod: PodStory) -> str:
        """Count what failed on the Pod's node; return the last of it in words."""
        steps = pod.on_node.of("failed") if pod.on_node else []
        last = ""
        for step in steps:
            if self.span.around(step.start_unix_nano):
                last = step.reason or "the sync failed"
                self.broken[pod.node] += 1
                if last in self.failures or len(self.failures) < _MOST_KINDS:
                    self.failures.setdefault(last, []).append((pod.key, step.error))
        return last

    def _changes(self, attempts: Sequence[AttemptStory]) -> None:
        for change in configuration_changes(attempts):
            at = change.after.start_unix_nano
            if not self.span.around(at) or len(self.changes) >= _MOST_KINDS:
                continue
            pair = change.before.generation, change.after.generation
            told = ChangedConfiguration(at, *pair, 1, change.after.change[:16])
            self.changes.setdefault(pair, []).append(told)


def tell_incident(pods: Sequence[PodStory], span: TimeRange, past: PastAttempts = _NONE_PAST) -> Incident:
    """Return what happened in a range of time, as far as attempts tell: those of these Pods, and those past."""
    tally, by_pod = _Tally(span), past.by_pod(pods)
    for pod in pods:
        tally.add(pod, by_pod.pop(pod.key, ()))
    for key, attempts in by_pod.items():
        tally.add_gone(key, attempts)
    concerned = sorted(tally.pods, key=lambda one: (POD_STATES[one.state].settled, -one.failed, one.key))
    plugins = list(_plugin_shares(tally.plugins))
    nodes = list(_node_shares(tally))
    return Incident(
        start_unix_nano=span.start,
        end_unix_nano=span.end,
        attempts=dict(tally.attempts.most_common()),
        before=dict(tally.before.most_common()),
        tried=tally.tried,
        decisions=dict(tally.decisions.most_common()),
        slices=_slices(tally),
        reasons=_reasons(tally.reasons),
        reasons_in_all=len(tally.reasons),
        plugins=tuple(plugins[:MOST_ROWS]),
        plugins_in_all=len(plugins),
        nodes=tuple(nodes[:MOST_ROWS]),
        nodes_in_all=len(nodes),
        pods=tuple(concerned[:MOST_ROWS]),
        pods_in_all=len(concerned),
        changes=_changes(tally.changes),
        beside=latest_change(pods, span.start, span.end, past),
        slowest=tuple(tally.slowest),
        failures=_failures(tally.failures),
        at_least=not past.all_since(span.start),
        before_at_least=not past.all_since(span.before().start),
        gone_until_unix_nano=past.gone_until,
        earliest_unix_nano=tally.earliest,
        pods_gone=tally.pods_gone,
        briefly=tally.briefly,
    )


def reasons_of(attempt: AttemptStory) -> Iterator[tuple[str, str]]:
    """Yield why an attempt failed, as plugin ("" where none is named) and reason; nothing for one that did not."""
    if attempt.result in ("Success", ""):
        return
    if attempt.bind_error:
        refusal = read_bind_refusal(attempt.bind_error)
        yield refusal.plugin, refusal.why
    elif attempt.why.rejections and not (attempt.result == "Error" and attempt.why.message_only):
        for no in attempt.why.rejections:
            yield no.plugin, no.reason
    else:
        yield "", attempt.message or "no reason told"


def _begun(attempt: AttemptStory) -> int:
    return attempt.start_unix_nano


def _ended(attempt: AttemptStory) -> int:
    return max(attempt.start_unix_nano, attempt.end_unix_nano)


def _concerned(
    pod: PodStory, within: Sequence[AttemptStory], failed: Sequence[AttemptStory], failed_there: str
) -> ConcernedPod:
    told = [f"{plugin}: {reason}" if plugin else reason for plugin, reason in reasons_of(failed[-1])] if failed else []
    return ConcernedPod(
        key=pod.key,
        cluster=pod.cluster,
        several_clusters=pod.several_clusters,
        namespace=pod.namespace,
        name=pod.name,
        state=pod.state,
        slow=pod.slow,
        attempts=len(within),
        failed=len(failed),
        slowest=max((attempt.duration or 0 for attempt in within), default=0) or None,
        why="; ".join(dict.fromkeys(told)) or failed_there or _slowness(within),
    )


def _slowness(within: Sequence[AttemptStory]) -> str:
    longest = max(within, key=lambda attempt: attempt.duration or 0)
    part = slow_part(longest)
    if part is None:
        return f"an attempt took {duration(longest.duration)}"
    return f"{part.what} took {duration(part.took)} of {duration(longest.duration)}"


def _slices(tally: _Tally) -> tuple[IncidentSlice, ...]:
    start, length = tally.span.start, tally.span.length
    return tuple(
        IncidentSlice(start + length * at // len(tally.slices), dict(counts.most_common()), tally.slice_slowest[at])
        for at, counts in enumerate(tally.slices)
    )


def _reasons(reasons: Mapping[tuple[str, str], _Reason]) -> tuple[IncidentRefusal, ...]:
    ordered = sorted(reasons.items(), key=lambda item: (-item[1].attempts, item[0]))[:MOST_ROWS]
    return tuple(
        IncidentRefusal(*names, one.attempts, len(one.pods), one.first, one.last, min(one.pods))
        for names, one in ordered
    )


def _plugin_shares(plugins: Mapping[str, _Plugin]) -> Iterator[IncidentPlugin]:
    for name, one in sorted(plugins.items(), key=lambda item: (-item[1].refused, -item[1].took, item[0])):
        yield IncidentPlugin(name, one.refused, len(one.pods), one.took, one.slowest, one.point, one.trace_id)


def _node_shares(tally: _Tally) -> Iterator[NodeShare]:
    names = {*tally.bound, *tally.refused, *tally.broken} - {""}
    shares = [
        NodeShare(
            name,
            tally.bound[name],
            tally.refused[name] + tally.refused_all - tally.named_in_all[name],
            tally.broken[name],
            at_least=tally.refused_some > tally.named_in_some[name],
        )
        for name in names
    ]
    yield from sorted(shares, key=lambda one: (-one.failures, -one.refused, -one.bound, one.node))


def _changes(changes: Mapping[tuple[str, str], Sequence[ChangedConfiguration]]) -> tuple[ChangedConfiguration, ...]:
    first = [
        min(alike)._replace(pods=len(alike), trace_id=next((each.trace_id for each in alike if each.trace_id), b""))
        for alike in changes.values()
    ]
    return tuple(sorted(first))[:MOST_ROWS]


def _failures(failures: Mapping[str, Sequence[tuple[str, str]]]) -> tuple[NodeFailure, ...]:
    told = [
        NodeFailure(reason, len(alike), len({key for key, _ in alike}), *alike[-1])
        for reason, alike in failures.items()
    ]
    return tuple(sorted(told, key=lambda one: (-one.times, one.reason)))[:MOST_ROWS]
