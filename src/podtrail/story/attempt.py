"""One attempt to schedule a Pod, put together from its verdict and, where it was kept, its spans."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from podtrail.otlp import (
    POST_FILTER,
    ROOT_NAME,
    Attempt,
    Decision,
    Group,
    Rejection,
    SpanView,
    Value,
    Why,
    read_attempt,
    read_message,
    read_refusals,
    split,
)
from podtrail.story.link import CONFIGURATION, is_back_link, link_type
from podtrail.story.pace import plugin_time
from podtrail.story.phases import Phase, PhaseSums, PhaseTimes
from podtrail.story.score_table import ScoreTable, read_scores
from podtrail.story.values import number, text

_ROOT = ROOT_NAME.encode()
_NO_BEGINNING = re.compile(r"start: .*nothing tells")
_BIND_FAILED = re.compile(r"(?i)\bbind(ing)?\b")
_MARKS = (b"plugin rejected", b"plugin: ", b"Cycle", b"scheduler.", _ROOT, b"preempt")
_CONFIGURATION = CONFIGURATION.encode()
_MAX_REJECTIONS = 64
_MAX_TEXT = 4096
_MAX_NAME = 256
_MAX_NAMES = 50
_LONGEST_GENERATION = 64
_MAX_VICTIMS = 10
_NO_WHY = Why()
_NO_PHASES = PhaseSums()


class SlowestPlugin(NamedTuple):
    """The plugin call that took longest."""

    point: str
    plugin: str
    duration: int
    """Nanoseconds."""


class PreemptedPods(NamedTuple):
    """Pods to be evicted for the one that an attempt was for."""

    pods: int
    names: tuple[str, ...]
    """As many as the source gives."""


@dataclass(slots=True)
class SpanFindings:
    """What the spans of one attempt tell beside its root. Spans may come in any order and in several batches."""

    rejections: list[tuple[int, Rejection]] = field(default_factory=list)
    """Each with its span's start: the order in which plugins were asked."""
    nodes: int | None = None
    evaluated: int | None = None
    feasible: int | None = None
    selected_node: str = ""
    nominated_node: str = ""
    cycle: int | None = None
    binding: int | None = None
    bind_error: str = ""
    slowest: SlowestPlugin | None = None
    victims: PreemptedPods | None = None
    times: PhaseTimes = field(default_factory=PhaseTimes)
    scores: ScoreTable | None = None

    @property
    def size(self) -> int:
        """About how many bytes these take in memory."""
        return (
            800
            + len(self.bind_error)
            + self.times.size
            + (self.scores.size if self.scores else 0)
            + _refusals_size([rejection for _, rejection in self.rejections])
        )

    def read(self, spans: bytes) -> Iterable[SpanView]:
        """Take in framed spans of the attempt; yield its root or roots."""
        for raw in split(spans):
            if any(mark in raw for mark in _MARKS):
                span = SpanView(raw)
                self._read(span)
                if span.name == ROOT_NAME:
                    yield span

    def _read(self, span: SpanView) -> None:
        attributes = span.attributes
        self.selected_node = text(attributes.get("scheduler.selected_node")) or self.selected_node
        self.nominated_node = text(attributes.get("scheduler.nominated_node")) or self.nominated_node
        for event in span.events:
            self.nominated_node = text(event.attributes.get("scheduler.nominated_node")) or self.nominated_node
            self.victims = _victims(event.attributes) or self.victims
        self.times.phase(span)
        match span.name:
            case "filter":
                self.nodes = number(attributes.get("scheduler.nodes.total"))
                self.evaluated = number(attributes.get("scheduler.nodes.evaluated"))
                self.feasible = number(attributes.get("scheduler.nodes.feasible"))
            case "score":
                self.scores = read_scores(attributes) or self.scores
            case "schedulingCycle":
                self.cycle = span.duration or None  # one that takes no time was rebuilt from a single moment
            case "bindingCycle":
                self.binding = span.duration or None
        if span.status.code == 2 and (span.name in ("bind", "preBind", "bindingCycle") or _binds(attributes)):
            self.bind_error = span.status.message[:_MAX_TEXT] or self.bind_error or "the bind failed"
        if span.name.startswith("plugin: "):
            self._read_plugin(span)

    def _read_plugin(self, span: SpanView) -> None:
        room = _MAX_REJECTIONS - len(self.rejections)
        told = [(span.start, _cut(rejection)) for rejection in read_refusals(span.raw)][:room]
        self.rejections += [one for one in told if one not in self.rejections]
        point = text(span.attributes.get("scheduler.plugin.extension_point"))
        plugin = (text(span.attributes.get("scheduler.plugin.name")) or span.name.removeprefix("plugin: "))[:_MAX_NAME]
        self.times.plugin(span, plugin)
        took = plugin_time(span)
        if not self.slowest or took > self.slowest.duration:
            self.slowest = SlowestPlugin(point, plugin, took)


