"""The families of cases and how many each has."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from . import (
    alpha,
    claims,
    crowded,
    devices,
    extended,
    hints,
    mixed,
    nodes,
    queue,
    resources,
    sharing,
    spreading,
    volumes,
)


class Family(NamedTuple):
    """Makes a case of a plugin (or of all) from a generator of random numbers; None where cases are more than that."""

    make: Callable[[Random], nodes.Made] | None
    cases: int


FAMILIES: dict[str, Family] = {
    "SchedulingGates": Family(queue.scheduling_gates, 6),
    "PrioritySort": Family(queue.priority_sort, 6),
    "NodeName": Family(nodes.node_name, 2),
    "NodeUnschedulable": Family(nodes.node_unschedulable, 12),
    "sampling": Family(nodes.sampling, 6),
    "TaintToleration": Family(nodes.taint_toleration, 25),
    "NodeAffinity": Family(nodes.node_affinity, 30),
    "NodePorts": Family(resources.node_ports, 25),
    "NodeResourcesFit": Family(resources.node_resources_fit, 40),
    "NodeResourcesBalancedAllocation": Family(resources.balanced_allocation, 25),
    "ImageLocality": Family(resources.image_locality, 20),
    "PodTopologySpread": Family(spreading.pod_topology_spread, 50),
    "InterPodAffinity": Family(spreading.inter_pod_affinity, 50),
    "VolumeRestrictions": Family(volumes.volume_restrictions, 20),
    "NodeVolumeLimits": Family(volumes.node_volume_limits, 25),
    "VolumeBinding": Family(volumes.volume_binding, 40),
    "VolumeZone": Family(volumes.volume_zone, 20),
    "DynamicResources": Family(claims.dynamic_resources, 30),
    "devices": Family(devices.devices_in_detail, 40),
    "sharing": Family(sharing.shared_devices, 30),
    "alpha": Family(alpha.alpha, 40),
    "extended": Family(extended.extended_resources, 60),
    "DefaultPreemption": Family(queue.default_preemption, 50),
    "preemption": Family(queue.preemption_of_what_is_in_the_way, 30),
    "hints": Family(None, len(hints.scenarios())),
    "mixed": Family(mixed.small, 40),
    "crowded": Family(crowded.crowded, 60),
    "large": Family(mixed.large, 15),
    "changing": Family(None, 60),
}
