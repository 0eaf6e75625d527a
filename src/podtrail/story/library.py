"""All that is known in one place: Pods, traces, decisions. Fed by a running pipeline or a recording, asked for answers.

The page, its API and `podtrail why` all ask here, so that they can't disagree.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from podtrail.otlp import Attempt, Batch, Decision, Group, Verdict
from podtrail.otlp.decision_words import fits_decision
from podtrail.story.attempt import AttemptStory
from podtrail.story.attempt_comparison import AttemptComparison, compare_attempts
from podtrail.story.cases import OtherPods, PodContext
from podtrail.story.configuration_change import (
    Changer,
    change_line,
    change_that_made,
    configuration_changes,
    read_changer,
)
from podtrail.story.decided_links import links_to
from podtrail.story.decisions import DecidedPod, DecisionEntry, DecisionRing, votes_of
from podtrail.story.explain import explain_attempt, explain_pod
from podtrail.story.explain_trace import TraceFacts, explain_trace
from podtrail.story.full_attempts import DecidedAttempt, FullAttempts
from podtrail.story.held_attempts import attempt_numbered
from podtrail.story.lifetime import LifeMoment, lifetime
from podtrail.story.lines import Explanation, Line
from podtrail.story.link import NOT_RECEIVED, BackLink, SpanFate, resolved
from podtrail.story.linked_calls import LinkedCall, read_call
from podtrail.story.own_time import plugin_times
from podtrail.story.pace import plugin_pace
from podtrail.story.pod import PodStory, begun, slow_attempt
from podtrail.story.pod_facts import pod_title
from podtrail.story.pod_requests import PodRequest
from podtrail.story.policies import PolicyWindow, SamplerPolicy
from podtrail.story.span_place import SpanPlace, tell_place
from podtrail.story.store import TraceStore
from podtrail.story.stories import Stories
from podtrail.story.tree import TraceStory, tell_trace
from podtrail.story.way import PodWay, tell_way

_MIB = 1 << 20
_CALLS = frozenset({"creation", "binding", "scheduling"})
_MADE_AND_GONE = frozenset({"creation", "deletion", "original"})
_MOST_CALLS = 3
_SHARE_OF_STORIES = 2
"""Half of the memory for Pods holds their attempts, the rest their spans."""


class DecisionStory(NamedTuple):
    """One decision as it is listed."""

    seq: int
    """Its place among all decisions, from 1."""
    trace_id: bytes
    pipeline: str
    decision: Decision
    policy: str
    reason: str
    decided_at_unix_nano: int
    arrived_unix_nano: int
    spans: int
    pod_key: str
    """Of the Pod whose attempt it was; "" for another trace."""
    namespace: str
    name: str
    cluster: str
    several_clusters: bool
    """Pods of several clusters are known, so that a name alone may be that of several."""
    attempt: int | None
    result: str
    title: str
    """The name of the trace's root, where it is no attempt; "" where it is, or is not known."""
    votes: Mapping[str, Decision]
    shadow_votes: Mapping[str, Decision]
    """Of policies that are only tried."""
    dry_run: bool
    """Its spans pass all the same."""
    explained: bool
    """The votes can still be explained."""


