"""Running the filters on a supposed state of the cluster, as preemption does."""

from collections.abc import Sequence

from podtrail_scheduler.objects import Pod

from .cycle_state import CycleState
from .node_info import NodeInfo
from .profile import Profile
from .status import Code, Status


def fits(profile: Profile, pod: Pod, node: NodeInfo, nodes: Sequence[NodeInfo]) -> Status | None:
    """The first refusal of `node` among `nodes`, None when `pod` fits."""
    state = CycleState()
    skipped = set()
    for prepared in profile.pre_filter:
        status = prepared.pre_filter(state, pod, nodes)
        if status is not None and status.code is Code.SKIP:
            skipped.add(prepared.name)
        elif status is not None:
            return status
    for plugin in profile.filter:
        if plugin.name not in skipped and (status := plugin.filter(state, pod, node)) is not None:
            return status
    return None
