"""What an API server fills in when an object is created, as far as scheduling looks at it.

As `pkg/apis/core/v1/defaults.go` and the admission plugins that are on by default. Objects that an API server has
written have it already, and stay as they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from podtrail_scheduler.objects import ApiObject, PersistentVolumeClaim, Pod, StorageClass
from podtrail_scheduler.objects.decoding.reading import Json, flag, items, part, text, whole
from podtrail_scheduler.objects.decoding.resources import container, requested

_OVERCOMMITTED: Final = ("cpu", "memory")
_HUGE_PAGES: Final = "hugepages-"
_TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS: Final = 300
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """What Pods of a class get."""

    name: str
    value: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    is_default: bool = False


_BUILT_IN: Final = {
    each.name: each
    for each in (
        PriorityClass("system-cluster-critical", 2_000_000_000),
        PriorityClass("system-node-critical", 2_000_001_000),
    )
}


def decode_priority_class(manifest: Json) -> PriorityClass:
    """Return a PriorityClass of the API's JSON.

    Raises:
        ValueError: with the path of what can't be read.
    """
    return PriorityClass(
        text(part(manifest, "metadata"), "name", "metadata"),
        whole(manifest, "value") or 0,
        text(manifest, "preemptionPolicy", "", "PreemptLowerPriority"),
        flag(manifest, "globalDefault"),
    )


def completed(kind: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest with what does not depend on other objects.

    Raises:
        ValueError: with the path of what can't be read.
    """
    if kind == "Node":
        status = part(manifest, "status")
        if "allocatable" not in status and "capacity" in status:
            return {**manifest, "status": {**status, "allocatable": status["capacity"]}}
    if kind == "Pod" and (spec := part(manifest, "spec")):
        return {**manifest, "spec": _completed_spec(spec)}
    return manifest


def with_classes(
    objects: Sequence[ApiObject], classes: Iterable[PriorityClass], wanted: Mapping[str, str]
) -> list[ApiObject]:
    """Return objects with what depends on others: priorities of Pods, StorageClasses of claims.

    Args:
        objects: all that there are.
        classes: all PriorityClasses that there are.
        wanted: by key of each Pod that has no priority the name of its class; "": the default one.

    Raises:
        ValueError: there is no class of that name.
    """
    known = {**_BUILT_IN, **{each.name: each for each in classes}}
    usual = min((each for each in known.values() if each.is_default), key=lambda each: each.value, default=None)
    storage = [each for each in objects if isinstance(each, StorageClass) and _is_default(each)]
    return [_completed_object(each, known, usual, storage, wanted) for each in objects]


def _completed_object(
    each: ApiObject,
    known: Mapping[str, PriorityClass],
    usual: PriorityClass | None,
    storage: Sequence[StorageClass],
    wanted: Mapping[str, str],
) -> ApiObject:
    if isinstance(each, Pod) and each.key in wanted:
        name = wanted[each.key]
        if name and name not in known:
            raise ValueError(f"Pod {each.key}: no PriorityClass with name {name} was found; add it to files")
        if (given := known[name] if name else usual) is not None:
            return each.changed(priority=given.value, preemption_policy=given.preemption_policy)
    if isinstance(each, PersistentVolumeClaim) and each.storage_class_name is None and not each.volume_name and storage:
        return replace(each, storage_class_name=min(storage, key=lambda some: some.name).name)
    return each


def _is_default(each: StorageClass) -> bool:
    return any(each.annotations.get(name) == "true" for name in _DEFAULT_CLASS)


def _completed_spec(spec: Json) -> dict[str, Any]:
    filled = dict(spec)
    for name in ("containers", "initContainers"):
        if isinstance(spec.get(name), list):
            filled[name] = [_completed_container(each, spec) for each in spec[name]]
    resources = part(spec, "resources", "spec")
    if limits := part(resources, "limits", "spec.resources"):
        requests = {**_requested(filled), **part(resources, "requests", "spec.resources")}
        left = {key: value for key, value in limits.items() if _is_of_pods(key) and key not in requests}
        filled["resources"] = {**resources, "requests": {**requests, **left}}
    tolerations = spec.get("tolerations") or []
    if isinstance(tolerations, list):
        filled["tolerations"] = [*tolerations, *(_toleration(key) for key in _TOLERATED if not _has(tolerations, key))]
    return filled


def _completed_container(each: Any, spec: Json) -> Any:
    if not isinstance(each, dict):
        return each
    resources = part(each, "resources")
    if limits := part(resources, "limits", "resources"):
        each = {**each, "resources": {**resources, "requests": {**limits, **part(resources, "requests", "resources")}}}
    if spec.get("hostNetwork") is True and isinstance(each.get("ports"), list):
        each = {**each, "ports": [_on_host(port) for port in each["ports"]]}
    return each


def _on_host(port: Any) -> Any:
    if isinstance(port, dict) and not port.get("hostPort") and "containerPort" in port:
        return {**port, "hostPort": port["containerPort"]}
    return port


def _requested(spec: Json) -> dict[str, str]:
    """Return what the containers ask for together, of what a Pod may ask for as a whole."""
    wanted = requested(items(spec, "containers", container, "spec"), items(spec, "initContainers", container, "spec"))
    return {name: f"{billionths}n" for name, billionths in wanted.items() if name in _OVERCOMMITTED}


def _is_of_pods(name: str) -> bool:
    return name in _OVERCOMMITTED or name.startswith(_HUGE_PAGES)


def _has(tolerations: Sequence[Any], key: str) -> bool:
    return any(
        isinstance(each, dict) and each.get("key") in (key, "", None) and each.get("effect") in ("NoExecute", "", None)
        for each in tolerations
    )


def _toleration(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
