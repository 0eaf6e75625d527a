"""Which events each plugin about nodes registers, and which of them give it hope."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from podtrail_scheduler.configuration.args import NodeAffinityArgs
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Happening, Hint
from podtrail_scheduler.framework.extension_points import EventsPlugin
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.objects import ApiObject, HostPort, Node, Pod, Taint, Toleration
from podtrail_scheduler.plugins.node_affinity import NodeAffinity
from podtrail_scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from podtrail_scheduler.plugins.node_name import NodeName
from podtrail_scheduler.plugins.node_ports import NodePorts
from podtrail_scheduler.plugins.node_resources_fit import NodeResourcesFit
from podtrail_scheduler.plugins.node_unschedulable import NodeUnschedulable
from podtrail_scheduler.plugins.preemption import DefaultPreemption
from podtrail_scheduler.plugins.scheduling_gates import SchedulingGates
from podtrail_scheduler.plugins.taint_toleration import TaintToleration

SMALL = Node("n", allocatable={"cpu": 1000, "pods": 10})
LARGE = replace(SMALL, allocatable={"cpu": 4000, "pods": 10})
LARGER = replace(SMALL, allocatable={"cpu": 5000, "pods": 10})
MORE_MEMORY = replace(LARGE, allocatable={"cpu": 4000, "pods": 10, "memory": 5})
MORE_PODS = replace(LARGE, allocatable={"cpu": 4000, "pods": 20})
TAINTED = replace(LARGE, taints=(Taint("k"),))
CORDONED = replace(LARGE, unschedulable=True)
SSD = replace(LARGE, labels={"disk": "ssd"})
SSD_AND_MORE = replace(LARGE, labels={"disk": "ssd", "more": ""})
FEATURED = replace(LARGE, declared_features=frozenset(("F",)))
WANTS = Pod("a", requests={"cpu": 2000}, node_selector={"disk": "ssd"}, host_ports=(HostPort(80),))
BEARS = replace(WANTS, tolerations=(Toleration(operator="Exists"),))
NEEDS = replace(WANTS, required_node_features=frozenset(("F",)))
WEB = Pod("w", node_name="n", requests={"cpu": 500}, host_ports=(HostPort(80, host_ip="10.0.0.1"),))
SHRUNK = replace(WEB, requests={"cpu": 400})
UNBOUND = replace(WEB, node_name="")

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
LABELS = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
TAINTS = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
ALLOCATABLE = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE)
FEATURES = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_DECLARED_FEATURE)
POD_GONE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
POD_SHRINKS = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN)
ITSELF_SHRINKS = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_SCALE_DOWN)
ITS_TOLERATIONS = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_TOLERATION)
ITS_GATES = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
ITS_LABELS = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_LABEL)


def hope(plugin: EventsPlugin, event: ClusterEvent, old: ApiObject | None, new: ApiObject | None) -> bool | None:
    """What the plugin says to an event; None when it has not asked for such."""
    for registration in plugin.events_to_register():
        wanted = registration.event
        if wanted.resource is event.resource and wanted.action & event.action:
            return registration.hint(WANTS, Happening(event, old, new)) is Hint.QUEUE
    return None


@pytest.mark.parametrize(
    ("kind", "event", "old", "new", "hopeful"),
    [
        (NodeResourcesFit, NODE_ADD, None, LARGE, True),
        (NodeResourcesFit, NODE_ADD, None, SMALL, False),
        (NodeResourcesFit, ALLOCATABLE, SMALL, LARGE, True),
        (NodeResourcesFit, ALLOCATABLE, LARGE, LARGER, True),
        (NodeResourcesFit, ALLOCATABLE, LARGE, MORE_MEMORY, False),
        (NodeResourcesFit, ALLOCATABLE, LARGE, MORE_PODS, True),
        (NodeResourcesFit, TAINTS, TAINTED, LARGE, None),
        (NodeResourcesFit, POD_GONE, WEB, None, True),
        (NodeResourcesFit, POD_GONE, UNBOUND, None, False),
        (NodeResourcesFit, POD_GONE, replace(UNBOUND, nominated_node_name="n"), None, True),
        (NodeResourcesFit, POD_SHRINKS, WEB, SHRUNK, True),
        (NodeResourcesFit, POD_SHRINKS, SHRUNK, WEB, False),
        (NodeResourcesFit, POD_SHRINKS, replace(WEB, requests={"memory": 2}), replace(WEB, requests={}), False),
        (NodeResourcesFit, ITSELF_SHRINKS, WANTS, WANTS, True),
        (NodeUnschedulable, TAINTS, CORDONED, LARGE, True),
        (NodeUnschedulable, TAINTS, LARGE, SSD, False),
        (NodeUnschedulable, NODE_ADD, None, CORDONED, False),
        (NodeUnschedulable, NODE_ADD, None, LARGE, True),
        (NodeUnschedulable, ITS_TOLERATIONS, WANTS, BEARS, True),
        (NodeUnschedulable, ITS_TOLERATIONS, WANTS, WANTS, False),
        (TaintToleration, TAINTS, TAINTED, LARGE, True),
        (TaintToleration, TAINTS, LARGE, TAINTED, False),
        (TaintToleration, TAINTS, LARGE, CORDONED, False),
        (TaintToleration, NODE_ADD, None, TAINTED, False),
        (TaintToleration, ITS_TOLERATIONS, WANTS, BEARS, True),
        (NodeAffinity, LABELS, LARGE, SSD, True),
        (NodeAffinity, LABELS, SSD, SSD_AND_MORE, False),
        (NodeAffinity, NODE_ADD, None, LARGE, False),
        (NodeAffinity, NODE_ADD, None, SSD, True),
        (NodeAffinity, TAINTS, TAINTED, SSD, None),
        (NodePorts, POD_GONE, WEB, None, True),
        (NodePorts, POD_GONE, replace(WEB, host_ports=()), None, False),
        (NodePorts, POD_GONE, replace(WEB, host_ports=(HostPort(80, "UDP"),)), None, False),
        (NodePorts, POD_GONE, UNBOUND, None, False),
        (NodePorts, NODE_ADD, None, SMALL, True),
        (NodeName, NODE_ADD, None, SMALL, True),
        (NodeDeclaredFeatures, FEATURES, LARGE, FEATURED, True),
        (NodeDeclaredFeatures, NODE_ADD, None, LARGE, True),
        (NodeDeclaredFeatures, ITS_LABELS, WANTS, NEEDS, True),
        (NodeDeclaredFeatures, ITS_LABELS, WANTS, BEARS, False),
        (SchedulingGates, ITS_GATES, WANTS, WANTS, True),
        (SchedulingGates, ITS_LABELS, WANTS, WANTS, None),
        (DefaultPreemption, POD_GONE, WEB, None, False),
    ],
)
def test_an_event_gives_hope_when_it_may_change_the_plugins_mind(
    handle: Handle,
    kind: Callable[[Handle], EventsPlugin],
    event: ClusterEvent,
    old: ApiObject | None,
    new: ApiObject | None,
    hopeful: bool | None,
) -> None:
    assert hope(kind(handle), event, old, new) is hopeful


def test_a_node_that_the_added_affinity_forbids_gives_no_hope(handle: Handle) -> None:
    terms = [{"matchExpressions": [{"key": "more", "operator": "Exists"}]}]
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    plugin = NodeAffinity(handle, NodeAffinityArgs(added))
    assert hope(plugin, NODE_ADD, None, SSD) is False
    assert hope(plugin, NODE_ADD, None, SSD_AND_MORE) is True
