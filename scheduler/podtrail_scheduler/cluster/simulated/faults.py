"""The slow plugins of a workload."""

from collections.abc import Sequence

from podtrail_scheduler.framework.extension_points import Plugin
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.plugins.slow import SlowPermit, SlowPreBind, SlowScore, Takes
from podtrail_scheduler.workload import SlowPlugin

from .arrivals import kind_and_number
from .timeline import Timeline


def make_slow_plugins(faults: Sequence[SlowPlugin], handle: Handle, timeline: Timeline) -> list[Plugin]:
    """A plugin for each fault."""
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
