"""Counts that are kept between attempts and changed in trials are those that counting anew gives."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import (
    HOSTNAME,
    ZONE,
    Affinity,
    LabelSelector,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from podtrail_scheduler.plugins.pod_affinity import InterPodAffinity
from podtrail_scheduler.plugins.topology_spread import PodTopologySpread
from podtrail_scheduler.runtime.node_table import NodeTable

KEYS = st.sampled_from((ZONE, HOSTNAME))
SELECTORS = st.sampled_from([LabelSelector({"app": app}) for app in "xyz"])
TERMS = st.builds(PodAffinityTerm, SELECTORS, KEYS)
PREFERRED = st.builds(WeightedPodAffinityTerm, st.integers(1, 100), TERMS)
SIDES = st.builds(PodAffinity, st.lists(TERMS, max_size=2).map(tuple), st.lists(PREFERRED, max_size=2).map(tuple))
CONSTRAINTS = st.builds(
    TopologySpreadConstraint,
    st.integers(1, 3),
    KEYS,
    st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
    SELECTORS,
    min_domains=st.none() | st.integers(1, 4),
)
PODS = st.builds(
    Pod,
    name=st.just("p"),
    labels=st.sampled_from("xyz").map(lambda app: {"app": app}),
    affinity=st.builds(Affinity, pod_affinity=SIDES, pod_anti_affinity=SIDES),
    topology_spread=st.lists(CONSTRAINTS, max_size=2, unique_by=lambda c: (c.topology_key, c.when_unsatisfiable)).map(
        tuple
    ),
)
CHANGES = st.lists(st.tuples(st.integers(0, 5), PODS), max_size=12)


def build(cluster: Any) -> None:
    for index in range(6):
        labels = {HOSTNAME: f"n{index}"} if index == 5 else {ZONE: "ab"[index % 2], HOSTNAME: f"n{index}"}
        cluster.node(f"n{index}", labels)


def answers(cluster: Any, plugin: Any, pod: Pod) -> tuple[Any, Any]:
    return cluster.filtered(plugin, pod), cluster.scored(plugin, pod)


@given(changes=CHANGES, asked=st.lists(PODS, min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_counts_kept_between_attempts_equal_fresh_ones(new_cluster: Any, changes: Any, asked: list[Pod]) -> None:
    for kind in (InterPodAffinity, PodTopologySpread):
        cluster = new_cluster()
        build(cluster)
        kept = kind(cluster.handle)
        for number, (index, pod) in enumerate(changes):
            node: NodeInfo = cluster.nodes[index % len(cluster.nodes)]
            node.add(pod.named(f"p{number}", f"p{number}").on(node.name))
            if number % 5 == 4:
                del cluster.nodes[index % len(cluster.nodes)]
            for new in asked:
                assert answers(cluster, kept, new) == answers(cluster, kind(cluster.handle), new)


@given(changes=CHANGES, new=PODS, tried=st.lists(st.tuples(st.integers(0, 5), PODS), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_trial_equals_counting_the_cluster_as_it_would_be(
    new_cluster: Any, changes: Any, new: Pod, tried: Any
) -> None:
    for kind in (InterPodAffinity, PodTopologySpread):
        cluster = new_cluster()
        build(cluster)
        for number, (index, pod) in enumerate(changes):
            cluster.nodes[index].add(pod.named(f"p{number}", f"p{number}").on(f"n{index}"))
        plugin = kind(cluster.handle)
        state = cluster.prefilter(plugin, new)
        if state is None:
            continue
        before = [plugin.filter(state, new, node) for node in cluster.nodes]
        trial = state.clone()
        for number, (index, pod) in enumerate(tried):
            other = pod.named(f"t{number}", f"t{number}").on(f"n{index}")
            cluster.nodes[index].add(other)
            plugin.add_pod(trial, new, other, cluster.nodes[index])
        fresh = cluster.prefilter(kind(cluster.handle), new)
        assert fresh is not None
        expected = [plugin.filter(fresh, new, node) for node in cluster.nodes]
        assert [plugin.filter(trial, new, node) for node in cluster.nodes] == expected
        for number, (index, pod) in enumerate(tried):
            other = pod.named(f"t{number}", f"t{number}").on(f"n{index}")
            cluster.nodes[index].remove(other)
            plugin.remove_pod(trial, new, other, cluster.nodes[index])
        assert [plugin.filter(trial, new, node) for node in cluster.nodes] == before
        assert [plugin.filter(state, new, node) for node in cluster.nodes] == before


@given(changes=CHANGES, asked=st.lists(PODS, min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_counts_that_follow_a_log_of_changes_equal_fresh_ones(new_cluster: Any, changes: Any, asked: list[Pod]) -> None:
    for kind in (InterPodAffinity, PodTopologySpread):
        cluster, table = new_cluster(), NodeTable()
        build(cluster)
        infos = {node.name: node for node in cluster.nodes}
        for node in cluster.nodes:
            table.put(node)
        kept = kind(cluster.handle)
        for number, (index, pod) in enumerate(changes):
            if number % 5 == 4 and len(infos) > 1:
                del infos[gone := list(infos)[index % len(infos)]]
                table.remove(gone)
            else:
                name = list(infos)[index % len(infos)]
                infos[name].add(pod.named(f"p{number}", f"p{number}").on(name))
                table.changed(name)
            cluster.nodes = table.infos
            for new in asked:
                assert answers(cluster, kept, new) == answers(cluster, kind(cluster.handle), new)
