"""Attempts as somebody plans them, and the traces that they become: spaced as the scheduler would, ids from names."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from podtrail.config.duration import MILLISECOND, SECOND
from podtrail.otlp import Value
from podtrail.testing.attempts.made import MadeAttempt, No, nodes

AttemptResult = Literal["Success", "Unschedulable", "Error"]

NODES: Final = 34
_BACKOFF: Final = SECOND
_LONGEST_BACKOFF: Final = 10 * SECOND
_REASONS: Final = {
    "InterPodAffinity": "node(s) didn't match pod affinity rules",
    "NodeAffinity": "node(s) didn't match Pod's node affinity/selector",
    "NodeName": "node(s) didn't match the requested node name",
    "NodePorts": "node(s) didn't have free ports for the requested pod ports",
    "NodeResourcesFit": "Insufficient cpu",
    "NodeUnschedulable": "node(s) were unschedulable",
    "NodeVolumeLimits": "node(s) exceed max volume count",
    "PodTopologySpread": "node(s) didn't match pod topology spread constraints",
    "TaintToleration": "node(s) had untolerated taint(s)",
    "VolumeBinding": "node(s) didn't find available persistent volumes to bind",
    "VolumeZone": "node(s) had no available volume zone",
}
_UNRESOLVABLE: Final = frozenset({"NodeAffinity", "NodeName", "NodeUnschedulable", "TaintToleration"})


class PlannedRefusal(NamedTuple):
    """The nodes that a plugin rejected."""

    plugin: str
    nodes: int | None = None
    """None: its share of what is left of the nodes."""
    reason: str = ""
    """"": what the plugin of that name mostly says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAttempts:
    """Attempts of one Pod, one after the other, all alike. Times in nanoseconds."""

    result: AttemptResult = "Success"
    count: int = 1
    by: Sequence[PlannedRefusal] = ()
    took: int = 9 * MILLISECOND
    waited: int = 2 * MILLISECOND
    """In the scheduling queue."""
    at: int | None = None
    """Start of the first, since the beginning of the case."""
    after: int | None = None
    """Start of the first, since the end of the attempt before."""
    every: int | None = None
    """From start to start; None: when the Pod's backoff is over (1 s, doubled up to 10 s, as by default)."""
    arrives: int = 0
    """How long after its end an attempt's spans arrive."""
    node: str = "node-07"
    message: str = ""
    attributes: Mapping[str, Value] = field(default_factory=dict)


class ArrivingAttempt(NamedTuple):
    """An attempt, and when its spans arrive, Unix nanoseconds."""

    arrival: int
    attempt: MadeAttempt


def uid_of(namespace: str, name: str) -> str:
    """Return the uid of a Pod of which only the name is known."""
    digits = blake2b(f"{namespace}/{name}".encode(), digest_size=16).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def made(
    plans: Sequence[PlannedAttempts], namespace: str, name: str, uid: str, begin: int
) -> Iterator[ArrivingAttempt]:
    """Yield the attempts of a Pod in their order; `begin` is the beginning of the case, Unix nanoseconds."""
    start, number, failures, end = begin, 0, 0, begin
    for plan in plans:
        for at in range(plan.count):
            number += 1
            if at == 0 and plan.at is not None:
                start = begin + plan.at
            elif at == 0 and plan.after is not None:
                start = end + plan.after
            elif at > 0 and plan.every is not None:
                start += plan.every
            elif number > 1:
                start = end + min(_BACKOFF << min(max(0, failures - 1), 4), _LONGEST_BACKOFF)
            end = start + plan.took
            failures = 0 if plan.result == "Success" else failures + 1
            yield ArrivingAttempt(end + plan.arrives, _attempt(plan, namespace, name, uid, number, start))


def _attempt(plan: PlannedAttempts, namespace: str, name: str, uid: str, number: int, start: int) -> MadeAttempt:
    refusals, total = _refusals(plan)
    message = plan.message
    if not message and refusals:
        told = ", ".join(f"{len(no.nodes)} {no.reason}" for no in refusals)
        message = f"0/{total} nodes are available: {told}."
    if not message and plan.result != "Success":
        message = (
            "no nodes available to schedule pods" if plan.result == "Unschedulable" else "running the attempt failed"
        )
    return MadeAttempt(
        uid=uid,
        namespace=namespace,
        name=name,
        number=number,
        stitched=False,
        result=plan.result,
        message=message if plan.result != "Success" else "",
        start=start,
        duration=plan.took,
        queue_wait_ms=plan.waited // MILLISECOND,
        refusals=refusals,
        nodes=total,
        node=plan.node,
        attributes=plan.attributes,
    )


def _refusals(plan: PlannedAttempts) -> tuple[list[No], int]:
    """Return who refused which nodes, and how many nodes there are. Of a Pod that was refused every node is refused."""
    told = sum(one.nodes or 0 for one in plan.by)
    silent = sum(one.nodes is None for one in plan.by)
    spare = plan.result == "Success"
    left = max(NODES - told - spare, silent)
    refusals: list[No] = []
    names = nodes(told + left)
    for one in plan.by:
        count = one.nodes
        if count is None:
            count = left // silent
            left, silent = left - count, silent - 1
        refused, names = names[:count], names[count:]
        status = "UnschedulableAndUnresolvable" if one.plugin in _UNRESOLVABLE else "Unschedulable"
        reason = one.reason or _REASONS.get(one.plugin, f"node(s) were refused by {one.plugin}")
        refusals.append(No(plugin=one.plugin, reason=reason, nodes=refused, status=status))
    refused_in_all = sum(len(no.nodes) for no in refusals)
    if not refusals:
        return [], NODES
    return refusals, max(NODES, refused_in_all + 1) if spare else refused_in_all
