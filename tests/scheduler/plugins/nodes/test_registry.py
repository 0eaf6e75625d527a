"""The plugins as configurations name them."""

from podtrail_scheduler.configuration.expansion import resolve
from podtrail_scheduler.configuration.features import FeatureGates
from podtrail_scheduler.configuration.load import check, read
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.plugins.registry import available, extension_points, make_profile

POINTS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {disabled: [{name: "*"}]}
    queueSort: {enabled: [{name: PrioritySort}]}
    preFilter: {enabled: [{name: NodeResourcesFit}]}
    filter: {enabled: [{name: NodeResourcesFit}]}
    preScore: {enabled: [{name: TaintToleration}]}
    score: {enabled: [{name: TaintToleration, weight: 4}]}
    bind: {enabled: [{name: DefaultBinder}]}
"""


def test_a_plugin_may_be_named_at_every_point_where_kube_schedulers_serves(handle: Handle) -> None:
    features = FeatureGates()
    configuration, source = read(POINTS, "file", features)
    check(configuration, features, source)
    [found] = resolve(configuration, extension_points(available()), features, source)
    profile = make_profile(handle, found, available())
    assert [each.name for each in profile.filter] == ["NodeResourcesFit"]
    assert [each.name for each in profile.score] == ["TaintToleration"]
    assert profile.weights["TaintToleration"] == 4
    assert profile.pre_filter == []
