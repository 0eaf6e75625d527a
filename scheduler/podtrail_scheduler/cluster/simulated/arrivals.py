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
from podtrail_scheduler.objects.durations import SECOND
from podtrail_scheduler.objects.quantities import parse_resources
from podtrail_scheduler.workload import NodeGroup, PodAffinityConfig, PodKind, Workload
from podtrail_scheduler.workload.faults import BindRefused

from .api_server import PodPlan


class PodArrival(NamedTuple):
    """A Pod to be created, without its annotations; `at` in unix nanoseconds."""

    at: int
    pod: Pod
    plan: PodPlan
    gates_lifted_after: int | None
    traced: bool


def make_nodes(group: NodeGroup) -> Iterator[Node]:
    """Makes the nodes of a group."""
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
    if not makers:
        return
    elapsed = when.expovariate(workload.arrival_rate)
    while (offset := int(elapsed * SECOND)) < workload.length:
        [maker] = what.choices(makers, weights)
        is_traced = traced.random() < workload.api_server.traced
        yield maker.make(start + offset, _uid(uids), is_traced)
        elapsed += when.expovariate(workload.arrival_rate)


def written_arrivals(workload: Workload, start: int) -> Iterator[PodArrival]:
    """The Pods of the workload's files that wait for a node, one after the other."""
    interval = 0 if workload.objects is None else workload.objects.interval
    traced = Random(f"{workload.seed}/traced in files")  # noqa: S311
    for number, pod in enumerate(workload.written.pending):
        is_traced = traced.random() < workload.api_server.traced
        yield PodArrival(start + number * interval, _identified(pod), written_plan(pod, workload), None, is_traced)


def written_placed(workload: Workload) -> Iterator[tuple[Pod, PodPlan]]:
    """The Pods of the workload's files that run from the start."""
    for pod in workload.written.placed:
        yield _identified(pod), written_plan(pod, workload)


def written_plan(pod: Pod, workload: Workload) -> PodPlan:
    """What becomes of a Pod of a file: it runs for ever, unless it is preempted or refused."""
    refusals = workload.faults.bind_refused
    return PodPlan(None, pod.termination_grace_period * SECOND, *_refusal(refusals, *kind_and_number(pod.name)))


def kind_and_number(name: str) -> tuple[str, int]:
    """What faults know a Pod by: `web-7` is the 7th of `web`; what has no number is the first of its name."""
    kind, _, number = name.rpartition("-")
    return (kind, int(number)) if number.isdecimal() else (name, 0)


def _identified(pod: Pod) -> Pod:
    """The Pod with a uid, if it was written down without."""
    return pod if pod.uid else pod.changed(uid=_uid(Random(f"{pod.key}/uid")))  # noqa: S311


def _refusal(refusals: Sequence[BindRefused], kind: str, number: int) -> tuple[int, str]:
    """How often the Pod's binding is refused, and in which words."""
    refusal = next((fault for fault in refusals if fault.concerns(kind, number)), None)
    if refusal is None:
        return 0, ""
    return refusal.times if refusal.times is not None else 2**62, refusal.message


class _Maker:
    """Makes the Pods of one kind; what they have in common is made once."""

    def __init__(self, kind: PodKind, workload: Workload) -> None:
        self._kind = kind
        self._refusals = workload.faults.bind_refused
        self._made = 0
        self._template = Pod(
            name=kind.name,
            namespace=kind.namespace,
            labels={"app": kind.name, **kind.labels},
            annotations=kind.annotations,
            scheduler_name=kind.scheduler_name,
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
        plan = PodPlan(self._kind.lifetime, self._kind.grace, *_refusal(self._refusals, self._kind.name, number))
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
