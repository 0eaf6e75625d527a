"""The default profile: which plugins, in which order, with which weights (as kube-scheduler's)."""

from collections.abc import Sequence

from podtrail_scheduler.framework.extension_points import Plugin
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.profile import Enabled, Profile

from .balanced_allocation import BalancedAllocation
from .default_binder import DefaultBinder
from .image_locality import ImageLocality
from .inter_pod_affinity import InterPodAffinity
from .node_affinity import NodeAffinity
from .node_name import NodeName
from .node_ports import NodePorts
from .node_resources_fit import NodeResourcesFit
from .node_unschedulable import NodeUnschedulable
from .preemption import DefaultPreemption
from .priority_sort import PrioritySort
from .scheduling_gates import SchedulingGates
from .taint_toleration import TaintToleration

DEFAULT_SCHEDULER = "default-scheduler"


def default_profile(handle: Handle, additional: Sequence[Plugin] = ()) -> Profile:
    """The profile `default-scheduler`, with `additional` plugins behind the default ones, weight 1."""
    enabled = [
        Enabled(SchedulingGates(handle)),
        Enabled(PrioritySort(handle)),
        Enabled(NodeUnschedulable(handle)),
        Enabled(NodeName(handle)),
        Enabled(TaintToleration(handle), 3),
        Enabled(NodeAffinity(handle), 2),
        Enabled(NodePorts(handle)),
        Enabled(NodeResourcesFit(handle)),
        Enabled(InterPodAffinity(), 2),
        Enabled(DefaultPreemption(handle)),
        Enabled(BalancedAllocation(handle)),
        Enabled(ImageLocality(handle)),
        *(Enabled(plugin) for plugin in additional),
        Enabled(DefaultBinder(handle)),
    ]
    return Profile(DEFAULT_SCHEDULER, enabled)
