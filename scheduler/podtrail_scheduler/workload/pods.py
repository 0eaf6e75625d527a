"""The Pods of a workload."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from podtrail_scheduler.objects.durations import Duration, parse_duration

from .values import Name, Quantities, Section


class TolerationConfig(Section):
    """A toleration of the Pods of a kind."""

    key: str = Field(default="", description="The key of the taints that are tolerated; empty with Exists: all.")
    operator: Literal["Equal", "Exists"] = Field(default="Exists", description="Whether the value must be equal.")
    value: str = Field(default="", description="The value of the taints that are tolerated, for Equal.")
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        default="", description="The effect that is tolerated; empty: all."
    )


class RequirementConfig(Section):
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


class PodAffinityConfig(Section):
    """Pods that a kind wants near, or not."""

    match_labels: dict[str, str] = Field(
        min_length=1, description="The labels of those Pods (a Pod has `app: <kind>`)."
    )
    topology_key: str = Field(default="kubernetes.io/hostname", description="The node label within which is near.")


class PodKind(Section):
    """Pods of one make."""

    name: Name = Field(description="Pods are called <name>-0, <name>-1 and so on, with the label `app: <name>`.")
    weight: float = Field(
        default=1.0, gt=0, allow_inf_nan=False, description="How often it occurs, relative to the other kinds."
    )
    namespace: Name = Field(default="default", description="The namespace.")
    scheduler_name: str = Field(
        default="default-scheduler", min_length=1, description="The profile that schedules them."
    )
    labels: dict[str, str] = Field(default={}, description="Labels, besides `app`.")
    annotations: dict[str, str] = Field(default={}, description="Annotations.")
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
