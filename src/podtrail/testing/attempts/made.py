"""Traces of scheduling attempts as KEP-5927 has them: input for tests of policies, stories and pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from podtrail.otlp import (
    CLUSTER_NAME,
    ROOT_NAME,
    Batch,
    Decision,
    Event,
    Group,
    Link,
    Status,
    Value,
    Verdict,
    encode_span,
    frame,
    resource_header,
    scope_header,
)

MS = 1_000_000
START = 1_790_000_000_000_000_000
"""Unix nanoseconds; when a made attempt starts unless it is told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class No:
    """A plugin that rejected nodes, at Filter unless it is told otherwise."""

    plugin: str
    reason: str
    nodes: Sequence[str]
    status: str = "Unschedulable"
    point: str = "filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeAttempt:
    """One attempt to schedule a Pod; ids follow from uid and number, times are (Unix) nanoseconds."""

    uid: str = "1f3c0a52-0000-4000-8000-000000000001"
    namespace: str = "default"
    name: str = "web-0"
    number: int = 1
    result: str = "Success"
    message: str = ""
    start: int = START
    duration: int = 9 * MS
    queue_wait_ms: int = 2
    refusals: Sequence[No] = ()
    nodes: int = 34
    node: str = "node-07"
    """Where it goes on success, or would have gone when the bind fails."""
    nominated: str = ""
    bind_error: str = ""
    links: Sequence[Link] = ()
    attributes: Mapping[str, Value] = field(default_factory=dict)
    """Added to the root."""
    scores: Mapping[str, Value] = field(default_factory=dict)
    """Attributes of its span `score`; without any it has none."""
    evaluated: int | None = None
    """How many nodes were looked at; None for all."""
    stitched: bool = True
    """Whether the root bears its number as link_stitching writes it; else as the scheduler counts."""

    cluster: str = ""
    """What its resource says; "": nothing."""

    @property
    def trace_id(self) -> bytes:
        """16 bytes."""
        return blake2b(f"{self.uid}/{self.number}".encode(), digest_size=16).digest()

    @property
    def root_id(self) -> bytes:
        """The root's span id, 8 bytes."""
        return self._id(0)

    def _id(self, position: int) -> bytes:
        return blake2b(self.trace_id + bytes([position]), digest_size=8).digest()

    def groups(self) -> list[Group]:
        """Return the trace: root, cycles, phases and plugins, in one group."""
        spans = [self._root(), *self._scheduling(), *self._binding()]
        told = {CLUSTER_NAME: self.cluster} if self.cluster else {}
        resource = resource_header({"service.name": "kube-scheduler", **told})
        return [Group(resource, scope_header("kube-scheduler"), self.trace_id, frame(spans), len(spans))]

    def verdict(self, decision: Decision = "sampled", policy: str = "failed", reason: str = "") -> Verdict:
        """Return what a sampler decided about it."""
        end = self.start + self.duration
        groups = self.groups()
        return Verdict(self.trace_id, decision, policy, reason, end, self.start, groups[0].span_count, groups=groups)

    def batch(self, decision: Decision = "sampled", policy: str = "failed", reason: str = "") -> Batch:
        """Return what leaves a sampler: the verdict, and the spans where it was sampled."""
        groups = self.groups() if decision == "sampled" else []
        return Batch(groups, self.start + self.duration, [self.verdict(decision, policy, reason)])

    def _span(self, at: int, parent: int | None, name: str, share: tuple[float, float], **more: object) -> bytes:
        begin, end = (self.start + int(self.duration * part) for part in share)
        attributes = more.get("attributes")
        events = more.get("events")
        error = more.get("error")
        return encode_span(
            trace_id=self.trace_id,
            span_id=self._id(at),
            parent_span_id=b"" if parent is None else self._id(parent),
            name=name,
            start=begin,
            end=end,
            status=Status(2, error) if isinstance(error, str) and error else None,
            attributes=attributes if isinstance(attributes, dict) else None,
            events=events if isinstance(events, list) else (),
            links=self.links if parent is None else (),
        )

    def _root(self) -> bytes:
        attributes: dict[str, Value] = {
            "k8s.pod.uid": self.uid,
            "k8s.pod.namespace": self.namespace,
            "k8s.pod.name": self.name,
            "scheduler.queue_wait_ms": self.queue_wait_ms,
            "scheduler.profile": "default-scheduler",
            "scheduler.result": self.result,
        }
        if self.stitched:
            attributes["podtrail.attempt.number"] = self.number
        else:
            attributes |= {"k8s.namespace.name": self.namespace, "scheduler.attempts": self.number}
        if self.nominated:
            attributes["scheduler.nominated_node"] = self.nominated
        if self.result == "Success":
            attributes["scheduler.selected_node"] = self.node
        attributes.update(self.attributes)
        error = (self.message or self.bind_error) if self.result != "Success" else ""
        return self._span(0, None, ROOT_NAME, (0, 1), attributes=attributes, error=error)

    def _scheduling(self) -> list[bytes]:
        refused = sum(len(no.nodes) for no in self.refusals)
        evaluated = self.nodes if self.evaluated is None else self.evaluated
        counts: dict[str, Value] = {
            "scheduler.nodes.total": self.nodes,
            "scheduler.nodes.evaluated": evaluated,
            "scheduler.nodes.feasible": evaluated - refused,
        }
        spans = [
            self._span(1, 0, "schedulingCycle", (0.01, 0.9)),
            self._span(2, 1, "filter", (0.1, 0.6), attributes=counts),
        ]
        if self.scores:
            spans.append(self._span(5, 1, "score", (0.6, 0.8), attributes=dict(self.scores)))
        for at, no in enumerate(self.refusals):
            begin = 0.1 + 0.5 * at / len(self.refusals)
            plugin: dict[str, Value] = {
                "scheduler.plugin.name": no.plugin,
                "scheduler.plugin.extension_point": no.point,
            }
            told: dict[str, Value] = {
                "scheduler.result": no.status,
                "scheduler.reason": no.reason,
                "scheduler.nodes.count": len(no.nodes),
                "scheduler.nodes.names": list(no.nodes[:10]),
            }
            events = [Event(self.start, "plugin rejected", told)]
            share = (begin, begin + 0.4 / len(self.refusals))
            spans.append(self._span(10 + at, 2, f"plugin: {no.plugin}", share, attributes=plugin, events=events))
        return spans

    def _binding(self) -> list[bytes]:
        if self.result != "Success" and not self.bind_error:
            return []
        selected = {"scheduler.selected_node": self.node}
        return [
            self._span(3, 0, "bindingCycle", (0.9, 1), attributes=selected, error=self.bind_error),
            self._span(4, 3, "bind", (0.92, 0.99), error=self.bind_error),
        ]


def nodes(count: int, prefix: str = "node") -> list[str]:
    """Return node names."""
    return [f"{prefix}-{number:02}" for number in range(count)]


def no_room(**changes: object) -> MadeAttempt:
    """Return an attempt that found no room on 34 nodes, as three plugins said."""
    message = (
        "0/34 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu, "
        "31 node(s) didn't match Pod's node affinity/selector. preemption: 0/34 nodes are available: "
        "1 No preemption victims found for incoming pod, 33 Preemption is not helpful for scheduling."
    )
    unresolvable = "UnschedulableAndUnresolvable"
    refusals = [
        No(plugin="TaintToleration", reason="untolerated taint(s)", nodes=["cp-0"], status=unresolvable),
        No(plugin="NodeAffinity", reason="no match", nodes=nodes(31), status=unresolvable),
        No(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=["tight0", "tight1"]),
    ]
    made: dict[str, object] = {"result": "Unschedulable", "message": message, "refusals": refusals} | changes
    return MadeAttempt(**made)  # type: ignore[arg-type] # the fields of MadeAttempt
