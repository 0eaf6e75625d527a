"""The index of Pods and their attempts, fed with what leaves a pipeline. Bounded; it is told the time."""

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from podtrail.component import ObservedPod
from podtrail.lru import Lru, forget_oldest
from podtrail.otlp import Attempt as Root
from podtrail.otlp import Batch, Decision, Group, SpanView, Verdict, cluster_name, split
from podtrail.story.attempt import AttemptStory, SpanFindings, read_root, read_roots
from podtrail.story.configuration_runs import ConfigurationRuns
from podtrail.story.link import is_back_link
from podtrail.story.node_record import NodeRecord
from podtrail.story.node_spans import NodeFinding, NodeSpans
from podtrail.story.on_node import tell_node
from podtrail.story.pace import AttemptPace
from podtrail.story.past_attempts import PastAttemptRing
from podtrail.story.plugin_times import PluginTimes
from podtrail.story.pod import PodStory, begun, tell_pod
from podtrail.story.pod_end import PreemptingAttempt
from podtrail.story.pod_facts import PodFacts, in_cluster_of
from podtrail.story.pod_order import PodOrder
from podtrail.story.pod_requests import PodRequest, PodRequests
from podtrail.story.preemptors import Preemptors
from podtrail.story.refusal_index import RefusalIndex
from podtrail.story.seen_by_watch import seen_by_watch
from podtrail.story.shape import PluginShapes, ShapeAttempt, ShapeOverTime
from podtrail.story.tallies import StoryTallies

_LINK_TYPE = "podtrail.link.type"
_LINK_MARK = _LINK_TYPE.encode()
_MAX_FATES = 20_000
_CLOCKS = 1_000_000_000
"""Nanoseconds by which clocks may differ before a deletion is taken for that of an earlier Pod."""
_POD_SIZE = 750
"""Bytes of one with nothing in it, its places in the indexes among them."""


class TraceDecision(NamedTuple):
    """What a sampler decided about a trace."""

    decision: Decision
    policy: str
    reason: str


@dataclass(slots=True)
class _HeldPod:
    facts: PodFacts
    attempts: dict[tuple[bytes, bytes], AttemptStory] = field(default_factory=dict)
    node: NodeRecord | None = None
    size: int = _POD_SIZE
    told: PodStory | None = None
    """Its story, until something new is known."""


