# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""Plugins that take their time for some Pods: the faults of a workload.

They refuse nothing and score every node alike, so they change when things happen and not what happens.
"""

from collections.abc import Callable, Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import PermitResult, Plugin
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Code, Status
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.workload import SlowPlugin

from .arrivals import kind_and_number
from .timeline import Timeline

Takes = Callable[[Pod], int]
"""For how many nanoseconds a Pod keeps the plugin busy; 0 for those it leaves alone."""
Spend = Callable[[int], None]
"""Lets nanoseconds pass while whoever calls it is busy."""


class SlowScore:
    """A Score plugin that asks somebody slow: the whole scheduler waits."""

    in_tree = True

    def __init__(self, name: str, spend: Spend, takes: Takes) -> None:
        self.name = name
        self._spend = spend
        self._takes = takes
        self._asked = ""

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips for the Pods it leaves alone."""
        self._asked = ""
        return None if self._takes(pod) else SKIP

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Takes the time of all nodes at the first one; 0 for every node."""
        if self._asked != pod.uid:
            self._asked = pod.uid
            self._spend(self._takes(pod))
        return 0


class SlowPermit:
    """A Permit plugin that has Pods wait: the binding cycle waits."""

    in_tree = True

    def __init__(self, name: str, handle: Handle, takes: Takes) -> None:
        self.name = name
        self._handle = handle
        self._takes = takes

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> PermitResult:
        """Waits for an approval that comes in time."""
        duration = self._takes(pod)
        if not duration:
            return PermitResult(None)
        self._handle.clock.spawn(self._allow(pod.uid, duration))
        return PermitResult(Status(Code.WAIT), 2 * duration)

    async def _allow(self, uid: str, duration: int) -> None:
        await self._handle.clock.sleep(duration)
        waiting = self._handle.waiting.get(uid)
        if waiting is not None:
            waiting.allow(self.name)


class SlowPreBind:
    """A PreBind plugin that prepares something slow, such as a volume: the binding cycle waits."""

    in_tree = True

    def __init__(self, name: str, handle: Handle, takes: Takes) -> None:
        self.name = name
        self._clock = handle.clock
        self._takes = takes

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Skips for the Pods it leaves alone."""
        return None if self._takes(pod) else SKIP

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Sleeps in virtual time for as long as the Pod takes."""
        await self._clock.sleep(self._takes(pod))
        return None


def make_slow_plugins(faults: Sequence[SlowPlugin], handle: Handle, timeline: Timeline) -> list[Plugin]:
    """Makes a plugin of each fault."""
    return [_make(fault, handle, timeline) for fault in faults]


def _make(fault: SlowPlugin, handle: Handle, timeline: Timeline) -> Plugin:
    match fault.extension_point:
        case "score":
            return SlowScore(fault.name, timeline.spend, _takes(fault))
        case "permit":
            return SlowPermit(fault.name, handle, _takes(fault))
        case "preBind":
            return SlowPreBind(fault.name, handle, _takes(fault))


def _takes(fault: SlowPlugin) -> Takes:
    def takes(pod: Pod) -> int:
        return fault.takes if fault.concerns(*kind_and_number(pod.name)) else 0

    return takes
