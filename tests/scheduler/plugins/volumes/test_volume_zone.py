"""VolumeZone: where volumes say they are, Pods go."""

from podtrail_scheduler.framework.status import SKIP
from podtrail_scheduler.objects import (
    ZONE,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Volume,
)
from podtrail_scheduler.plugins.volume_zone import VolumeZone

from tests.scheduler.plugins.cluster import Cluster

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
POD = Pod("p", uid="p", volumes=(Volume("data", claim_name="data"),))
CLAIM = PersistentVolumeClaim("data", volume_name="pv")
ELSEWHERE = "node(s) had no available volume zone"


def test_an_invalid_zone_label_is_ignored(cluster: Cluster) -> None:
    cluster.have(CLAIM, PersistentVolume("pv", labels={ZONE: "a__"}))
    assert cluster.begin(VolumeZone(cluster.handle), POD)[1] == SKIP


def test_nodes_that_say_nothing_about_zones_are_not_asked(cluster: Cluster) -> None:
    cluster.have(CLAIM, PersistentVolume("pv", labels={ZONE: "a"}))
    cluster.node("bare")
    cluster.node("region", {"topology.kubernetes.io/region": "r"})
    assert cluster.refused(VolumeZone(cluster.handle), POD) == {"region": ELSEWHERE}
