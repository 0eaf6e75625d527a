"""What the default plugins of kube-scheduler v1.37.1 serve, and reading a document to the end."""

from collections.abc import Mapping

from podtrail_scheduler.configuration.expansion import ProfileConfiguration, resolve
from podtrail_scheduler.configuration.features import FeatureGates
from podtrail_scheduler.configuration.load import check, read
from podtrail_scheduler.configuration.types import KubeSchedulerConfiguration

SERVES: Mapping[str, frozenset[str]] = {
    name: frozenset(points.split())
    for name, points in {
        "SchedulingGates": "pre_enqueue",
        "PrioritySort": "queue_sort",
        "NodeName": "pre_filter filter",
        "NodeUnschedulable": "pre_filter filter",
        "TaintToleration": "pre_filter filter pre_score score",
        "NodeAffinity": "pre_filter filter pre_score score",
        "NodePorts": "pre_filter filter",
        "NodeResourcesFit": "pre_filter filter pre_score score",
        "VolumeRestrictions": "pre_filter filter",
        "NodeVolumeLimits": "pre_filter filter",
        "VolumeBinding": "pre_filter filter reserve pre_bind pre_score score",
        "VolumeZone": "pre_filter filter",
        "PodTopologySpread": "pre_filter filter pre_score score",
        "InterPodAffinity": "pre_filter filter pre_score score",
        "DynamicResources": "pre_enqueue pre_filter filter post_filter reserve pre_bind score",
        "DefaultPreemption": "pre_enqueue post_filter",
        "NodeResourcesBalancedAllocation": "pre_score score",
        "ImageLocality": "score",
        "DefaultBinder": "bind",
        "NodeDeclaredFeatures": "pre_filter filter",
    }.items()
}


class Read:
    """Reads documents as the command does, all the way to profiles."""

    def __init__(self, features: FeatureGates) -> None:
        self.features = features
        self.warnings: list[str] = []

    def __call__(self, text: str, file: str = "scheduler.yaml") -> KubeSchedulerConfiguration:
        configuration, source = read(text, file, self.features)
        self.warnings = check(configuration, self.features, source)
        self.profiles: tuple[ProfileConfiguration, ...] = resolve(configuration, SERVES, self.features, source)
        return configuration
