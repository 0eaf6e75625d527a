"""The configuration of a simulated cluster and what happens in it. Importing it imports no OpenTelemetry.

Chance, from the seed, decides when Pods arrive and of which kind they are; never what becomes of them. `{}` is a small
cluster on which every kind of result occurs.
"""

from typing import Annotated, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from .durations import Duration, parse_duration
from .quantities import parse_resources

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,50}[a-z0-9])?$")]


def _valid_resources(quantities: dict[str, str | int | float]) -> dict[str, str | int | float]:
    parse_resources(quantities)
    return quantities


Quantities = Annotated[dict[str, str | int | float], AfterValidator(_valid_resources)]


DEFAULT_PLUGINS = (
    "SchedulingGates",
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "InterPodAffinity",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
)
"""The names that `plugins.registry` gives the default profile's plugins."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TaintConfig(_Section):
    """A taint of the nodes of a group."""

    key: str = Field(min_length=1, description="The taint's key.")
    value: str = Field(default="", description="The taint's value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        default="NoSchedule", description="What it does to Pods that do not tolerate it."
    )


class TolerationConfig(_Section):
    """A toleration of the Pods of a kind."""

    key: str = Field(default="", description="The key of the taints that are tolerated; empty with Exists: all.")
    operator: Literal["Equal", "Exists"] = Field(default="Exists", description="Whether the value must be equal.")
    value: str = Field(default="", description="The value of the taints that are tolerated, for Equal.")
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        default="", description="The effect that is tolerated; empty: all."
    )


class RequirementConfig(_Section):
    """A condition on a label of a node."""

    key: str = Field(min_length=1, description="The label's key.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] = Field(
        default="In", description="How its value is compared."
    )
    values: list[str] = Field(default=[], description="What it is compared with; one integer for Gt and Lt.")

    @model_validator(mode="after")
    def _one_integer(self) -> "RequirementConfig":
        if self.operator in ("Gt", "Lt") and (len(self.values) != 1 or not self.values[0].lstrip("-").isdigit()):
            raise ValueError(f"{self.operator} needs exactly one integer in values")
        return self


class PodAffinityConfig(_Section):
    """Pods that a kind wants near, or not."""

    match_labels: dict[str, str] = Field(
        min_length=1, description="The labels of those Pods (a Pod has `app: <kind>`)."
    )
    topology_key: str = Field(default="kubernetes.io/hostname", description="The node label within which is near.")


class NodeGroup(_Section):
    """Nodes of one make."""

    name: Name = Field(description="Nodes are called <name>-0, <name>-1 and so on.")
    count: int = Field(default=1, ge=1, le=15_000, description="How many there are.")
    allocatable: Quantities = Field(
        default={"cpu": "4", "memory": "16Gi", "pods": 110},
        description="What each has for Pods; extended resources such as `example.com/gpu` included.",
    )
    labels: dict[str, str] = Field(default={}, description="Labels, besides kubernetes.io/hostname.")
    zones: list[str] = Field(default=[], description="Values of topology.kubernetes.io/zone, given out in turn.")
    taints: list[TaintConfig] = Field(default=[], description="Taints.")
    images: dict[str, str | int | float] = Field(
        default={}, description="Images that are there, and their sizes (500Mi)."
    )
    joins_after: Duration = Field(default=0, description="When they join the cluster; 0s: they are there at first.")
    cordoned_for: Duration = Field(default=0, description="For how long after that they are unschedulable.")

    _sizes = model_validator(mode="after")(lambda self: _valid_resources(self.images) is None or self)


class PodKind(_Section):
    """Pods of one make."""

    name: Name = Field(description="Pods are called <name>-0, <name>-1 and so on, with the label `app: <name>`.")
    weight: float = Field(
        default=1.0, gt=0, allow_inf_nan=False, description="How often it occurs, relative to the other kinds."
    )
    namespace: Name = Field(default="default", description="The namespace.")
    requests: Quantities = Field(default={"cpu": "500m", "memory": "512Mi"}, description="Resources asked for.")
    priority: int = Field(default=0, ge=-(2**31), le=2_000_001_000, description="Higher goes first and may preempt.")
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = Field(
        default="PreemptLowerPriority", description="Whether it may make Pods of lower priority give way."
    )
    node_selector: dict[str, str] = Field(default={}, description="Labels that its node must have.")
    node_affinity: list[RequirementConfig] = Field(default=[], description="Conditions that its node must all meet.")
    tolerations: list[TolerationConfig] = Field(default=[], description="Taints that it bears.")
    pod_affinity: list[PodAffinityConfig] = Field(default=[], description="Pods that must be near.")
    pod_anti_affinity: list[PodAffinityConfig] = Field(default=[], description="Pods that must not be near.")
    host_ports: list[Annotated[int, Field(ge=1, le=65535)]] = Field(
        default=[], description="TCP ports it takes on its node."
    )
    images: list[str] = Field(default=[], description="Its images.")
    gates: list[str] = Field(default=[], description="Scheduling gates that it is created with.")
    gates_lifted_after: Duration | None = Field(
        default=None, description="When its gates are lifted, after its creation; null: never."
    )
    lifetime: Duration | None = Field(default=None, description="How long it runs once bound; null: for ever.")
    grace: Duration = Field(default=parse_duration("2s"), description="How long it takes to end when preempted.")


class SlowPlugin(_Section):
    """A plugin that takes its time for some Pods."""

    name: str = Field(min_length=1, description="The plugin's name in spans.")
    extension_point: Literal["score", "permit", "preBind"] = Field(
        description="Where it waits: score holds up every Pod, permit and preBind only the one that is being bound."
    )
    takes: Duration = Field(description="For how long.")
    kinds: list[str] = Field(default=[], description="For which kinds of Pods; empty: all.")
    every: int = Field(default=1, ge=1, description="For each how many-th Pod of a kind, the first included.")


class BindRefused(_Section):
    """The API server refuses to bind some Pods."""

    kinds: list[str] = Field(default=[], description="Which kinds of Pods; empty: all.")
    every: int = Field(default=1, ge=1, description="Each how many-th Pod of a kind, the first included.")
    times: int | None = Field(default=None, ge=1, description="How often it refuses a Pod; null: always.")
    message: str = Field(
        default="ValidatingAdmissionPolicy 'no-binding' with binding 'no-binding' denied request: not today",
        description='Its answer, behind `pods "<name>" is forbidden: `.',
    )


class Faults(_Section):
    """What goes wrong."""

    slow_plugins: list[SlowPlugin] = Field(default=[], description="Plugins that take their time.")
    bind_refused: list[BindRefused] = Field(default=[], description="Bindings that the API server refuses.")


class ApiServerConfig(_Section):
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
        {"name": "VolumeBinding", "extension_point": "preBind", "takes": "4s", "kinds": ["train"]},
    ],
    "bind_refused": [{"kinds": ["frozen"], "times": 3}],
}


class Workload(_Section):
    """A cluster, the Pods that come to it, and what goes wrong."""

    seed: int = Field(default=1, description="The same seed gives the same spans, byte for byte.")
    length: Duration = Field(default=parse_duration("10m"), description="For how long (simulated) Pods come.")
    arrival_rate: float = Field(
        default=1.0, gt=0, le=100_000, description="Pods created a simulated second, on average (Poisson)."
    )
    nodes: list[NodeGroup] = Field(
        default=cast("list[NodeGroup]", _DEFAULT_NODES),
        validate_default=True,
        description="The cluster.",
    )
    pods: list[PodKind] = Field(
        default=cast("list[PodKind]", _DEFAULT_PODS),
        validate_default=True,
        min_length=1,
        description="What is created.",
    )
    faults: Faults = Field(
        default=cast("Faults", _DEFAULT_FAULTS),
        validate_default=True,
        description="What goes wrong.",
    )
    api_server: ApiServerConfig = Field(default=ApiServerConfig(), description="The API server.")

    @model_validator(mode="after")
    def _names_are_known_and_unique(self) -> "Workload":
        for what, names in (("nodes", [each.name for each in self.nodes]), ("pods", [each.name for each in self.pods])):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{what} has {', '.join(twice)} more than once")
        kinds = {kind.name for kind in self.pods}
        named = [fault.kinds for fault in self.faults.slow_plugins] + [
            fault.kinds for fault in self.faults.bind_refused
        ]
        unknown = sorted({kind for each in named for kind in each} - kinds)
        if unknown and "faults" in self.model_fields_set:
            raise ValueError(f"faults name kinds that pods does not have: {', '.join(unknown)}")
        plugins = [*DEFAULT_PLUGINS, *(fault.name for fault in self.faults.slow_plugins)]
        twice = sorted({name for name in plugins if plugins.count(name) > 1})
        if twice:
            raise ValueError(f"faults.slow_plugins needs names of its own, these are taken: {', '.join(twice)}")
        return self
