"""What a Pod's object says has happened to it: the same, whoever reads it and how often.

Times in objects are whole seconds. A watch that brings a transition within the second that the object names says when
it was more exactly, for it can't have come before it; else the object's time stands, and its resolution with it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from podtrail.otlp import Value
from podtrail.otlp.pod_transition import (
    CONTAINER,
    FINALIZERS,
    GATES,
    INIT,
    MESSAGE,
    NOT_READY_FOR_SCHEDULING,
    REASON,
    RESTARTS,
    SCHEDULING_GATED,
)
from podtrail.reconstruction.calendar import rfc3339
from podtrail.reconstruction.klog import writable

SECOND: Final = 1_000_000_000
_LONGEST: Final = 500
_MOST_CONTAINERS: Final = 64
_MOST_FINALIZERS: Final = 16
_MOST_RESTARTS: Final = (1 << 31) - 1
_STATUSES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_CONDITIONS: Final = {
    "PodScheduled": "scheduled",
    "Initialized": "initialized",
    "Ready": "ready",
    "DisruptionTarget": "disrupted",
    "PodResizePending": "resize pending",
    "PodResizeInProgress": "resizing",
}
_AGAIN: Final = frozenset({"ready", "disrupted", "resize pending", "resizing"})
"""What may happen to a Pod several times."""
_FINISHED: Final = ("Succeeded", "Failed")


class Transition(NamedTuple):
    """Something that happened to a Pod."""

    kind: str
    """As `podtrail.otlp.pod_transition` has them."""
    which: str
    """Tells it from others of its kind; "" where there is one."""
    since: int
    """Unix nanoseconds, whole seconds; 0 where the object does not say."""
    attributes: Mapping[str, Value]
    error: str = ""


def transitions(pod: Mapping[str, Any]) -> Iterator[Transition]:
    """Yield what a Pod's object says has happened so far."""
    meta, spec, status = mapping(pod, "metadata"), mapping(pod, "spec"), mapping(pod, "status")
    yield Transition("created", "", _moment(meta, "creationTimestamp"), {})
    told = {str(each.get("type")): each for each in _list(status, "conditions")}
    conditions = {kind: each for kind, each in told.items() if each.get("status") == "True"}
    if "PodScheduled" not in conditions:
        if text(spec, "nodeName"):
            yield Transition("scheduled", "", 0, {})
        else:
            yield from _unscheduled(pod, told.get("PodScheduled", {}))
    for name, kind in _CONDITIONS.items():
        if name in conditions:
            since = _moment(conditions[name], "lastTransitionTime")
            reasons = _reasons(text(conditions[name], "reason"), text(conditions[name], "message"))
            which = "" if kind not in _AGAIN else f"{since}/{text(conditions[name], 'reason')}".removesuffix("/")
            yield Transition(kind, which, since, reasons)
    yield from _not_ready(pod, told.get("Ready", {}))
    sidecars = {text(each, "name") for each in _list(spec, "initContainers") if each.get("restartPolicy") == "Always"}
    ended = 0
    for which, container in [(key, each) for key in _STATUSES for each in _list(status, key)][:_MOST_CONTAINERS]:
        counted = which == "containerStatuses" or text(container, "name") in sidecars
        for transition in _of_container(container, init=not counted):
            ended = max(ended, transition.since if transition.kind == "terminated" else 0)
            yield transition
    phase = text(status, "phase")
    if phase in _FINISHED:
        reasons = _reasons(text(status, "reason") or phase, text(status, "message"))
        failed = phase == "Failed"
        yield Transition("finished", "", ended, reasons, (text(status, "message") or phase) if failed else "")
    if deleted := _moment(meta, "deletionTimestamp"):
        grace = meta.get("deletionGracePeriodSeconds")
        seconds = grace if isinstance(grace, int) and 0 <= grace <= _MOST_RESTARTS else 0
        held = _finalizers(meta)
        finalizers: dict[str, Value] = {FINALIZERS: [*held]} if held else {}
        yield Transition("deleting", ",".join(held), deleted - seconds * SECOND, finalizers)


def _unscheduled(pod: Mapping[str, Any], condition: Mapping[str, Any]) -> Iterator[Transition]:
    """Yield why a Pod has no node, by its condition and its scheduling gates."""
    held = gates(pod)
    reason = SCHEDULING_GATED if held else text(condition, "reason")
    if not reason or (reason == SCHEDULING_GATED and not held):
        return  # the condition stands until the scheduler writes another one; its gates are gone
    since = _moment(condition, "lastTransitionTime") or _moment(mapping(pod, "metadata"), "creationTimestamp")
    told = dict(_reasons(reason, text(condition, "message")))
    # The messages of failed attempts name numbers of nodes, which change: the first one stands for all.
    which = ",".join(held) if held else str(told.get(MESSAGE, "")) if reason == NOT_READY_FOR_SCHEDULING else ""
    if held:
        told[GATES] = list(held)
    yield Transition("unscheduled", f"{reason}/{which}", since, told)


