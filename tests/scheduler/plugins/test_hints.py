"""Which events each plugin is hopeful about."""

from dataclasses import replace

import pytest
from podtrail_scheduler.framework.extension_points import EventsPlugin
from podtrail_scheduler.objects import Affinity, HostPort, Node, Pod, PodAffinityTerm, Taint
from podtrail_scheduler.plugins.inter_pod_affinity import InterPodAffinity
from podtrail_scheduler.plugins.node_affinity import NodeAffinity
from podtrail_scheduler.plugins.node_ports import NodePorts
from podtrail_scheduler.plugins.node_resources_fit import NodeResourcesFit
from podtrail_scheduler.plugins.node_unschedulable import NodeUnschedulable
from podtrail_scheduler.plugins.scheduling_gates import SchedulingGates
from podtrail_scheduler.plugins.taint_toleration import TaintToleration
from podtrail_scheduler.queueing.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_UPDATE,
    TARGET_POD_UPDATE,
    Happening,
    Hint,
)

SMALL = Node("n", allocatable={"cpu": 1000, "pods": 10})
LARGE = replace(SMALL, allocatable={"cpu": 4000, "pods": 10})
TAINTED = replace(LARGE, taints=(Taint("k"),))
CORDONED = replace(LARGE, unschedulable=True)
SSD = replace(LARGE, labels={"disk": "ssd"})
WANTS = Pod("a", requests={"cpu": 2000}, node_selector={"disk": "ssd"}, host_ports=(HostPort(80),))
WEB = Pod("w", node_name="n", labels={"app": "web"}, host_ports=(HostPort(80),))
NEAR_WEB = Pod("a", affinity=Affinity(pod_affinity=(PodAffinityTerm({"app": "web"}),)))
FAR_FROM_WEB = Pod("a", affinity=Affinity(pod_anti_affinity=(PodAffinityTerm({"app": "web"}),)))

ADD, UPDATE = NODE_ADD, NODE_UPDATE
COMES, GOES = ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE


@pytest.mark.parametrize(
    ("plugin", "pod", "happening", "hopeful"),
    [
        (NodeResourcesFit(), WANTS, Happening(ADD, None, LARGE), True),
        (NodeResourcesFit(), WANTS, Happening(ADD, None, SMALL), False),
        (NodeResourcesFit(), WANTS, Happening(UPDATE, SMALL, LARGE), True),
        (NodeResourcesFit(), WANTS, Happening(UPDATE, LARGE, TAINTED), False),
        (NodeResourcesFit(), WANTS, Happening(GOES, WEB, None), True),
        (NodeUnschedulable(), WANTS, Happening(UPDATE, CORDONED, LARGE), True),
        (NodeUnschedulable(), WANTS, Happening(UPDATE, LARGE, SSD), False),
        (TaintToleration(), WANTS, Happening(UPDATE, TAINTED, LARGE), True),
        (TaintToleration(), WANTS, Happening(ADD, None, TAINTED), False),
        (NodeAffinity(), WANTS, Happening(UPDATE, LARGE, SSD), True),
        (NodeAffinity(), WANTS, Happening(ADD, None, LARGE), False),
        (NodePorts(), WANTS, Happening(GOES, WEB, None), True),
        (NodePorts(), WANTS, Happening(GOES, replace(WEB, host_ports=()), None), False),
        (InterPodAffinity(), NEAR_WEB, Happening(COMES, None, WEB), True),
        (InterPodAffinity(), NEAR_WEB, Happening(COMES, None, replace(WEB, labels={})), False),
        (InterPodAffinity(), FAR_FROM_WEB, Happening(GOES, WEB, None), True),
        (InterPodAffinity(), FAR_FROM_WEB, Happening(GOES, replace(WEB, namespace="other"), None), False),
        (SchedulingGates(), Pod("a"), Happening(TARGET_POD_UPDATE, None, Pod("a")), True),
    ],
)
def test_a_plugin_is_hopeful_only_when_its_own_objection_may_be_gone(
    plugin: EventsPlugin, pod: Pod, happening: Happening, hopeful: bool
) -> None:
    [hint] = [each.hint for each in plugin.events_to_register() if each.event is happening.event]
    assert hint(pod, happening) is (Hint.QUEUE if hopeful else Hint.SKIP)