class Library:
    """Pods with their attempts, traces with their links, decisions with their votes; each bounded in bytes."""

    def __init__(self, *, max_mib: int = 64, max_decisions_mib: int = 16, max_pods: int = 20_000) -> None:
        """Hold at most about so many MiB of Pods and traces, and of decisions, and so many Pods."""
        share = max_mib * _MIB // _SHARE_OF_STORIES
        self.stories = Stories(max_bytes=share, max_pods=max_pods)
        self.store = TraceStore(max_mib * _MIB - share)
        self.decisions = DecisionRing(max_decisions_mib * _MIB)
        self.window = PolicyWindow()
        self._full = FullAttempts()

    def memory_size(self) -> int:
        """Return about how many bytes are held."""
        return self.store.size + self.stories.size + self.decisions.size

    def shrink(self) -> None:
        """Forget the older half of traces, Pods and decisions."""
        self.store.shrink()
        self.stories.shrink()
        self.decisions.shrink()

    def decide(self, pipeline: str, batch: Batch) -> None:
        """Take note of the verdicts of a batch; not of its spans."""
        if batch.verdicts:
            self.stories.observe(Batch((), batch.arrived, batch.verdicts))
        for verdict in batch.verdicts:
            self._file(pipeline, verdict)

    def read(self, verdict: Verdict, attempt: Attempt | None, cluster: str = "") -> None:
        """Take note of a decision that was written down, with the attempt it was about and its cluster."""
        self.stories.observe(Batch((), verdict.arrived, [verdict]))
        if attempt is not None:
            self.stories.note_attempt(attempt, cluster)
        self._file("", verdict)

    def _file(self, pipeline: str, verdict: Verdict) -> None:
        facts = self.stories.owner(verdict.trace_id)
        owner = DecidedPod(facts.key, facts.namespace, facts.name, facts.cluster) if facts else None
        self.decisions.note(pipeline, verdict, owner)
        self.window.note(pipeline, verdict)

    def keep(self, groups: Sequence[Group], arrived: int) -> None:
        """Take in spans that were kept."""
        self.store.put(groups)
        self.stories.observe(Batch(groups, arrived))

    def find(self, name: str, namespace: str | None = None, cluster: str | None = None) -> list[PodStory]:
        """Return the Pod of a uid, or all of a name (in a namespace, in a cluster), the latest at the end."""
        by_key = self.pod(name) if namespace is None else None
        if by_key is not None:
            return [by_key] if cluster in (None, by_key.cluster) else []
        pods = sorted(self.stories.named(name, namespace, cluster), key=begun)
        return [*pods[:-1], *map(self._fuller, pods[-1:])]

    def pod(self, key: str) -> PodStory | None:
        """Return a Pod's story by its key; attempts that were not kept in full while their decision is."""
        pod = self.stories.pod(key)
        return self._fuller(pod) if pod else None

    def meant(self, asked: str) -> PodStory | None:
        """Return the Pod of a key, or the latest of NAMESPACE/NAME."""
        pod = self.pod(asked)
        namespace, slash, name = asked.partition("/")
        if pod is None and slash:
            pod = next(reversed(self.find(name, namespace)), None)
        return pod

    def why_pod(self, pod: PodStory, now: int, *, live: bool, attempt: int | None = None) -> Explanation | None:
        """Return a Pod's story in words, or that of one attempt; None for an attempt that is not held."""
        told = slow_attempt(pod) if attempt is None else attempt_numbered(pod, attempt)
        linked = pod.last if attempt is None else told
        created, deleted = self.requests_of(pod)
        usual = self.stories.pace.usual()
        preemptor = self.stories.preemptor_of(pod, deleted)
        calls = self._calls(linked)
        around = PodContext(now, live, usual, calls=calls, created=created, deleted=deleted, preemptor=preemptor)
        if not pod.attempts and pod.on_node is None and pod.state == "waiting":
            around = replace(around, others=self._scheduled_since(pod))
        around = replace(around, changer=self._changer(pod, told if attempt is not None else None))
        if told and told.phases and (attempt is not None or pod.slow):
            phase = told.phases[0]
            pace = plugin_pace(self.latest_traces(), phase.name, phase.plugin, phase.plugin_took)
            around = replace(around, plugin=pace)
        return explain_pod(pod, around) if attempt is None else explain_attempt(pod, attempt, around)

    def requests_of(self, pod: PodStory) -> tuple[PodRequest | None, PodRequest | None]:
        """Return who created a Pod and had it deleted, where there is no doubt that it was this one."""
        return self.stories.requests_of(pod, self._linked_with)

    def life_of(self, pod: PodStory) -> tuple[LifeMoment, ...]:
        """Return the moments of a Pod's life in order."""
        created, deleted = self.requests_of(pod)
        return tuple(lifetime(pod, created, deleted, self.stories.preemptor_of(pod, deleted)))

    def way_of(self, pod: PodStory, now: int) -> PodWay | None:
        """Return a Pod's whole way until `now`; None where nothing of it has a time."""
        return tell_way(pod, *self.requests_of(pod), now)

    def compare(self, one: AttemptStory, other: AttemptStory) -> AttemptComparison:
        """Return two attempts side by side, with the time by plugin where their spans are here."""
        mine, theirs = (self.spans_of(attempt.trace_id) for attempt in (one, other))
        return compare_attempts(
            one, other, (plugin_times(mine) if mine else None, plugin_times(theirs) if theirs else None)
        )

    def changes_between(self, pod: PodStory, one: AttemptStory, other: AttemptStory) -> tuple[Line, ...]:
        """Return how the scheduler's configuration changed between two attempts of a Pod, in words."""
        first, last = sorted((one.number or 0, other.number or 0))
        between = [each for each in pod.attempts if first <= (each.number or 0) <= last]
        changes = configuration_changes(between)
        return tuple(change_line(change, self._changer(pod, change.after)) for change in changes)

    def spans_of(self, trace_id: bytes) -> Sequence[Group]:
        """Return the spans of a trace: those kept, else those held for its decision; none of an unknown one."""
        return self.store.get(trace_id) or self._decided_on(trace_id)

    def why_trace(self, trace_id: bytes) -> Explanation | None:
        """Return what became of a trace in words; None when nothing is known of it."""
        facts = self.trace_facts(trace_id)
        return explain_trace(facts) if facts else None

    def trace_facts(self, trace_id: bytes, decided: Sequence[BackLink] | None = None) -> TraceFacts | None:
        """Return what is known of a trace; None when that is nothing.

        Args:
            trace_id: of the trace.
            decided: what `links_to` found in the decisions that may have their spans, where that was looked for before.
        """
        decisions = self.decisions.find(trace_id)
        fate = self.fate(trace_id)
        attempt = self.stories.attempt(trace_id)
        if not decisions and not fate.held and attempt is None:
            return None
        entry = decisions[0] if decisions else None
        # A trace that was not kept has its links as well, as long as its spans are held for its decision.
        trace = tell_trace(self.spans_of(trace_id), self.fate, self.arriving(trace_id, decided))
        return TraceFacts(
            trace_id,
            fate,
            decisions,
            votes_of(entry) if entry else (),
            explained=entry is not None and entry.verdict is not None,
            attempt=attempt,
            title=trace.title if trace else entry.root() if entry else "",
            links=trace.links if trace else None,
        )

    def arriving(self, trace_id: bytes, decided: Sequence[BackLink] | None = None) -> Sequence[BackLink]:
        """Return the links that point at a trace, those of traces that were not kept among them.

        Args:
            trace_id: of the trace.
            decided: what `links_to` found in the decisions that may have their spans, where that was looked for
                before; here it takes some ms.
        """
        found = links_to(trace_id, self.decisions.whole()) if decided is None else decided
        return [*self.store.arriving(trace_id), *(link for link in found if not self.store.get(link.trace_id))]

    def trace(self, trace_id: bytes, span_id: bytes = b"") -> TraceStory | None:
        """Return a trace as far as its spans were kept; None without a span."""
        return self._tell(self.store.get(trace_id), trace_id, span_id)

    def resolved(self, trace: TraceStory) -> TraceStory:
        """Return a trace with what became of its links: one that `tell_trace` has told with `unresolved`."""
        known = [self.fate(link.trace_id, link.span_id) for link in trace.links]
        links = [replace(link, fate=resolved(link.fate, fate)) for link, fate in zip(trace.links, known, strict=True)]
        return replace(trace, links=tuple(links))

    def span(self, trace_id: bytes, span_id: bytes) -> SpanPlace | None:
        """Return one span that was kept, with its links; None for one that is not here."""
        return tell_place(self.store.get(trace_id), span_id, self.store.arriving(trace_id), self.fate)

    def fate(self, trace_id: bytes, span_id: bytes = b"") -> SpanFate:
        """Return what became of a trace, and of one span in it."""
        known = self.stories.attempt(trace_id)
        label = f"attempt {known[1].number} of {pod_title(known[0])}" if known else ""
        if self.store.get(trace_id):
            span = self.store.find(trace_id, span_id) if span_id else None
            if span is None and span_id:
                return SpanFate(held=True, label=label, words="this span was not received, others of its trace were")
            return SpanFate(held=True, label=label or (span.name if span else ""), words="")
        decided = bool(self.decisions.find(trace_id))
        return SpanFate(False, label or self._title(trace_id), self.became(trace_id), decided)

    def became(self, trace_id: bytes) -> str:
        """Return why the spans of a trace are not held, in words."""
        decided = self.stories.decided(trace_id) or next(iter(self.decisions.find(trace_id)), None)
        if self.store.was_evicted(trace_id):
            return "older than what is held"
        if decided is None:
            return NOT_RECEIVED
        if decided.decision == "sampled":
            return "kept, but not received here"
        if decided.decision == "dropped":
            return f"not kept (dropped by {decided.policy})"
        return f"not kept ({decided.reason})" if decided.reason else "not kept"

    def decision(self, attempt: AttemptStory) -> str:
        """Return what was decided about an attempt, and what became of its spans, in words."""
        held = bool(self.store.get(attempt.trace_id))
        if attempt.decision == "sampled":
            kept = f"kept: {attempt.policy}" if attempt.policy else "kept"
            return kept if held else f"{kept}; {self.became(attempt.trace_id)}"
        return "kept" if held else self.became(attempt.trace_id)

    def decisions_about(self, trace_id: bytes) -> tuple[DecisionStory, ...]:
        """Return what was decided about a trace, the latest decision first."""
        return tuple(map(self.decision_story, self.decisions.find(trace_id)))

    def decision_story(self, entry: DecisionEntry) -> DecisionStory:
        """Return a decision with the Pod whose attempt it was about."""
        key, namespace, name, cluster = entry.owner or ("", "", "", "")
        known = self.stories.attempt(entry.trace_id)
        return DecisionStory(
            seq=entry.seq,
            trace_id=entry.trace_id,
            pipeline=entry.pipeline,
            decision=entry.decision,
            policy=entry.policy,
            reason=entry.reason,
            decided_at_unix_nano=entry.decided_at,
            arrived_unix_nano=entry.arrived,
            spans=entry.spans,
            pod_key=key,
            namespace=namespace,
            name=name,
            cluster=cluster,
            several_clusters=self.stories.several_clusters,
            attempt=known[1].number if known else None,
            result=known[1].result if known else "",
            title="" if entry.owner else self._title(entry.trace_id),
            votes=dict(entry.votes),
            shadow_votes=dict(entry.shadows),
            dry_run=entry.dry_run,
            explained=entry.verdict is not None,
        )

    def policy_types(self) -> dict[SamplerPolicy, str]:
        """Return the types of the policies, as the latest decisions that can be explained tell."""
        types: dict[SamplerPolicy, str] = {}
        seen: set[str] = set()
        for entry in self.decisions.latest():
            if entry.pipeline not in seen and entry.verdict is not None and (entry.votes or entry.shadows):
                seen.add(entry.pipeline)
                votes = votes_of(entry)
                types |= {SamplerPolicy(entry.pipeline, vote.policy, vote.shadow): vote.type for vote in votes}
        return types

    def unread(self, asked: str, cluster: str = "") -> list[DecidedAttempt]:
        """Return what `note_read` wants to know, so that `pod`, `meant` and `find` need not read it."""
        namespace, slash, name = asked.partition("/")
        named = self.stories.named(name if slash else asked, namespace if slash else None, cluster or None)
        pod = self.stories.pod(asked) or max(named, key=begun, default=None)
        return self._full.unread(self._decided(pod)) if pod else []

    def note_read(self, read: Iterable[tuple[DecidedAttempt, AttemptStory]]) -> None:
        """Remember attempts in full until another Pod is asked for."""
        self._full.note(read)

    def _fuller(self, pod: PodStory) -> PodStory:
        full = self._full.all(self._decided(pod))
        attempts = tuple(full.get((one.trace_id, one.span_id), one) for one in pod.attempts)
        return pod if attempts == pod.attempts else self.stories.retold(pod, attempts)

    def _decided(self, pod: PodStory) -> list[DecidedAttempt]:
        """Return the attempts that were not kept and of which the decision still has the spans."""
        found = ((one, () if one.kept else self._decided_on(one.trace_id)) for one in pod.attempts)
        return [DecidedAttempt(attempt, groups) for attempt, groups in found if groups]

    def _tell(self, groups: Sequence[Group], trace_id: bytes, span_id: bytes = b"") -> TraceStory | None:
        return tell_trace(groups, self.fate, self.store.arriving(trace_id), span_id=span_id)

    def _calls(self, attempt: AttemptStory | None) -> tuple[LinkedCall, ...]:
        """Return the spans of other components that are linked with an attempt, as far as they are held."""
        if attempt is None:
            return ()
        trace = self._tell(self.spans_of(attempt.trace_id), attempt.trace_id)
        linked = [link for link in trace.links if link.type in _CALLS] if trace else []
        spans = [(self.store.find(link.trace_id, link.span_id), link.type) for link in linked[:_MOST_CALLS]]
        return tuple(read_call(span, kind) for span, kind in spans if span)

    def _scheduled_since(self, pod: PodStory) -> OtherPods:
        """Return what the scheduler did for other Pods since this one began to wait."""
        since = pod.since_unix_nano or 0
        bound = [
            (one.end_unix_nano, f"{other.namespace}/{other.name}")
            for other in self.stories.each()
            if (one := other.last) and one.result == "Success" and one.end_unix_nano >= since
        ]
        at, last = max(bound, default=(0, ""))
        profiles = frozenset(one.last.profile for one in self.stories.each() if one.last) - {""}
        return OtherPods(len(bound), last, at, profiles)

    def _linked_with(self, pod: PodStory) -> set[bytes]:
        """Return the traces of what created and deleted a Pod, by the links of its attempts and of its life."""
        own = {pod.life_trace_id, *(attempt.trace_id for attempt in (*pod.attempts[:1], *pod.attempts[-1:]))}
        told = [trace for trace in map(self.trace, own) if trace]
        return own | {link.trace_id for trace in told for link in trace.links if link.type in _MADE_AND_GONE}

    def _changer(self, pod: PodStory, attempt: AttemptStory | None) -> Changer | None:
        """Return who made the configuration of an attempt, or of the one behind the last change; None for nobody."""
        made = change_that_made(pod.attempts, attempt)
        ids = made[:16], made[16:]
        return read_changer(made[:16], self.store.find(*ids), self.fate(*ids)) if made else None

    def _title(self, trace_id: bytes) -> str:
        entry = next(iter(self.decisions.find(trace_id)), None)
        if entry is None:
            return ""
        return entry.root()

    def _decided_on(self, trace_id: bytes) -> Sequence[Group]:
        entry = next(iter(self.decisions.find(trace_id)), None)
        return entry.verdict.groups if entry and entry.verdict else ()

    def latest_traces(self) -> Iterator[Sequence[Group]]:
        """Yield the latest traces, those that were not kept among them where decisions are held with their spans."""
        found = False
        for entry in self.decisions.latest():
            if entry.verdict is None or not entry.verdict.groups:
                continue
            found = True
            yield entry.verdict.groups
        if not found:
            yield from self.store.latest()


def selector(
    policy: str = "", decision: str = "", q: str = "", *, several_clusters: bool = False
) -> Callable[[DecisionEntry], bool] | None:
    """Return a test for decisions by policy (one that said yes), decision, and part of a name or uid or a trace id.

    The decision is `sampled`, or `not_sampled` for all that is not kept.

    Names are those of Pods and of roots, of several clusters these, too; capitals don't matter. None when nothing is
    asked for.
    """
    if not (policy or decision or q):
        return None
    q = q.lower()

    def wanted(entry: DecisionEntry) -> bool:
        if policy and entry.policy != policy and (policy, "sampled") not in (*entry.votes, *entry.shadows):
            return False
        if not fits_decision(entry.decision, decision):
            return False
        if not q:
            return True
        owner = entry.owner
        pod = f"{owner.namespace}/{owner.name} {owner.key} " if owner else ""
        pod += f"{owner.cluster} " if owner and several_clusters else ""
        return q in (pod + entry.root()).lower() or entry.trace_id.hex().startswith(q)

    return wanted
