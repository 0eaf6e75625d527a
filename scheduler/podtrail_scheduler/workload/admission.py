"""What LimitRanges and RuntimeClasses add to Pods at their creation.

As the admission plugins LimitRanger and RuntimeClass of an API server. Minima, maxima and ratios of a LimitRange, for
which the API server refuses Pods, are not checked.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from podtrail_scheduler.objects.decoding.reading import Json, items, labels, part, quantities, text

LIMIT_RANGE: Final = ("v1", "LimitRange")
RUNTIME_CLASS: Final = ("node.k8s.io/v1", "RuntimeClass")
_DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class _Defaults:
    """Limits and requests of containers that name none, each by resource."""

    limits: Json
    requests: Json


@dataclass(frozen=True, slots=True)
class _RuntimeClass:
    overhead: Json
    node_selector: Mapping[str, str]
    tolerations: list[Any]


@dataclass(slots=True)
class PodAdmission:
    """The LimitRanges and RuntimeClasses of a cluster."""

    _ranges: dict[str, list[_Defaults]] = field(default_factory=lambda: defaultdict(list))
    """By namespace."""
    _classes: dict[str, _RuntimeClass] = field(default_factory=dict)

    def add(self, manifest: Json) -> None:
        """Add a LimitRange or a RuntimeClass.

        Raises:
            ValueError: with the path of what can't be read.
        """
        metadata = part(manifest, "metadata")
        if manifest["kind"] == "LimitRange":
            namespace = text(metadata, "namespace", "metadata", _DEFAULT_NAMESPACE)
            self._ranges[namespace] += items(part(manifest, "spec"), "limits", _defaults, "spec")
        else:
            self._classes[text(metadata, "name", "metadata")] = _runtime_class(manifest)

    def join(self, others: Iterable["PodAdmission"]) -> "PodAdmission":
        """Return all of these and of `others` together."""
        whole = PodAdmission()
        for each in (self, *others):
            whole._classes |= each._classes
            for namespace, ranges in each._ranges.items():
                whole._ranges[namespace] += ranges
        return whole

    def admit(self, manifest: Json) -> Json:
        """Return the manifest of a Pod with what is added at its creation.

        Raises:
            ValueError: an API server would refuse the Pod.
        """
        metadata, spec = part(manifest, "metadata"), dict(part(manifest, "spec"))
        namespace = text(metadata, "namespace", "metadata", _DEFAULT_NAMESPACE)
        for defaults in self._ranges.get(namespace, ()):
            for kind in ("containers", "initContainers"):
                if isinstance(spec.get(kind), list):
                    spec[kind] = [_with_defaults(each, defaults) for each in spec[kind]]
        if name := text(spec, "runtimeClassName", "spec"):
            pod = f"Pod {namespace}/{text(metadata, 'name', 'metadata')}"
            if name not in self._classes:
                raise ValueError(f"{pod}: no RuntimeClass with name {name} was found; add it to files")
            spec = _with_class(spec, self._classes[name], f"{pod}: RuntimeClass {name}")
        return {**manifest, "spec": spec}


def _defaults(limit: Json) -> _Defaults:
    """Return what an item of a LimitRange gives to containers: a maximum is the limit, a minimum the request."""
    if text(limit, "type") != "Container":
        return _Defaults({}, {})
    given = {name: part(limit, name) for name in ("default", "defaultRequest", "max", "min")}
    for name in given:
        quantities(limit, name)  # a quantity that can't be read is refused where it stands
    limits = {**given["max"], **given["default"]}
    return _Defaults(limits, {**given["min"], **limits, **given["defaultRequest"]})


def _with_defaults(container: Any, defaults: _Defaults) -> Any:
    if not isinstance(container, dict):
        return container
    resources = part(container, "resources")
    merged = {
        "limits": {**defaults.limits, **part(resources, "limits", "resources")},
        "requests": {**defaults.requests, **part(resources, "requests", "resources")},
    }
    return {**container, "resources": {**resources, **{key: value for key, value in merged.items() if value}}}


def _runtime_class(manifest: Json) -> _RuntimeClass:
    scheduling = part(manifest, "scheduling")
    overhead = part(manifest, "overhead")
    quantities(overhead, "podFixed", "overhead")
    return _RuntimeClass(
        part(overhead, "podFixed", "overhead"),
        labels(scheduling, "nodeSelector", "scheduling"),
        list(items(scheduling, "tolerations", dict, "scheduling")),
    )


def _with_class(spec: dict[str, Any], given: _RuntimeClass, what: str) -> dict[str, Any]:
    own = part(spec, "nodeSelector", "spec")
    for key, value in given.node_selector.items():
        if own.get(key, value) != value:
            raise ValueError(f"{what} wants {key}={value}, nodeSelector {key}={own[key]}")
    if spec.get("overhead") and quantities(spec, "overhead") != quantities({"overhead": given.overhead}, "overhead"):
        raise ValueError(f"{what} has another overhead than the Pod")
    own_tolerations = spec.get("tolerations") or []
    if not isinstance(own_tolerations, list):
        return spec  # the decoder refuses it with its place
    added = [each for each in given.tolerations if each not in own_tolerations]
    filled = {**spec, "nodeSelector": {**own, **given.node_selector}, "tolerations": [*own_tolerations, *added]}
    return {**filled, "overhead": given.overhead} if given.overhead else filled
