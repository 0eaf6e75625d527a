"""The configuration of a simulated cluster and what happens in it. Importing it imports no OpenTelemetry.

Chance, from the seed, decides when Pods arrive and of which kind they are, and which requests a share of faults hits;
never what becomes of them. `{}` is a small cluster on which every kind of result occurs.
"""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticKnownError

from podtrail_scheduler.objects.durations import Duration, format_duration, parse_duration

from .faults import Faults, SlowPlugin, SomeNodes, SomePods
from .nodes import NodeGroup
from .objects import ObjectFiles, Objects
from .pods import PodAffinityConfig, PodKind
from .values import Section

__all__ = [
    "DEFAULT_PLUGINS",
    "ApiServerConfig",
    "Faults",
    "NodeGroup",
    "ObjectFiles",
    "Objects",
    "PodAffinityConfig",
    "PodKind",
    "SlowPlugin",
    "Workload",
]

DEFAULT_PLUGINS = (
    "SchedulingGates",
    "PrioritySort",
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
)
"""The names that `plugins.registry` gives the default profile's plugins."""


class ApiServerConfig(Section):
    """How fast the API server is, and what it writes on Pods."""

    create_takes: Duration = Field(default=parse_duration("8ms"), description="How long the creation of a Pod takes.")
    bind_takes: Duration = Field(default=parse_duration("3ms"), description="How long a binding takes.")
    traced: float = Field(
        default=1.0, ge=0, le=1, description="The share of Pods created with a traceparent annotation (KEP-5915)."
    )
    spans: bool = Field(default=True, description="Whether the creations that are traced leave spans of an API server.")


# The defaults are validated like what a user writes.
_DEFAULT_NODES: list[dict[str, object]] = [
    {"name": "node", "count": 12, "zones": ["a", "b"], "labels": {"disk": "ssd"}},
    {
        "name": "gpu",
        "count": 2,
        "allocatable": {"cpu": "8", "memory": "32Gi", "pods": 110, "example.com/gpu": 2},
        "taints": [{"key": "example.com/gpu"}],
    },
    {"name": "control-plane", "taints": [{"key": "node-role.kubernetes.io/control-plane"}]},
    {"name": "new", "count": 2, "joins_after": "5m", "cordoned_for": "1m"},
]

_DEFAULT_PODS: list[dict[str, object]] = [
    {"name": "web", "weight": 60, "lifetime": "50s", "images": ["web:1"]},
    {"name": "batch", "weight": 20, "requests": {"cpu": "1", "memory": "2Gi"}, "priority": -10, "lifetime": "95s"},
    {
        "name": "train",
        "weight": 3,
        "requests": {"cpu": "2", "memory": "4Gi", "example.com/gpu": 1},
        "tolerations": [{"key": "example.com/gpu"}],
        "lifetime": "80s",
    },
    {"name": "critical", "weight": 4, "requests": {"cpu": "3", "memory": "4Gi"}, "priority": 1000, "lifetime": "1m"},
    {"name": "gated", "weight": 3, "gates": ["example.com/quota"], "gates_lifted_after": "40s", "lifetime": "30s"},
    {"name": "lonely", "weight": 2, "lifetime": "4m", "pod_anti_affinity": [{"match_labels": {"app": "lonely"}}]},
    {"name": "costly", "weight": 4, "lifetime": "1m"},
    {"name": "frozen", "weight": 2, "lifetime": "1m"},
    {"name": "lost", "weight": 1, "node_selector": {"disk": "tape"}},
]

_DEFAULT_FAULTS: dict[str, object] = {
    "slow_plugins": [
        {"name": "CostScorer", "extension_point": "score", "takes": "1.2s", "kinds": ["costly"], "every": 2},
        {"name": "VolumeAttacher", "extension_point": "preBind", "takes": "4s", "kinds": ["train"]},
    ],
    "bind_refused": [{"kinds": ["frozen"], "times": 3}],
}