class Stories:
    """Every Pod that was heard of lately. `observe` what leaves the processors, then ask.

    Spans and verdicts may come in one batch or by different ways, in any order, and more than once.
    """

    def __init__(
        self,
        *,
        max_pods: int = 20_000,
        max_bytes: int = 64 << 20,
        max_attempts: int = 100,
        slow_after: int = 1_000_000_000,
    ) -> None:
        """Hold at most this many Pods, bytes (about) and attempts a Pod; an attempt is slow from `slow_after` ns."""
        self.tallies = StoryTallies()
        self.latest = 0
        """End of the latest attempt seen, Unix nanoseconds; 0 before the first: where the source's clock stands."""
        self.pace = AttemptPace()
        """How long attempts took lately."""
        self.shape = ShapeOverTime()
        """All attempts over time, those of forgotten Pods among them."""
        self.plugin_shapes = PluginShapes()
        self.configurations = ConfigurationRuns()
        self.refusals = RefusalIndex()
        self.plugin_times = PluginTimes(slow_after)
        self.past = PastAttemptRing()
        """Attempts that are no longer held, in brief."""
        self.changes = 0
        """Grows with everything that may change a Pod's story."""
        self.several_clusters = False
        """Whether Pods of more than one cluster were heard of: a name alone is no longer enough."""
        self._a_cluster = ""
        self._requests = PodRequests()
        self._preemptors = Preemptors()
        self._node_spans = NodeSpans()
        self._max_pods = max_pods
        self._max_findings = max_bytes // 8
        self._least_past = max_bytes // 16
        self._max_bytes = max_bytes - self._max_findings
        self._max_attempts = max(2, max_attempts)
        self._slow_after = slow_after
        self._pods: OrderedDict[str, _HeldPod] = OrderedDict()
        self._named: dict[str, tuple[str, ...]] = {}
        """Keys of Pods by name, those heard of first in front."""
        self._key_of: dict[bytes, tuple[str, bytes]] = {}
        self._lives: dict[bytes, str] = {}
        """Pods by the trace of their life."""
        self._findings: OrderedDict[bytes, tuple[SpanFindings, int]] = OrderedDict()
        self._fates: OrderedDict[bytes, TraceDecision] = OrderedDict()
        self._let_go: Lru[tuple[bytes, bytes], bool] = Lru(_MAX_FATES)
        """Attempts that are counted already, should more come of them; whether their Pod had too many to hold them."""
        self._ended: Lru[str, ObservedPod] = Lru(_MAX_FATES)
        """Pods of which no attempt is here yet, and that are bound or deleted."""
        self._mirrors: Lru[str, str] = Lru(_MAX_FATES)
        """Keys of static Pods by the uids of their mirrors."""
        self._size = 0
        self._findings_size = 0
        self._order = PodOrder()

    def observe(self, batch: Batch) -> None:
        """Take note of verdicts, attempts, refusals and links in a batch; about 50 us an attempt."""
        traces = _by_trace(batch.groups)
        for verdict in batch.verdicts:
            self._decide(verdict, read=verdict.trace_id not in traces)
        for trace_id, groups in traces.items():
            self._read(trace_id, groups)
        self._forget()

    def note_attempt(self, attempt: Root, cluster: str = "") -> None:
        """Take note of an attempt that no span tells of: a decision about it was written down."""
        self._note(attempt, AttemptStory.of(attempt, {}), cluster)
        self._forget()

    def note_gated(self, uid: str, namespace: str, name: str, gates: Iterable[str], since: int | None = None) -> None:
        """Take note of a Pod that the scheduler has not tried because of these gates; no gates: it may be tried now."""
        pod = self._pod(uid, namespace, name)
        pod.facts = replace(pod.facts, gates=tuple(gates), gated_since=pod.facts.gated_since or since)
        self._forget()

    def note_observed(self, pod: ObservedPod) -> None:
        """Take note of a Pod that waits for a node, as a watch or the scheduler's log shows it, or no longer does."""
        key = self._key(pod.uid, pod.namespace, pod.name, "")
        if (pod.bound or pod.deleted) and key not in self._pods:
            self._ended.put(key, pod)  # its attempts may still be on their way
            return
        self._ended.pop(key, None)
        self._note_observed(self._pod(pod.uid, pod.namespace, pod.name), pod)
        self._forget()

    def _note_observed(self, held: _HeldPod, pod: ObservedPod) -> None:
        before = held.facts
        released = bool(before.gates or before.held_by) and not (pod.gates or pod.held_by or pod.deleted)
        facts = replace(
            held.facts,
            past_gates=before.gates if released else before.past_gates,
            gated_until=pod.at if released else before.gated_until,
            gates=pod.gates or (held.facts.gates if pod.deleted else ()),
            held_by=pod.held_by,
            created=held.facts.created or pod.since or None,
            scheduler=pod.scheduler or held.facts.scheduler,
            bound=pod.bound,
            bound_at=_bound_at(before, pod),
            node=pod.node,
            deleted=pod.deleted or None,
            follows=pod.follows or None,
        )
        if facts.gates and facts.gated_since is None:
            facts = replace(facts, gated_since=facts.created)
        if pod.held_by and not before.held_by:
            facts = replace(facts, gated_since=before.gated_since or pod.at)
        held.facts, held.told = facts, None
        self.latest = max(self.latest, pod.deleted)

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def size(self) -> int:
        """About how many bytes are held."""
        return self._size + self._findings_size + self.past.size

    def pods(self) -> list[PodStory]:
        """Return all Pods, the urgent first, then those that wait longest."""
        return self._order.of(self.each, self.pod)

    def each(self) -> Iterable[PodStory]:
        """Return all Pods, in no order."""
        return map(self._tell, self._pods.values())

    def unordered(self) -> list[PodStory]:
        """Return all Pods in no order, for who counts: a few ms for 20,000 less."""
        return list(self.each())

    def pod(self, key: str) -> PodStory | None:
        """Return one Pod's story by its key: its uid, or its name with its cluster where its spans have none."""
        pod = self._pods.get(key) or self._pods.get(self._mirrors.get(key, ""))
        return self._tell(pod) if pod else None

    def retold(self, pod: PodStory, attempts: Sequence[AttemptStory]) -> PodStory:
        """Return a Pod's story anew, with attempts of which more is known than was noted here."""
        held = self._pods.get(pod.key)
        if held is None:
            return pod
        return tell_pod(held.facts, attempts, self._slow_after, pod.on_node, several_clusters=self.several_clusters)

    def named(self, name: str, namespace: str | None = None, cluster: str | None = None) -> list[PodStory]:
        """Return the Pods of a name, of one namespace or cluster or of all: several where it was created anew."""
        return [
            self._tell(pod)
            for pod in map(self._pods.__getitem__, self._named.get(name, ()))
            if namespace in (None, pod.facts.namespace) and cluster in (None, pod.facts.cluster)
        ]

    def namesakes(self, pod: PodStory) -> list[PodStory]:
        """Return the other Pods that had a Pod's name before or after it, as far as they may be of its cluster."""
        return [
            other
            for other in self.named(pod.name, pod.namespace)
            if other.key != pod.key and (other.cluster == pod.cluster or not (other.cluster and pod.cluster))
        ]

    def requests_of(
        self, pod: PodStory, linked: Callable[[PodStory], Container[bytes]]
    ) -> tuple[PodRequest | None, PodRequest | None]:
        """Return who created a Pod and had it deleted, where there is no doubt that it was this one.

        Args:
            pod: The Pod.
            linked: Returns the traces that the Pod's own are linked with; asked where its name leaves a doubt.
        """
        traces = linked(pod) if self.namesakes(pod) else None
        name = in_cluster_of(pod.cluster, f"{pod.namespace}/{pod.name}")
        return self._requests.of(name, traces, since=begun(pod) - _CLOCKS)

    def preemptor_of(self, pod: PodStory, deleted: PodRequest | None) -> PreemptingAttempt | None:
        """Return the attempt that a Pod was preempted for; None for one that was not, as far as is known."""
        kinds = ("disrupted", "seen deleting", "terminating", "deleted")
        moments = [step.start_unix_nano for kind in kinds for step in (pod.on_node.of(kind) if pod.on_node else ())]
        moments += [deleted.start_unix_nano] if deleted else []
        moments += [pod.deleted_unix_nano] if pod.deleted_unix_nano else []
        found = self._preemptors.of(f"{pod.namespace}/{pod.name}", pod.cluster, min(moments)) if moments else None
        # Else a Pod that had its name before it was preempted.
        return found if found and begun(pod) <= found.end_unix_nano else None

    def attempt(self, trace_id: bytes) -> tuple[PodStory, AttemptStory] | None:
        """Return the attempt that a trace records, with its Pod."""
        key, span_id = self._key_of.get(trace_id, ("", b""))
        pod = self.pod(key)
        found = [one for one in pod.attempts if (one.trace_id, one.span_id) == (trace_id, span_id)] if pod else []
        return (pod, found[0]) if pod and found else None

    def life(self, trace_id: bytes) -> PodStory | None:
        """Return the Pod whose life a trace tells."""
        return self.pod(self._lives.get(trace_id, ""))

    def owner(self, trace_id: bytes) -> PodFacts | None:
        """Return what is known of the Pod whose attempt a trace records; None for another trace."""
        pod = self._pods.get(self._key_of.get(trace_id, ("", b""))[0])
        return pod.facts if pod else None

    def owner_and_result(self, trace_id: bytes) -> tuple[PodFacts | None, str]:
        """Return the Pod whose attempt a trace records, and the attempt's result; nothing for another trace."""
        key, span_id = self._key_of.get(trace_id, ("", b""))
        pod = self._pods.get(key)
        return (pod.facts, pod.attempts[trace_id, span_id].result) if pod else (None, "")

    def decided(self, trace_id: bytes) -> TraceDecision | None:
        """Return what was decided about a trace lately."""
        return self._fates.get(trace_id)

    def _tell(self, pod: _HeldPod) -> PodStory:
        if pod.told is None:
            on_node = tell_node(pod.node) if pod.node and pod.node.on_node else None
            attempts = list(pod.attempts.values())
            pod.told = tell_pod(pod.facts, attempts, self._slow_after, on_node, several_clusters=self.several_clusters)
        return pod.told

    def _decide(self, verdict: Verdict, *, read: bool) -> None:
        if verdict.trace_id not in self._fates:
            self.tallies.decided += 1
            if verdict.decision == "sampled":
                self.tallies.kept[verdict.policy] += 1
            if len(self._fates) >= _MAX_FATES:
                self._fates.popitem(last=False)
        self._fates[verdict.trace_id] = decided = TraceDecision(verdict.decision, verdict.policy, verdict.reason)
        for group in verdict.groups if read else ():
            for root, story in read_roots(group):
                self._note(root, story, cluster_name(group.resource))
        if verdict.trace_id in self._key_of:
            key, span_id = self._key_of[verdict.trace_id]
            self._put(self._pods[key], self._pods[key].attempts[verdict.trace_id, span_id].decided(*decided))

    def _read(self, trace_id: bytes, groups: list[Group]) -> None:
        self._count_links(groups)
        self._requests.read(groups)
        on_node = self._node_spans.read(trace_id, groups)
        if on_node is not None:
            self._note_on_node(on_node)
        findings, before = self._findings.get(trace_id, (SpanFindings(), 0))
        roots = [
            (*root, cluster_name(group.resource))
            for group in groups
            for span in findings.read(group.spans)
            if (root := read_root(span))
        ]
        if findings == SpanFindings() and not roots:
            return
        self._findings[trace_id] = (findings, findings.size)
        self._findings.move_to_end(trace_id)
        self._findings_size += findings.size - before
        self.plugin_times.note(trace_id, findings.times.take_news())
        for at, (attempt, story, cluster) in enumerate(roots, 1):
            self._note(attempt, story, cluster, findings if at == len(roots) else None)
        if trace_id in self._key_of:
            key, span_id = self._key_of[trace_id]
            if not roots or roots[-1][1].span_id != span_id:
                self._put(self._pods[key], self._pods[key].attempts[trace_id, span_id].found(findings))
        else:
            for _, story, _ in roots:
                self.past.found(trace_id, story.span_id, findings)

    def _note_on_node(self, told: NodeFinding) -> None:
        pod = self._pod(*told.pod)
        before = pod.node.size if pod.node else 0
        pod.node = pod.node or NodeRecord()
        pod.node.join(told.record)
        pod.size += pod.node.size - before
        self._size += pod.node.size - before
        pod.facts = seen_by_watch(pod.facts, pod.node)
        if pod.node.mirror_uid:
            self._mirrors.put(pod.node.mirror_uid, pod.facts.key)
        if told.record.life_trace_id:
            self._lives.pop(pod.facts.life_trace_id, None)
            pod.facts = replace(pod.facts, life_trace_id=told.record.life_trace_id)
            self._lives[told.record.life_trace_id] = pod.facts.key
        self.latest = max(self.latest, *(step.end for step in told.record.steps.values()), 0)

    def _count_links(self, groups: list[Group]) -> None:
        for group in groups:
            if _LINK_MARK not in group.spans:
                continue
            for raw in split(group.spans):
                for link in SpanView(raw).links if _LINK_MARK in raw else ():
                    if is_back_link(link):
                        continue
                    kind = link.attributes.get(_LINK_TYPE)
                    self.tallies.links[kind if isinstance(kind, str) else "other"] += 1
                    self.tallies.unresolved += link.attributes.get("podtrail.link.resolved") is False
                    self.tallies.dropped_targets += link.attributes.get("podtrail.link.target") == "dropped"

    def _note(self, attempt: Root, story: AttemptStory, cluster: str, findings: SpanFindings | None = None) -> None:
        let_go = self._let_go.get((story.trace_id, story.span_id))
        if let_go:
            return
        pod = self._pod(attempt.pod_uid, attempt.namespace, attempt.name, cluster)
        known = pod.attempts.get((story.trace_id, story.span_id))
        if known is None:
            if let_go is None:
                self._count(story)
                self.configurations.note(cluster, story.generation, story.start_unix_nano)
            decided = self._fates.get(story.trace_id)
            story = story.decided(*decided) if decided else story
            self._key_of[story.trace_id] = (pod.facts.key, story.span_id)
        story = known.joined(story) if known else story
        self._put(pod, story if findings is None else story.found(findings))
        if len(pod.attempts) > self._max_attempts:
            # The first stays: it tells since when the Pod waits.
            _, second = sorted(pod.attempts.values(), key=lambda one: one.start_unix_nano)[:2]
            self._drop(pod, second)
            self._let_go.put((second.trace_id, second.span_id), True)
            pod.facts = replace(pod.facts, forgotten=pod.facts.forgotten + 1)

    def _count(self, story: AttemptStory) -> None:
        self.tallies.attempts[story.result or "no result"] += 1
        self.pace.note(story.result, story.duration)
        self.shape.add(ShapeAttempt(story.start_unix_nano, story.duration, story.result))

    def _pod(self, uid: str, namespace: str, name: str, cluster: str = "") -> _HeldPod:
        key = self._key(uid, namespace, name, cluster)
        pod = self._pods.get(key)
        if pod is None:
            pod = self._pods[key] = _HeldPod(PodFacts(key, uid, namespace, name, cluster))
            self._named[name] = (*self._named.get(name, ()), key)
            pod.size += 2 * len(key) + len(namespace) + len(name) + len(cluster)
            self._size += pod.size
            if (ended := self._ended.pop(key, None)) is not None:
                self._note_observed(pod, ended)
        if cluster and not pod.facts.cluster:
            pod.facts = replace(pod.facts, cluster=cluster)
        self._note_cluster(cluster)
        self._pods.move_to_end(key)
        pod.told = None
        self._order.move(key, len(self._pods))
        self.changes += 1
        return pod

    def _key(self, uid: str, namespace: str, name: str, cluster: str) -> str:
        if not uid:
            return in_cluster_of(cluster, f"{namespace}/{name}")
        # The kubelet makes up the uids of static Pods: equal nodes of two clusters come to the same.
        other = in_cluster_of(cluster, uid)
        held = self._pods.get(uid)
        return other if other in self._pods or (held and held.facts.cluster not in ("", cluster) and cluster) else uid

    def _note_cluster(self, cluster: str) -> None:
        if self.several_clusters or not cluster or cluster == self._a_cluster:
            return
        if self._a_cluster:
            self.several_clusters = True
            for pod in self._pods.values():
                pod.told = None
            self._order.move_all()
        self._a_cluster = cluster

    def _put(self, pod: _HeldPod, story: AttemptStory) -> None:
        before = pod.attempts.get((story.trace_id, story.span_id))
        pod.attempts[story.trace_id, story.span_id] = story
        self.refusals.note(before, story)
        if self._let_go.get((story.trace_id, story.span_id)) is None:
            self.plugin_shapes.note(before, story)
        if story.victims is not None:
            self._preemptors.note(f"{pod.facts.namespace}/{pod.facts.name}", pod.facts.cluster, story)
        self.changes += 1
        self.latest = max(self.latest, story.end_unix_nano)
        pod.told = None
        self._order.move(pod.facts.key, len(self._pods))
        grown = story.size - (before.size if before else 0)
        pod.size += grown
        self._size += grown

    def _drop(self, pod: _HeldPod, story: AttemptStory) -> None:
        del pod.attempts[story.trace_id, story.span_id]
        self.refusals.note(story, None)
        self.past.note(story, pod.facts.key, pod.facts.cluster)
        self._key_of.pop(story.trace_id, None)
        pod.size -= story.size
        self._size -= story.size

    def shrink(self) -> None:
        """Forget the older half of Pods, attempts and findings."""
        self._make_room(self._size // 2, self._findings_size // 2)
        self.past.shrink(self.past.size // 2)
        forget_oldest(self._fates, 2)
        forget_oldest(self._let_go, 2)

    def _forget(self) -> None:
        # Attempts that are past take what Pods leave, and never less than `_least_past`.
        self._make_room(self._max_bytes - self._least_past, self._max_findings)
        self.past.shrink(max(self._least_past, min(self._max_bytes // 4, self._max_bytes - self._size)))

    def _make_room(self, most_bytes: int, most_findings: int) -> None:
        while len(self._pods) > self._max_pods or (self._size > most_bytes and self._pods):
            key, pod = self._pods.popitem(last=False)
            named = self._named.pop(pod.facts.name)
            if len(named) > 1:
                at = named.index(key)
                self._named[pod.facts.name] = named[:at] + named[at + 1 :]
            self._order.move(key, len(self._pods))
            self.changes += 1
            for attempt in pod.attempts.values():
                self._key_of.pop(attempt.trace_id, None)
                self.refusals.note(attempt, None)
                self.past.note(attempt, pod.facts.key, pod.facts.cluster)
                self._let_go.put((attempt.trace_id, attempt.span_id), False)
            self._lives.pop(pod.facts.life_trace_id, None)
            self._size -= pod.size
            self.tallies.forgotten_pods += 1
        # Spans of one trace come close together: findings are only kept for those that may still come.
        while self._findings_size > most_findings or len(self._findings) > 2_000:
            _, (_, size) = self._findings.popitem(last=False)
            self._findings_size -= size


def _bound_at(before: PodFacts, pod: ObservedPod) -> int | None:
    """Return when a Pod got its node; None where it had one when it was first seen."""
    if not pod.uid:  # the name may be that of another Pod by now
        return pod.at if pod.bound else None
    return before.bound_at or (pod.at if pod.bound and before.created and not before.bound else None)


def _by_trace(groups: Iterable[Group]) -> dict[bytes, list[Group]]:
    traces: dict[bytes, list[Group]] = {}
    for group in groups:
        traces.setdefault(group.trace_id, []).append(group)
    return traces
