"""What goes wrong in a workload."""

from typing import Literal

from pydantic import Field

from podtrail_scheduler.objects.durations import Duration, parse_duration

from .values import Name, Section

Call = Literal["bind", "patchStatus", "delete"]
"""Requests of the scheduler: bindings, status patches, deletions of preempted Pods."""


class SomePods(Section):
    """Pods that something happens to."""

    kinds: list[str] = Field(default=[], description="Which kinds of Pods; empty: all.")
    every: int = Field(default=1, ge=1, description="Each how many-th Pod of a kind, the first included.")

    def concerns(self, kind: str, number: int) -> bool:
        """Whether it happens to the Pod of that kind and number."""
        return (not self.kinds or kind in self.kinds) and number % self.every == 0


class SomeNodes(Section):
    """Nodes that something happens to."""

    nodes: Name = Field(description="Of which group, the first ones first.")


class SlowPlugin(SomePods):
    """A plugin that takes its time for some Pods."""

    name: str = Field(min_length=1, description="The plugin's name in spans.")
    extension_point: Literal["score", "permit", "preBind"] = Field(
        description="Where it waits: score holds up every Pod, permit and preBind only the one that is being bound."
    )
    takes: Duration = Field(description="For how long.")


class BindRefused(SomePods):
    """The API server refuses to bind some Pods."""

    times: int | None = Field(default=None, ge=1, description="How often it refuses a Pod; null: always.")
    message: str = Field(
        default="ValidatingAdmissionPolicy 'no-binding' with binding 'no-binding' denied request: not today",
        description='Its answer, behind `pods "<name>" is forbidden: `.',
    )


class PodsDeleted(SomePods):
    """Somebody deletes Pods, whether they wait, are being bound or run."""

    after: Duration = Field(description="How long after its creation.")


class BoundByAnother(SomePods):
    """Another scheduler binds Pods that have no node yet: ours finds that out when it binds."""

    after: Duration = Field(description="How long after its creation.")


class NodeLoss(SomeNodes):
    """Nodes that are lost: tainted as unreachable and their Pods evicted, or removed with them."""

    count: int = Field(default=1, ge=1, description="How many at a time.")
    at: Duration = Field(description="When.")
    every: Duration | None = Field(default=None, gt=0, description="After how long again, the next ones; null: once.")
    lasts: Duration | None = Field(default=None, description="After how long they are back; null: never.")
    removed: bool = Field(default=False, description="Whether the Node is deleted, as when a cluster shrinks.")
    evicted_after: Duration = Field(
        default=parse_duration("5s"), description="When the Pods of an unreachable node are deleted."
    )


class NodeChurn(SomeNodes):
    """Nodes that are cordoned and uncordoned one after the other, as in a rolling update."""

    every: Duration = Field(gt=0, description="How often the next one is.")
    cordoned_for: Duration = Field(description="For how long.")


class ApiFault(Section):
    """Some of the scheduler's requests do not end well."""

    calls: list[Call] = Field(default=[], description="Which requests; empty: all.")
    answer: Literal["conflict", "throttled", "unavailable", "lost"] = Field(
        description="409; 429 with a Retry-After, which the client waits for; 503; or none, though it was done."
    )
    share: float = Field(default=1.0, gt=0, le=1, description="What share of them.")
    begins: Duration = Field(default=0, description="From when on.")
    lasts: Duration | None = Field(default=None, description="For how long; null: to the end.")
    takes: Duration = Field(default=parse_duration("1s"), description="How long the client waits for it.")


class WatchBreak(Section):
    """The scheduler hears of nothing, then lists everything anew."""

    at: Duration = Field(description="When.")
    every: Duration | None = Field(default=None, gt=0, description="After how long again; null: once.")
    lasts: Duration = Field(description="For how long.")


class Faults(Section):
    """What goes wrong in a workload, and when."""

    slow_plugins: list[SlowPlugin] = Field(default=[], description="Plugins that take their time.")
    bind_refused: list[BindRefused] = Field(default=[], description="Bindings that the API server refuses.")
    node_loss: list[NodeLoss] = Field(default=[], description="Nodes that are lost.")
    node_churn: list[NodeChurn] = Field(default=[], description="Nodes that are cordoned for a while.")
    pods_deleted: list[PodsDeleted] = Field(default=[], description="Pods that somebody deletes.")
    bound_by_another: list[BoundByAnother] = Field(default=[], description="Pods that another scheduler binds.")
    api: list[ApiFault] = Field(default=[], description="Requests of the scheduler that do not end well.")
    watch_breaks: list[WatchBreak] = Field(default=[], description="When the scheduler hears of nothing.")
