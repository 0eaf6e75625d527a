"""InterPodAffinity: where Pods may be and are best near others, and away from them."""

from typing import Any

from podtrail_scheduler.objects import (
    Affinity,
    LabelSelector,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from podtrail_scheduler.plugins.pod_affinity import InterPodAffinity

from tests.scheduler.plugins.refusal import refusal

ZONE = "topology.kubernetes.io/zone"
NO_AFFINITY = "node(s) didn't match pod affinity rules"
NO_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
NO_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


def term(app: str, **fields: Any) -> PodAffinityTerm:
    return PodAffinityTerm(LabelSelector({"app": app}), **{"topology_key": ZONE, **fields})


def pod(name: str, app: str = "", **fields: Any) -> Pod:
    return Pod(name, uid=name, labels={"app": app} if app else {}, **fields)


def near(*terms: PodAffinityTerm, preferred: tuple[WeightedPodAffinityTerm, ...] = ()) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(terms, preferred))


def away(*terms: PodAffinityTerm, preferred: tuple[WeightedPodAffinityTerm, ...] = ()) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(terms, preferred))


def zones(cluster: Any, **pods: tuple[Pod, ...]) -> None:
    for name, there in pods.items():
        cluster.node(name, {ZONE: name, "host": name}, *there)


def refused(cluster: Any, affinity: Affinity, app: str = "", **fields: Any) -> dict[str, str]:
    answers = cluster.filtered(InterPodAffinity(cluster.handle), pod("new", app, affinity=affinity, **fields))
    return {name: status.message for name, status in (answers or {}).items() if status is not None}


def test_the_first_of_a_kind_may_go_wherever_the_label_is(cluster: Any) -> None:
    zones(cluster, a=(), b=())
    cluster.node("bare", {})
    assert refused(cluster, near(term("web")), app="web") == {"bare": NO_AFFINITY}


def test_adding_and_removing_pods_is_seen_and_undone(cluster: Any) -> None:
    zones(cluster, a=(pod("w", "web"),), b=())
    plugin, wants = InterPodAffinity(cluster.handle), pod("new", affinity=near(term("web")))
    state = cluster.prefilter(plugin, wants)
    a, b = cluster.nodes
    trial = state.clone()
    plugin.add_pod(trial, wants, pod("x", "web"), b)
    plugin.remove_pod(trial, wants, pod("w", "web"), a)
    assert plugin.filter(trial, wants, b) is None
    assert refusal(plugin.filter(trial, wants, a)).message == NO_AFFINITY
    plugin.remove_pod(trial, wants, pod("x", "web"), b)
    plugin.add_pod(trial, wants, pod("w", "web"), a)
    for each in (trial, state):
        assert plugin.filter(each, wants, a) is None
        assert refusal(plugin.filter(each, wants, b)).message == NO_AFFINITY
