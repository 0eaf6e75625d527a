"""How many Pods the kinds of Kubernetes' own workloads are about to have, and when all of them are there.

The rules are those of `kubectl rollout status`, where it has one for a kind.
"""

from collections.abc import Mapping
from typing import Any

from podtrail_kubernetes.object_meta import Object, metadata_of

_REPLICATED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")


def expected_pods(workload: Object) -> int:
    """How many Pods it wants at once; 0 for kinds that are not known to make any."""
    kind, spec = workload.get("kind"), _part(workload, "spec")
    if kind in _REPLICATED:
        return _number(spec, "replicas", 1)
    if kind == "Job":
        parallel = _number(spec, "parallelism", 1)
        return 0 if spec.get("suspend") else min(parallel, _number(spec, "completions", parallel))
    if kind == "DaemonSet":
        return _number(_part(workload, "status"), "desiredNumberScheduled", 0) if _observed(workload) else 1
    return 0


def is_settled(workload: Object) -> bool:
    """Whether its controller says that the Pods it wants are those that there are; true for all other kinds.

    Whether each Pod is ready is asked of the Pod.
    """
    kind, spec, status = workload.get("kind"), _part(workload, "spec"), _part(workload, "status")
    if kind == "Deployment":
        counts = [_number(status, count, 0) for count in ("replicas", "updatedReplicas", "availableReplicas")]
        return _observed(workload) and set(counts) == {_number(spec, "replicas", 1)}
    if kind in ("ReplicaSet", "StatefulSet", "ReplicationController"):
        return _observed(workload) and _number(status, "readyReplicas", 0) == _number(spec, "replicas", 1)
    if kind == "DaemonSet":
        counts = [_number(status, count, 0) for count in ("updatedNumberScheduled", "numberAvailable")]
        return _observed(workload) and set(counts) == {_number(status, "desiredNumberScheduled", 0)}
    if kind == "Job":
        there = _number(status, "ready", 0) + _number(status, "succeeded", 0)
        return there >= expected_pods(workload)
    return True


def gave_up(workload: Object) -> str:
    """Why its controller has given up; empty while it has not."""
    conditions = _part(workload, "status").get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if not isinstance(each, Mapping):
            continue
        late = each.get("type") == "Progressing" and each.get("reason") == "ProgressDeadlineExceeded"
        if late or (workload.get("kind") == "Job" and each.get("type") == "Failed" and each.get("status") == "True"):
            return f"{each.get('reason')}: {each.get('message')}"
    return ""


def _observed(workload: Object) -> bool:
    generation = _number(metadata_of(workload), "generation", 0)
    return _number(_part(workload, "status"), "observedGeneration", 0) >= generation


def _part(workload: Object, name: str) -> Mapping[str, Any]:
    part = workload.get(name)
    return part if isinstance(part, Mapping) else {}


def _number(where: Mapping[str, Any], name: str, absent: int) -> int:
    value = where.get(name)
    return value if isinstance(value, int) else absent