class Workload(Section):
    """A cluster, the Pods that come to it, and what goes wrong."""

    seed: int = Field(default=1, description="The same seed gives the same spans, byte for byte.")
    length: Duration = Field(default=parse_duration("10m"), description="For how long (simulated) Pods come.")
    arrival_rate: float = Field(
        default=1.0, gt=0, le=100_000, description="Pods created a simulated second, on average (Poisson)."
    )
    objects: ObjectFiles | None = Field(
        default=None,
        description="A cluster that was written down. With it `nodes`, `pods` and `faults` are empty unless they are "
        "named; what they say comes in addition.",
    )
    nodes: list[NodeGroup] = Field(
        default=cast("list[NodeGroup]", _DEFAULT_NODES),
        validate_default=True,
        description="The cluster.",
    )
    pods: list[PodKind] = Field(
        default=cast("list[PodKind]", _DEFAULT_PODS),
        validate_default=True,
        description="What is created.",
    )
    faults: Faults = Field(
        default=cast("Faults", _DEFAULT_FAULTS),
        validate_default=True,
        description="What goes wrong.",
    )
    api_server: ApiServerConfig = Field(default=ApiServerConfig(), description="The API server.")

    @model_validator(mode="before")
    @classmethod
    def _objects_in_place_of_examples(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "objects" in data:
            given = {key: value for key, value in data.items() if value is not None}
            # A section that is named and empty is there, and says what it lacks.
            return {"objects": {}, "nodes": [], "pods": [], "faults": {}, **given}
        return data

    @field_validator("pods")
    @classmethod
    def _something_is_created(cls, pods: list[PodKind], info: ValidationInfo) -> list[PodKind]:
        if not pods and info.data.get("objects", pods) is None:
            raise PydanticKnownError("too_short", {"field_type": "List", "min_length": 1, "actual_length": 0})
        return pods

    @model_serializer(mode="wrap")
    def _dumped(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave `objects` out where there are none: a section that is there must name its files."""
        dumped: dict[str, Any] = dump(self)
        if self.objects is None:
            dumped.pop("objects", None)
        return dumped

    @property
    def written(self) -> Objects:
        """What `objects` holds."""
        return Objects() if self.objects is None else self.objects.found

    @model_validator(mode="after")
    def _there_is_a_cluster_and_time_for_it(self) -> "Workload":
        if self.objects is None:
            return self
        if not self.nodes and not self.written.nodes:
            raise ValueError(
                f"objects has no Node{self.objects.empty}; "
                "add a file that kubectl get nodes -o yaml wrote, or say what the nodes are"
            )
        if not self.pods and not self.written.pending:
            raise ValueError(
                f"objects has no Pod that waits for a node{self.objects.empty}; "
                "add such Pods, say what the pods are, or reschedule: true"
            )
        needed = self.objects.interval * len(self.written.pending)
        if needed > self.length:
            raise ValueError(
                f"objects has {len(self.written.pending)} Pods, which take {format_duration(needed)} to come; "
                "raise length or lower interval"
            )
        return self

    @model_validator(mode="after")
    def _names_are_known_and_unique(self) -> "Workload":
        for what, names in (("nodes", [each.name for each in self.nodes]), ("pods", [each.name for each in self.pods])):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{what} has {', '.join(twice)} more than once")
        kinds = {kind.name for kind in self.pods}
        faults = self.faults
        of_pods: tuple[SomePods, ...] = (
            *(*faults.slow_plugins, *faults.bind_refused),
            *(*faults.pods_deleted, *faults.bound_by_another),
        )
        unknown = sorted({kind for fault in of_pods for kind in fault.kinds} - kinds)
        if unknown and "faults" in self.model_fields_set:
            raise ValueError(f"faults name kinds that pods does not have: {', '.join(unknown)}")
        groups = {group.name for group in self.nodes}
        of_nodes: tuple[SomeNodes, ...] = (*faults.node_loss, *faults.node_churn)
        unknown = sorted({fault.nodes for fault in of_nodes} - groups)
        if unknown and "faults" in self.model_fields_set:
            raise ValueError(f"faults name groups that nodes does not have: {', '.join(unknown)}")
        plugins = [*DEFAULT_PLUGINS, *(fault.name for fault in self.faults.slow_plugins)]
        twice = sorted({name for name in plugins if plugins.count(name) > 1})
        if twice:
            raise ValueError(f"faults.slow_plugins needs names of its own, these are taken: {', '.join(twice)}")
        return self
