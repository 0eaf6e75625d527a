"""The nodes of a workload."""

from typing import Literal

from pydantic import Field, model_validator

from podtrail_scheduler.objects.durations import Duration

from .values import Name, Quantities, Section, valid_resources


class TaintConfig(Section):
    """A taint of the nodes of a group."""

    key: str = Field(min_length=1, description="The taint's key.")
    value: str = Field(default="", description="The taint's value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        default="NoSchedule", description="What it does to Pods that do not tolerate it."
    )


class NodeGroup(Section):
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

    _sizes = model_validator(mode="after")(lambda self: valid_resources(self.images) is None or self)
