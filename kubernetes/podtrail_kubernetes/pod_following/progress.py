"""How far a Pod is: the steps of its life, each with the moment at which the watch told of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from podtrail_kubernetes.object_meta import Object, key_of, metadata_of

_ON_ITS_WAY = ("ContainerCreating", "PodInitializing")


@dataclass(slots=True)
class PodProgress:
    """One Pod that is followed."""

    namespace: str
    name: str
    uid: str
    owner: str
    """The object that was written and that it belongs to, in words; empty for a Pod that was written itself."""
    steps: dict[str, float] = field(default_factory=dict)
    """created, scheduled, started, ready, succeeded, failed, deleted: when each was first seen; in that order."""
    node: str = ""
    waits_for: str = ""
    """Why it is not ready yet, as its status tells; empty where it doesn't."""

    @property
    def good(self) -> bool:
        """Whether it is ready, or has done what it was for."""
        return "ready" in self.steps or "succeeded" in self.steps

    @property
    def ended_badly(self) -> bool:
        """Whether it will never be ready."""
        return "failed" in self.steps or ("deleted" in self.steps and not self.good)

    def see(self, pod: Object, seconds: float) -> None:
        """Takes a state of it that was seen at that moment."""
        self.node = str(_part(pod, "spec").get("nodeName") or "")
        reached = ["created"]
        if self.node:
            reached.append("scheduled")
        statuses = _containers(pod)
        if statuses and all("running" in state or "terminated" in state for state in map(_state, statuses)):
            reached.append("started")
        phase = _part(pod, "status").get("phase")
        if _condition(pod, "Ready").get("status") == "True":
            reached.append("ready")
        if phase in ("Succeeded", "Failed"):
            reached.append(phase.lower())
        for step in reached:
            self.steps.setdefault(step, seconds)
        self.waits_for = "" if self.good else _reason(pod)

    def see_gone(self, seconds: float) -> None:
        """Takes that it was deleted."""
        self.steps.setdefault("deleted", seconds)


def new_progress(pod: Object, owner: str) -> PodProgress:
    """A Pod of which nothing was seen yet."""
    key = key_of(pod)
    return PodProgress(key.namespace, key.name, str(metadata_of(pod).get("uid") or ""), owner)


def _reason(pod: Object) -> str:
    status = _part(pod, "status")
    if status.get("phase") == "Failed":
        return _told(status) or "; ".join(filter(None, map(_exit, _containers(pod))))
    unscheduled = _condition(pod, "PodScheduled")
    if unscheduled.get("status") == "False":
        return _told(unscheduled)
    for container in _containers(pod):
        waiting = _state(container).get("waiting")
        if isinstance(waiting, Mapping) and waiting.get("reason") not in _ON_ITS_WAY:
            return f"container {container.get('name')}: {_told(waiting)}"
    return _told(_condition(pod, "Ready")) if "scheduled" in _steps_told(pod) else ""


def _steps_told(pod: Object) -> Iterator[str]:
    if _part(pod, "spec").get("nodeName"):
        yield "scheduled"


def _told(where: Mapping[str, Any]) -> str:
    return ": ".join(str(where[key]) for key in ("reason", "message") if where.get(key))


def _exit(container: Mapping[str, Any]) -> str:
    ended = _state(container).get("terminated")
    if not isinstance(ended, Mapping) or not ended.get("exitCode"):
        return ""
    return f"container {container.get('name')}: exit code {ended['exitCode']}"


def _part(pod: Object, name: str) -> Mapping[str, Any]:
    part = pod.get(name)
    return part if isinstance(part, Mapping) else {}


def _condition(pod: Object, kind: str) -> Mapping[str, Any]:
    conditions = _part(pod, "status").get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, Mapping) and each.get("type") == kind:
            return each
    return {}


def _containers(pod: Object) -> list[Mapping[str, Any]]:
    statuses = _part(pod, "status").get("containerStatuses")
    return [each for each in statuses if isinstance(each, Mapping)] if isinstance(statuses, list) else []


def _state(container: Mapping[str, Any]) -> Mapping[str, Any]:
    state = container.get("state")
    return state if isinstance(state, Mapping) else {}
