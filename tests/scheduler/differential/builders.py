"""Objects of the Kubernetes API as JSON, with what the API server would fill in where a scheduler looks at it."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .case import Object

NAMESPACE = "default"
ZONE, REGION, HOST = "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname"

NAMESPACES: dict[str, dict[str, str]] = {
    NAMESPACE: {},
    "team-a": {"team": "a", "stage": "prod"},
    "team-b": {"team": "b", "stage": "prod"},
    "team-c": {"team": "c", "stage": "test"},
}
"""They stay as they are for all cases: a control plane without controllers never gets rid of a namespace."""


ADMINISTRATORS = "administrators"
"""Who is here may use devices that others have."""


def administrators() -> Object:
    """That Namespace."""
    labels = {_NAME_LABEL: ADMINISTRATORS, "resource.kubernetes.io/admin-access": "true"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ADMINISTRATORS, "labels": labels}}


def namespaces() -> list[Object]:
    """The Namespaces, with the label that the API server gives each."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**labels, _NAME_LABEL: name}}}
        for name, labels in NAMESPACES.items()
    ]


_NAME_LABEL = "kubernetes.io/metadata.name"


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    extended: Mapping[str, str] | None = None,
) -> Object:
    """A ready node with its host name as label."""
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **(extended or {})}
    spec: Object = {}
    if taints:
        spec["taints"] = [dict(taint) for taint in taints]
    if unschedulable:
        spec["unschedulable"] = True
    status: Object = {
        "capacity": allocatable,
        "allocatable": allocatable,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    if images:
        status["images"] = [{"names": [image], "sizeBytes": size} for image, size in images.items()]
    metadata = {"name": name, "labels": {HOST: name, **(labels or {})}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def container(
    name: str = "main",
    requests: Mapping[str, str] | None = None,
    *,
    image: str = "registry.example/app:v1",
    ports: Iterable[Mapping[str, Any]] = (),
    always: bool = False,
) -> Object:
    """A container; extended resources are requested and limited alike, as the API wants it."""
    built: Object = {"name": name, "image": image}
    if requests:
        built["resources"] = {"requests": dict(requests)}
        limits = {resource: amount for resource, amount in requests.items() if "/" in resource}
        if limits:
            built["resources"]["limits"] = limits
    if ports := [{"protocol": "TCP", **port} for port in ports]:
        built["ports"] = ports
    if always:
        built["restartPolicy"] = "Always"
    return built


def pod(
    name: str,
    requests: Mapping[str, str] | None = None,
    *,
    namespace: str = NAMESPACE,
    labels: Mapping[str, str] | None = None,
    on: str | None = None,
    priority: int | None = None,
    containers: Sequence[Object] = (),
    started: str | None = None,
    phase: str | None = None,
    terminates: bool = False,
    **spec: Any,
) -> Object:
    """A Pod; `on` binds it to a node, `started` says since when it runs. `spec` adds fields to its spec."""
    whole: Object = {"containers": list(containers) or [container(requests=requests)], **spec}
    if on is not None:
        whole["nodeName"] = on
    if priority is not None:
        whole["priority"] = priority
    metadata: Object = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    built: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}
    if started is not None:
        built["status"] = {"phase": "Running", "startTime": started}
    if phase is not None:
        built["status"] = {"phase": phase}
    elif terminates:
        metadata["deletionTimestamp"] = "2026-01-01T02:00:00Z"
    return built


def expression(key: str, operator: str, *values: str) -> Object:
    """A requirement of a selector."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def as_stored(pod: Object) -> Object:
    """The Pod after the API server has written what its label keys mean into the selectors beside them."""
    stored = copy.deepcopy(pod)
    labels, spec = stored["metadata"].get("labels", {}), stored["spec"]
    terms = list(spec.get("topologySpreadConstraints", ()))
    for kind in ("podAffinity", "podAntiAffinity"):
        half = spec.get("affinity", {}).get(kind, {})
        terms += half.get("requiredDuringSchedulingIgnoredDuringExecution", ())
        preferred = half.get("preferredDuringSchedulingIgnoredDuringExecution", ())
        terms += [each["podAffinityTerm"] for each in preferred]
    for term in terms:
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            added = [expression(key, operator, labels[key]) for key in term.get(field, ()) if key in labels]
            if added:
                term["labelSelector"].setdefault("matchExpressions", []).extend(added)
    return stored


def service(name: str, selector: Mapping[str, str], namespace: str = NAMESPACE) -> Object:
    """A Service that selects Pods."""
    spec = {"selector": dict(selector), "ports": [{"port": 80, "protocol": "TCP"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def disruption_budget(name: str, selector: Mapping[str, str], allowed: int) -> Object:
    """A PodDisruptionBudget with what its controller would have written."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": dict(selector)}, "maxUnavailable": allowed},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
    }
