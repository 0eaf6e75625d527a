"""Makes nodes and Pods from a workload: when Pods come and of which kind follows from the seed."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from podtrail_scheduler.objects import (
    HOSTNAME,
    ZONE,
    Affinity,
    HostPort,
    LabelSelector,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Requirement,
    Taint,
    Toleration,
)
from podtrail_scheduler.objects.quantities import parse_resources
from podtrail_scheduler.workload import NodeGroup, PodAffinityConfig, PodKind, Workload

from .api_server import PodPlan

SECOND = 1_000_000_000


class PodArrival(NamedTuple):
    """A Pod to be created, without its annotations; `at` in unix nanoseconds."""

    at: int
    pod: Pod
    plan: PodPlan
    gates_lifted_after: int | None
    traced: bool


def make_nodes(group: NodeGroup) -> Iterator[Node]:
    """The nodes of a group."""
    allocatable = parse_resources(group.allocatable)
    taints = tuple(Taint(taint.key, taint.value, taint.effect) for taint in group.taints)
    for number in range(group.count):
        name = f"{group.name}-{number}"
        zone = {ZONE: group.zones[number % len(group.zones)]} if group.zones else {}
        yield Node(
            name,
            {HOSTNAME: name, **zone, **group.labels},
            allocatable,
            taints,
            unschedulable=group.cordoned_for > 0,
            images=parse_resources(group.images),
        )


def make_arrivals(workload: Workload, start: int) -> Iterator[PodArrival]:
    """The Pods of the workload in the order of their creation."""
    when = Random(f"{workload.seed}/arrivals")  # noqa: S311, reproducible on purpose
    what = Random(f"{workload.seed}/kinds")  # noqa: S311
    uids = Random(f"{workload.seed}/uids")  # noqa: S311
    traced = Random(f"{workload.seed}/traced")  # noqa: S311
    makers = [_Maker(kind, workload) for kind in workload.pods]
    weights = [kind.weight for kind in workload.pods]
    elapsed = when.expovariate(workload.arrival_rate)
    while (offset := int(elapsed * SECOND)) < workload.length:
        [maker] = what.choices(makers, weights)
        is_traced = traced.random() < workload.api_server.traced
        yield maker.make(start + offset, _uid(uids), is_traced)
        elapsed += when.expovariate(workload.arrival_rate)


class _Maker:
    """Makes the Pods of one kind; what they have in common is made once."""

    def __init__(self, kind: PodKind, workload: Workload) -> None:
        self._kind = kind
        self._refusals = workload.faults.bind_refused
        self._made = 0
        self._template = Pod(
            name=kind.name,
            namespace=kind.namespace,
            labels={"app": kind.name},
            requests=parse_resources(kind.requests),
            node_selector=kind.node_selector,
            tolerations=tuple(
                Toleration(each.key, each.operator, each.value, each.effect) for each in kind.tolerations
            ),
            affinity=_affinity(kind),
            host_ports=tuple(map(HostPort, kind.host_ports)),
            images=tuple(kind.images),
            priority=kind.priority,
            preemption_policy=kind.preemption_policy,
            scheduling_gates=tuple(kind.gates),
        )

    def make(self, at: int, uid: str, traced: bool) -> PodArrival:
        number = self._made
        self._made += 1
        pod = self._template.named(f"{self._kind.name}-{number}", uid)
        refusal = next((fault for fault in self._refusals if fault.concerns(self._kind.name, number)), None)
        times = 0 if refusal is None else refusal.times if refusal.times is not None else 2**62
        message = "" if refusal is None else refusal.message
        plan = PodPlan(self._kind.lifetime, self._kind.grace, times, message)
        return PodArrival(at, pod, plan, self._kind.gates_lifted_after, traced)


def _affinity(kind: PodKind) -> Affinity:
    required = None
    if kind.node_affinity:
        conditions = (Requirement(each.key, each.operator, tuple(each.values)) for each in kind.node_affinity)
        required = NodeSelector((NodeSelectorTerm(tuple(conditions)),))
    return Affinity(NodeAffinity(required), _terms(kind.pod_affinity), _terms(kind.pod_anti_affinity))


def _terms(terms: Sequence[PodAffinityConfig]) -> PodAffinity:
    return PodAffinity(tuple(PodAffinityTerm(LabelSelector(each.match_labels), each.topology_key) for each in terms))


def _uid(random: Random) -> str:
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