def _finalizers(meta: Mapping[str, Any]) -> list[str]:
    names = meta.get("finalizers")
    texts = [each for each in names if isinstance(each, str)] if isinstance(names, list) else []
    return [writable(each[:_LONGEST]) for each in texts[:_MOST_FINALIZERS]]


def _not_ready(pod: Mapping[str, Any], condition: Mapping[str, Any]) -> Iterator[Transition]:
    """Yield that a Pod stopped being ready: a condition that became False after a container had started."""
    since = _moment(condition, "lastTransitionTime")
    if not condition or condition.get("status") == "True" or not since:
        return
    states = [
        mapping(mapping(container, key), state)
        for container in _list(mapping(pod, "status"), "containerStatuses")
        for key, state in (("state", "running"), ("state", "terminated"), ("lastState", "terminated"))
    ]
    starts = [started for state in states if (started := _moment(state, "startedAt"))]
    if starts and min(starts) < since:
        told = _reasons(text(condition, "reason"), text(condition, "message"))
        yield Transition("not ready", str(since), since, told)


def gates(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the scheduling gates that hold a Pod back."""
    return tuple(text(gate, "name") for gate in _list(mapping(pod, "spec"), "schedulingGates")[:16])


def resources(pod: Mapping[str, Any]) -> dict[str, str]:
    """Return the resources that the kubelet has given to each container, as `cpu 500m, memory 1Gi`."""
    return {
        text(container, "name"): words
        for container in _list(mapping(pod, "status"), "containerStatuses")[:_MOST_CONTAINERS]
        if (words := _resources(mapping(container, "resources")))
    }


def _resources(told: Mapping[str, Any]) -> str:
    whole = {**mapping(told, "limits"), **mapping(told, "requests")}
    return ", ".join(f"{name} {value}" for name, value in sorted(whole.items()) if isinstance(value, str))[:_LONGEST]


def _of_container(container: Mapping[str, Any], *, init: bool) -> Iterator[Transition]:
    for transition in _states(container):
        yield transition._replace(attributes={**transition.attributes, INIT: True}) if init else transition


def _states(container: Mapping[str, Any]) -> Iterator[Transition]:
    name, restarts = text(container, "name"), container.get("restartCount")
    count = restarts if isinstance(restarts, int) and 0 <= restarts <= _MOST_RESTARTS else 0
    last, state = mapping(container, "lastState"), mapping(container, "state")
    if count and (before := mapping(last, "terminated")):
        yield from _ended(name, count - 1, before)
    if running := mapping(state, "running"):
        yield _container("started", name, count, running, "startedAt", {})
    elif terminated := mapping(state, "terminated"):
        yield from _ended(name, count, terminated)
    elif waiting := mapping(state, "waiting"):
        told = _reasons(text(waiting, "reason"), text(waiting, "message"))
        reason = text(waiting, "reason")
        attributes = {CONTAINER: name, RESTARTS: count, **told}
        again = f"/{count}" if count else ""  # a container waits anew after each restart
        yield Transition("waiting", f"{name}/{reason}{again}", 0, attributes)


def _ended(name: str, count: int, terminated: Mapping[str, Any]) -> Iterator[Transition]:
    if _moment(terminated, "startedAt"):
        yield _container("started", name, count, terminated, "startedAt", {})
    code = terminated.get("exitCode")
    told = dict(_reasons(text(terminated, "reason"), text(terminated, "message")))
    if isinstance(code, int) and abs(code) <= _MOST_RESTARTS:
        told["k8s.container.exit_code"] = code
    error = "" if code == 0 else text(terminated, "reason") or "failed"
    yield _container("terminated", name, count, terminated, "finishedAt", told)._replace(error=error)


def _container(
    kind: str, name: str, count: int, told: Mapping[str, Any], key: str, more: Mapping[str, Value]
) -> Transition:
    attributes: dict[str, Value] = {CONTAINER: name, RESTARTS: count, **more}
    return Transition(kind, f"{name}/{count}", _moment(told, key), attributes)


def _reasons(reason: str, message: str) -> dict[str, Value]:
    told: dict[str, Value] = {REASON: reason} if reason else {}
    if message:
        told[MESSAGE] = message
    return told


def mapping(told: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a value that is a mapping; an empty one for anything else."""
    value = told.get(key)
    return value if isinstance(value, dict) else {}


def text(told: Mapping[str, Any], key: str) -> str:
    """Return a value that is a text, bounded; "" for anything else."""
    value = told.get(key)
    return writable(value[:_LONGEST]) if isinstance(value, str) else ""


def _list(told: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = told.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _moment(told: Mapping[str, Any], key: str) -> int:
    return rfc3339(text(told, key)) or 0
