"""What a plugin may use of the scheduler. The cluster as it was when the attempt began comes as arguments instead."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol, cast

from podtrail_scheduler.objects import ApiObject, Pod

from .aside import IN_PLACE, Aside
from .client import Client
from .clock import SchedulerClock
from .extending import Extenders
from .listers import Listers
from .node_info import NodeInfo
from .nominator import Nominator
from .trial import FilterTrial
from .waiting import WaitingPod

EventWriter = Callable[[ApiObject, ApiObject | None, str, str, str, str], None]
"""Object, related object, type (Normal or Warning), reason, action, note."""


def _no_events(regarding: ApiObject, related: ApiObject | None, kind: str, reason: str, action: str, note: str) -> None:
    """Writes no Event."""


def _activate_nobody(pods: Sequence[Pod]) -> None:
    """Does nothing: without a queue no Pod can be tried again sooner."""


class PluginMetrics(Protocol):
    """What plugins report to metrics."""

    def preemption_attempt(self) -> None:
        """PostFilter looked for victims."""
        ...

    def preemption_victims(self, number: int) -> None:
        """`number` Pods are deleted to make room for one."""
        ...

    def claim_creation(self, result: str) -> None:
        """A claim for extended resources was to be created; `result` is success or failure."""
        ...


class _NoMetrics:
    def preemption_attempt(self) -> None:
        """Does nothing."""

    def preemption_victims(self, number: int) -> None:
        """Does nothing."""

    def claim_creation(self, result: str) -> None:
        """Does nothing."""


@dataclass
class Handle:
    """Given to each plugin when it is made; each profile has its own."""

    clock: SchedulerClock
    client: Client
    nodes: Callable[[], Sequence[NodeInfo]]
    listers: Listers = field(default_factory=Listers)
    """Volumes, claims, budgets, namespaces and the like."""
    nominator: Nominator = field(default_factory=Nominator)
    waiting: dict[str, WaitingPod] = field(default_factory=dict)
    """Pods that Permit has told to wait, by uid."""
    trial: FilterTrial = field(default_factory=FilterTrial)
    """The profile's filters on a supposed state of the cluster."""
    event: EventWriter = _no_events
    """Writes an Event of this profile's scheduler, in the background."""
    activate: Callable[[Sequence[Pod]], None] = _activate_nobody
    """Has Pods that wait in the queue be tried again at once."""
    extenders: Extenders | None = None
    """Who else has a say in preemption."""
    async_preemption: bool = True
    """The feature gate `SchedulerAsyncPreemption`: victims are deleted while other Pods are scheduled."""
    pre_enqueue_pod_status: bool = False
    """The feature gate `SchedulerPreEnqueuePodStatus`: what PreEnqueue refuses is told in the Pod's status."""
    aside: Aside = IN_PLACE
    """Where plugins of others run when `trial` calls them."""
    measures: PluginMetrics = field(default_factory=_NoMetrics)
    """Where plugins count what they do."""

    def for_others(self) -> "Handle":
        """Return it for one plugin of others: of its own, and with nodes and objects that it can't change."""
        nodes = self.nodes
        return replace(
            self,
            nodes=lambda: tuple([node.view for node in nodes()]),
            listers=self.listers.view(),
            waiting=cast("dict[str, WaitingPod]", MappingProxyType(self.waiting)),
            event=lambda *about: self.event(*about),
            activate=lambda pods: self.activate(pods),
        )
