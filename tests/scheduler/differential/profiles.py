"""The profiles of the cases: one for each plugin, in which it decides alone, and kube-scheduler's own."""

from typing import Any

DEFAULT = "default-scheduler"

_ZONE = "topology.kubernetes.io/zone"
_SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 60, "score": 10}, {"utilization": 100, "score": 3}]
_SPREAD = [
    {"maxSkew": 1, "topologyKey": _ZONE, "whenUnsatisfiable": "ScheduleAnyway"},
    {"maxSkew": 2, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"},
]

_WITNESS = "ImageLocality"
"""Rates every node, by 0 where no image is there: so that nodes that fit are told where no other plugin scores."""

_PLUGINS: dict[str, tuple[str, ...]] = {
    "scheduling-gates": ("SchedulingGates", _WITNESS),
    "priority-sort": (_WITNESS,),
    "node-name": ("NodeName", _WITNESS),
    "node-unschedulable": ("NodeUnschedulable", _WITNESS),
    "sampling": ("NodeUnschedulable", _WITNESS),
    "sampling-60": ("NodeUnschedulable", _WITNESS),
    "taint-toleration": ("TaintToleration",),
    "node-affinity": ("NodeAffinity",),
    "node-affinity-added": ("NodeAffinity",),
    "node-ports": ("NodePorts", _WITNESS),
    "fit-least": ("NodeResourcesFit",),
    "fit-most": ("NodeResourcesFit",),
    "fit-ratio": ("NodeResourcesFit",),
    "fit-ignored": ("NodeResourcesFit",),
    "balanced": ("NodeResourcesBalancedAllocation",),
    "balanced-extended": ("NodeResourcesBalancedAllocation",),
    "image-locality": ("ImageLocality",),
    "spread": ("PodTopologySpread",),
    "spread-listed": ("PodTopologySpread",),
    "affinity": ("InterPodAffinity",),
    "affinity-hard": ("InterPodAffinity",),
    "affinity-ignoring": ("InterPodAffinity",),
    "volume-restrictions": ("VolumeRestrictions", _WITNESS),
    "volume-limits": ("NodeVolumeLimits", _WITNESS),
    "volume-binding": ("VolumeBinding", _WITNESS),
    "volume-zone": ("VolumeZone", _WITNESS),
    "dynamic-resources": ("DynamicResources", _WITNESS),
    "extended": ("NodeResourcesFit", "DynamicResources", _WITNESS),
    "extended-scored": ("NodeResourcesFit", "DynamicResources"),
    "preemption": ("NodeResourcesFit", "DefaultPreemption"),
    "preemption-wide": (
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "PodTopologySpread",
        "InterPodAffinity",
        "DefaultPreemption",
    ),
}

_ACCELERATORS = [{"name": "cpu", "weight": 1}, {"name": "example.com/accelerator", "weight": 3}]

_ARGS: dict[str, dict[str, dict[str, Any]]] = {
    "extended-scored": {
        "NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated", "resources": _ACCELERATORS}},
    },
    "node-affinity-added": {
        "NodeAffinity": {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd", "hdd"]}]}
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 7, "preference": {"matchExpressions": [{"key": "gen", "operator": "Exists"}]}}
                ],
            }
        }
    },
    "fit-most": {
        "NodeResourcesFit": {
            "scoringStrategy": {
                "type": "MostAllocated",
                "resources": [{"name": "cpu", "weight": 3}, {"name": "example.com/gpu", "weight": 5}],
            }
        }
    },
    "fit-ratio": {
        "NodeResourcesFit": {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 2}],
                "requestedToCapacityRatio": {"shape": _SHAPE},
            }
        }
    },
    "fit-ignored": {
        "NodeResourcesFit": {
            "ignoredResources": ["example.com/fpga"],
            "ignoredResourceGroups": ["ignored.example"],
            "scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "memory", "weight": 1}]},
        }
    },
    "balanced-extended": {
        "NodeResourcesBalancedAllocation": {
            "resources": [
                {"name": "cpu", "weight": 1},
                {"name": "memory", "weight": 1},
                {"name": "example.com/gpu", "weight": 1},
            ]
        }
    },
    "spread-listed": {"PodTopologySpread": {"defaultingType": "List", "defaultConstraints": _SPREAD}},
    "affinity-hard": {"InterPodAffinity": {"hardPodAffinityWeight": 50}},
    "affinity-ignoring": {"InterPodAffinity": {"ignorePreferredTermsOfExistingPods": True}},
    "volume-binding": {"VolumeBinding": {"bindTimeoutSeconds": 1}},
}

_SAMPLED = {"sampling": 0, "sampling-60": 60}
"""percentageOfNodesToScore, 0 for adaptive; all nodes in the other profiles."""

NAMES = (DEFAULT, *_PLUGINS)


def profile(name: str) -> dict[str, Any]:
    """The entry of `profiles` in a KubeSchedulerConfiguration."""
    if name == DEFAULT:
        return {"schedulerName": name, "pluginConfig": _plugin_config({"VolumeBinding": {"bindTimeoutSeconds": 1}})}
    enabled = [{"name": plugin} for plugin in ("PrioritySort", *_PLUGINS[name], "DefaultBinder")]
    return {
        "schedulerName": name,
        "percentageOfNodesToScore": _SAMPLED.get(name, 100),
        "plugins": {"multiPoint": {"enabled": enabled, "disabled": [{"name": "*"}]}},
        "pluginConfig": _plugin_config(_ARGS.get(name, {})),
    }


def configuration() -> dict[str, Any]:
    """A KubeSchedulerConfiguration with all profiles, in which every node is looked at."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
        "profiles": [profile(name) for name in NAMES],
    }


def _plugin_config(args: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": name, "args": value} for name, value in args.items()]
