"""PodTopologySpread: how far domains may differ, and which of them is best."""

from typing import Any

from podtrail_scheduler.configuration.args import LIST_DEFAULTING, DefaultConstraint, PodTopologySpreadArgs
from podtrail_scheduler.objects import (
    HOSTNAME,
    ZONE,
    LabelSelector,
    OwnerReference,
    Pod,
    PodSelecting,
    TopologySpreadConstraint,
)
from podtrail_scheduler.plugins.topology_spread import PodTopologySpread

from tests.scheduler.plugins.refusal import refusal

NOT_SPREAD = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
WEB = LabelSelector({"app": "web"})


def constraint(key: str = ZONE, **fields: Any) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(**{"max_skew": 1, "topology_key": key, "label_selector": WEB, **fields})


def web(*constraints: TopologySpreadConstraint, name: str = "new", **fields: Any) -> Pod:
    return Pod(name, **{"uid": name, "labels": {"app": "web"}, "topology_spread": constraints, **fields})


def webs(name: str, count: int) -> tuple[Pod, ...]:
    return tuple(web(name=f"{name}-{index}") for index in range(count))


def domains(cluster: Any, **counts: int) -> None:
    """A zone, with a node of its name, for each; with so many matching Pods."""
    for name, count in counts.items():
        cluster.node(name, {ZONE: name, HOSTNAME: name}, *webs(name, count))


def refused(cluster: Any, pod: Pod, args: PodTopologySpreadArgs | None = None) -> dict[str, str]:
    answers = cluster.filtered(PodTopologySpread(cluster.handle, args), pod)
    assert answers is not None
    return {name: status.message for name, status in answers.items() if status is not None}


def test_listed_defaults_hold_for_pods_that_a_service_or_controller_selects(cluster: Any) -> None:
    domains(cluster, a=1, b=0)
    args = PodTopologySpreadArgs((DefaultConstraint(1, ZONE, "DoNotSchedule"),), LIST_DEFAULTING)
    owned = web(owner=OwnerReference("ReplicaSet", "web", "u", "apps/v1"))
    assert cluster.filtered(PodTopologySpread(cluster.handle, args), owned) is None
    cluster.have(PodSelecting("ReplicaSet", "web", "default", WEB), PodSelecting("Service", "web", "default", None))
    assert refused(cluster, owned, args) == {"a": NOT_SPREAD}
    assert cluster.filtered(PodTopologySpread(cluster.handle, args), web()) is None
    cluster.have(PodSelecting("Service", "web", "default", WEB))
    assert refused(cluster, web(), args) == {"a": NOT_SPREAD}


def test_own_constraints_of_any_kind_replace_the_defaults(cluster: Any) -> None:
    domains(cluster, a=1, b=0)
    cluster.have(PodSelecting("Service", "web", "default", WEB))
    args = PodTopologySpreadArgs((DefaultConstraint(1, ZONE, "DoNotSchedule"),), LIST_DEFAULTING)
    soft = web(constraint(when_unsatisfiable="ScheduleAnyway"))
    assert cluster.filtered(PodTopologySpread(cluster.handle, args), soft) is None


def test_pods_tried_on_and_taken_off_move_the_fewest(cluster: Any) -> None:
    domains(cluster, a=1, b=0)
    plugin, new = PodTopologySpread(cluster.handle), web(constraint())
    state = cluster.prefilter(plugin, new)
    a, b = cluster.nodes
    trial = state.clone()
    plugin.add_pod(trial, new, web(name="x"), b)
    assert plugin.filter(trial, new, a) is None
    plugin.remove_pod(trial, new, web(name="x"), b)
    assert refusal(plugin.filter(trial, new, a)).message == NOT_SPREAD
    plugin.remove_pod(trial, new, web(name="a-0"), a)
    assert plugin.filter(trial, new, a) is None
    assert refusal(plugin.filter(state, new, a)).message == NOT_SPREAD


def test_kubernetes_defaults_spread_the_pods_of_a_service_over_hosts_and_zones(cluster: Any) -> None:
    cluster.have(PodSelecting("Service", "web", "default", WEB))
    cluster.node("a1", {ZONE: "a", HOSTNAME: "a1"}, *webs("a1", 2))
    cluster.node("a2", {ZONE: "a", HOSTNAME: "a2"})
    cluster.node("b1", {ZONE: "b", HOSTNAME: "b1"})
    cluster.node("bare", {HOSTNAME: "bare"})
    # hosts ln(6) a Pod and 2, zones ln(5) a Pod and 4: 12.8, 9.2, 6 and 2
    assert cluster.scored(PodTopologySpread(cluster.handle), web()) == {"a1": 15, "a2": 46, "b1": 69, "bare": 100}