def _cut(rejection: Rejection) -> Rejection:
    return rejection._replace(reason=rejection.reason[:_MAX_TEXT], names=rejection.names[:_MAX_NAMES])


def _victims(attributes: Mapping[str, Value]) -> PreemptedPods | None:
    count = number(attributes.get("scheduler.victims.count"))
    names = attributes.get("scheduler.victims.names")
    shown = [name[:_MAX_TEXT] for name in names if isinstance(name, str)] if isinstance(names, list) else []
    if count is None and not shown:
        return None
    return PreemptedPods(len(shown) if count is None else count, tuple(shown[:_MAX_VICTIMS]))


def _binds(attributes: Mapping[str, Value]) -> bool:
    return attributes.get("scheduler.plugin.extension_point") in ("bind", "preBind")


@dataclass(frozen=True, slots=True)
class AttemptStory:
    """One attempt as it is shown. Lengths of time are nanoseconds; None where no span tells."""

    trace_id: bytes
    span_id: bytes
    number: int | None
    """Its place among the Pod's attempts, from 1; None until it is known."""
    start_unix_nano: int
    end_unix_nano: int
    result: str
    """`Success`, `Unschedulable`, `Error`; "" where the root does not say."""
    message: str
    profile: str = ""
    queue_wait: int | None = None
    kept: bool = False
    """Its spans left the pipeline, at least in part."""
    decision: str = ""
    """`sampled`, `not_sampled`, `dropped`; "" where no sampler decided."""
    policy: str = ""
    reason: str = ""
    """The decision in words."""
    why: Why = _NO_WHY
    cycle: int | None = None
    binding: int | None = None
    bind_error: str = ""
    selected_node: str = ""
    nominated_node: str = ""
    slowest: SlowestPlugin | None = None
    phases: tuple[Phase, ...] = ()
    """Where the time went, the longest first."""
    phase_sums: PhaseSums = _NO_PHASES
    victims: PreemptedPods | None = None
    scores: ScoreTable | None = None
    """The best nodes; None where nothing was scored or no span tells."""
    generation: str = ""
    """Of the configuration that it was made with; "" where the root does not say."""
    change: bytes = b""
    """Trace and span id of what made that configuration; nothing where the root does not say."""
    begun: bool = True
    """Whether its start is known; otherwise it had begun when the first thing was told of it."""

    @property
    def duration(self) -> int | None:
        """Nanoseconds from start to end, None where the times do not say: nothing takes no time at all."""
        took = self.end_unix_nano - self.start_unix_nano
        return took if self.begun and self.start_unix_nano and took > 0 else None

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        texts = (self.message, self.reason, self.policy, self.bind_error, self.why.preemption, self.selected_node)
        names = self.victims.names if self.victims else ()
        scores = self.scores.size if self.scores else 0
        told = sum(map(len, (*texts, *names))) + _refusals_size(self.why.rejections)
        return 700 + told + 200 * len(self.phases) + scores

    @classmethod
    def of(cls, attempt: Attempt, attributes: Mapping[str, Value]) -> Self:
        """Return what an attempt's root tells, with its attributes; none where only a decision tells of it."""
        wait = attributes.get("scheduler.queue_wait_ms")
        message = attempt.message[:_MAX_TEXT]
        inferred = attributes.get("podtrail.inferred")
        inferences = inferred if isinstance(inferred, list | tuple) else ()
        return cls(
            trace_id=attempt.trace_id,
            span_id=attempt.span_id,
            number=number(attributes.get("podtrail.attempt.number", attributes.get("scheduler.attempts"))),
            start_unix_nano=attempt.start,
            end_unix_nano=attempt.end,
            result=attempt.result,
            message=message,
            profile=attempt.profile,
            queue_wait=int(wait * 1e6) if isinstance(wait, int | float) and 0 <= wait < 1e12 else None,
            why=read_message(message) if attempt.result != "Success" else _NO_WHY,
            bind_error=message if attempt.result == "Error" and _BIND_FAILED.search(message) else "",
            selected_node=text(attributes.get("scheduler.selected_node")),
            nominated_node=text(attributes.get("scheduler.nominated_node")),
            generation=text(attributes.get("scheduler.config.generation"))[:_LONGEST_GENERATION],
            begun=not any(_NO_BEGINNING.match(text(each)) for each in inferences),
        )

    def decided(self, decision: Decision, policy: str, reason: str) -> Self:
        """Return it with a sampler's decision."""
        return replace(self, decision=decision, policy=policy, reason=reason)

    def joined(self, other: "AttemptStory") -> Self:
        """Return it with what another telling of the same attempt knows better."""
        return replace(
            self,
            number=self.number or other.number,
            generation=self.generation or other.generation,
            change=self.change or other.change,
            queue_wait=other.queue_wait if self.queue_wait is None else self.queue_wait,
            kept=self.kept or other.kept,
            decision=self.decision or other.decision,
            policy=self.policy or other.policy,
            reason=self.reason or other.reason,
        )

    def found(self, findings: SpanFindings) -> Self:
        """Return it with what its spans tell; the message's account stays where no span says who said no."""
        why = self.why
        if findings.rejections and self.result != "Success":
            ordered = [rejection for _, rejection in sorted(findings.rejections, key=lambda told: told[0])]
            of_nodes = tuple(rejection for rejection in ordered if rejection.point != POST_FILTER)
            after = "; ".join(rejection.reason for rejection in ordered if rejection.point == POST_FILTER)
            why = why._replace(preemption=why.preemption or after)
            why = why._replace(rejections=of_nodes, message_only=False) if of_nodes else why
        return replace(
            self,
            kept=True,
            why=why._replace(
                nodes=why.nodes if findings.nodes is None else findings.nodes,
                evaluated=findings.evaluated,
                feasible=why.feasible if findings.feasible is None else findings.feasible,
            ),
            cycle=findings.cycle if self.begun else None,
            binding=findings.binding,
            bind_error=findings.bind_error or self.bind_error,
            selected_node=findings.selected_node or self.selected_node,
            nominated_node=findings.nominated_node or self.nominated_node,
            slowest=findings.slowest,
            phases=findings.times.longest(),
            phase_sums=findings.times.sums(),
            victims=findings.victims or self.victims,
            scores=findings.scores,
        )


def read_root(span: SpanView) -> tuple[Attempt, AttemptStory] | None:
    """Return the attempt that a span is the root of, with its story."""
    attempt = read_attempt(span)
    if attempt is None:
        return None
    story = AttemptStory.of(attempt, span.attributes)
    if _CONFIGURATION in span.raw:
        made = [link for link in span.links if link_type(link) == CONFIGURATION and not is_back_link(link)]
        story = replace(story, change=made[0].trace_id + made[0].span_id) if made else story
    return attempt, story


def read_roots(group: Group) -> list[tuple[Attempt, AttemptStory]]:
    """Return the attempts whose roots are in a group, reading no other span."""
    spans = [SpanView(raw) for raw in split(group.spans) if _ROOT in raw] if _ROOT in group.spans else []
    return [root for span in spans if (root := read_root(span))]


def _refusals_size(rejections: Sequence[Rejection]) -> int:
    """Return about how many bytes refusals take in memory."""
    return sum(200 + len(r.reason) + len(r.plugin) + sum(60 + len(name) for name in r.names) for r in rejections)
