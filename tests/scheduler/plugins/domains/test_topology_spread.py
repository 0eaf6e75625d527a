"""PodTopologySpread: how far domains may differ, and which of them is best."""

from dataclasses import replace
from typing import Any

import pytest
from podtrail_scheduler.configuration.args import LIST_DEFAULTING, DefaultConstraint, PodTopologySpreadArgs
from podtrail_scheduler.framework.events import ActionType, EventResource, Happening, Hint
from podtrail_scheduler.objects import (
    HOSTNAME,
    ZONE,
    LabelSelector,
    Node,
    OwnerReference,
    Pod,
    PodSelecting,
    Taint,
    Toleration,
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


def test_a_domain_may_exceed_the_fewest_by_the_skew(cluster: Any) -> None:
    domains(cluster, a=2, b=1, c=0)
    assert refused(cluster, web(constraint(max_skew=2))) == {"a": NOT_SPREAD}
    assert refused(cluster, web(constraint(max_skew=1))) == {"a": NOT_SPREAD, "b": NOT_SPREAD}


def test_a_pod_that_is_not_selected_does_not_add_to_the_skew(cluster: Any) -> None:
    domains(cluster, a=1, b=0)
    assert refused(cluster, web(constraint(), labels={})) == {}


def test_every_constraint_must_hold(cluster: Any) -> None:
    cluster.node("a1", {ZONE: "a", HOSTNAME: "a1"}, *webs("a1", 1))
    cluster.node("a2", {ZONE: "a", HOSTNAME: "a2"})
    cluster.node("b1", {ZONE: "b", HOSTNAME: "b1"}, *webs("b1", 1))
    assert refused(cluster, web(constraint(), constraint(HOSTNAME))) == {"a1": NOT_SPREAD, "b1": NOT_SPREAD}


def test_a_node_without_the_label_is_refused_for_good_and_counts_nowhere(cluster: Any) -> None:
    domains(cluster, a=1, b=1)
    cluster.node("bare", {HOSTNAME: "bare"})
    assert refused(cluster, web(constraint())) == {"bare": NO_LABEL}


def test_pods_of_other_namespaces_and_pods_on_their_way_out_do_not_count(cluster: Any) -> None:
    leaving = web(name="leaving", deletion_timestamp=1)
    cluster.node("a", {ZONE: "a"}, leaving, web(name="other", namespace="other"))
    cluster.node("b", {ZONE: "b"})
    assert refused(cluster, web(constraint())) == {}


def test_an_empty_selector_counts_no_pod_but_the_new_one(cluster: Any) -> None:
    domains(cluster, a=5, b=0)
    assert refused(cluster, web(constraint(label_selector=LabelSelector()))) == {}


@pytest.mark.parametrize(("min_domains", "refusals"), [(None, {}), (2, {}), (3, {"a": NOT_SPREAD, "b": NOT_SPREAD})])
def test_with_too_few_domains_the_fewest_is_none_at_all(
    cluster: Any, min_domains: int | None, refusals: dict[str, str]
) -> None:
    domains(cluster, a=1, b=1)
    assert refused(cluster, web(constraint(min_domains=min_domains))) == refusals


def test_nodes_the_pod_cannot_use_count_only_when_affinity_is_ignored(cluster: Any) -> None:
    domains(cluster, a=1)
    cluster.node("b", {ZONE: "b", "disk": "hdd"})
    picky: dict[str, Any] = {"node_selector": {ZONE: "a"}}
    assert refused(cluster, web(constraint(), **picky)) == {}
    assert refused(cluster, web(constraint(node_affinity_policy="Ignore"), **picky)) == {"a": NOT_SPREAD}


def test_tainted_nodes_count_unless_taints_are_honored_and_not_tolerated(cluster: Any) -> None:
    domains(cluster, a=1)
    cluster.node("b", {ZONE: "b"})
    cluster.nodes[-1].node = replace(cluster.nodes[-1].node, taints=(Taint("k"),))
    honoring = constraint(node_taints_policy="Honor")
    assert refused(cluster, web(constraint())) == {"a": NOT_SPREAD}
    assert refused(cluster, web(honoring)) == {}
    assert refused(cluster, web(honoring, tolerations=(Toleration(operator="Exists"),))) == {"a": NOT_SPREAD}


def test_match_label_keys_compare_only_pods_of_the_same_value(cluster: Any) -> None:
    cluster.node("a", {ZONE: "a"}, web(name="old", labels={"app": "web", "hash": "1"}))
    cluster.node("b", {ZONE: "b"})
    new = web(constraint(match_label_keys=("hash", "absent")), labels={"app": "web", "hash": "2"})
    assert refused(cluster, new) == {}
    assert refused(cluster, replace(new, labels={"app": "web", "hash": "1"})) == {"a": NOT_SPREAD}


def test_filter_is_skipped_without_hard_constraints(cluster: Any) -> None:
    domains(cluster, a=1)
    assert (
        cluster.filtered(PodTopologySpread(cluster.handle), web(constraint(when_unsatisfiable="ScheduleAnyway")))
        is None
    )


def test_listed_defaults_hold_for_pods_that_a_service_or_controller_selects(cluster: Any) -> None:
    domains(cluster, a=1, b=0)
    args = PodTopologySpreadArgs((DefaultConstraint(1, ZONE, "DoNotSchedule"),), LIST_DEFAULTING)
    owned = web(owner=OwnerReference("ReplicaSet", "web", "u", "apps/v1"))
    assert cluster.filtered(PodTopologySpread(cluster.handle, args), owned) is None
    cluster.know(PodSelecting("ReplicaSet", "web", "default", WEB), PodSelecting("Service", "web", "default", None))
    assert refused(cluster, owned, args) == {"a": NOT_SPREAD}
    assert cluster.filtered(PodTopologySpread(cluster.handle, args), web()) is None
    cluster.know(PodSelecting("Service", "web", "default", WEB))
    assert refused(cluster, web(), args) == {"a": NOT_SPREAD}


def test_own_constraints_of_any_kind_replace_the_defaults(cluster: Any) -> None:
    domains(cluster, a=1, b=0)
    cluster.know(PodSelecting("Service", "web", "default", WEB))
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


def test_soft_constraints_favour_domains_with_fewer_pods(cluster: Any) -> None:
    domains(cluster, a=4, b=1, c=0)
    soft = constraint(when_unsatisfiable="ScheduleAnyway")
    # ln(3 + 2) a Pod: 6.4, 1.6 and 0, rounded and turned round
    assert cluster.scored(PodTopologySpread(cluster.handle), web(soft)) == {"a": 0, "b": 66, "c": 100}


def test_a_larger_skew_waters_differences_down(cluster: Any) -> None:
    domains(cluster, a=4, b=0)
    soft = constraint(when_unsatisfiable="ScheduleAnyway", max_skew=5)
    # 4 * ln(2 + 2) + 4 = 9.5 and 4
    assert cluster.scored(PodTopologySpread(cluster.handle), web(soft)) == {"a": 40, "b": 100}


def test_nodes_that_lack_a_label_of_the_pods_own_constraints_score_nothing(cluster: Any) -> None:
    domains(cluster, a=1, b=0)
    cluster.node("bare", {})
    soft = constraint(when_unsatisfiable="ScheduleAnyway")
    assert cluster.scored(PodTopologySpread(cluster.handle), web(soft)) == {"a": 0, "b": 100, "bare": 0}


def test_without_any_matching_pod_every_node_is_as_good(cluster: Any) -> None:
    domains(cluster, a=0, b=0)
    soft = constraint(when_unsatisfiable="ScheduleAnyway")
    assert cluster.scored(PodTopologySpread(cluster.handle), web(soft)) == {"a": 100, "b": 100}


def test_kubernetes_defaults_spread_the_pods_of_a_service_over_hosts_and_zones(cluster: Any) -> None:
    cluster.know(PodSelecting("Service", "web", "default", WEB))
    cluster.node("a1", {ZONE: "a", HOSTNAME: "a1"}, *webs("a1", 2))
    cluster.node("a2", {ZONE: "a", HOSTNAME: "a2"})
    cluster.node("b1", {ZONE: "b", HOSTNAME: "b1"})
    cluster.node("bare", {HOSTNAME: "bare"})
    # hosts ln(6) a Pod and 2, zones ln(5) a Pod and 4: 12.8, 9.2, 6 and 2
    assert cluster.scored(PodTopologySpread(cluster.handle), web()) == {"a1": 15, "a2": 46, "b1": 69, "bare": 100}


def test_only_zones_of_nodes_that_fit_weigh_but_all_pods_in_them_count(cluster: Any) -> None:
    cluster.node("a1", {ZONE: "a"}, *webs("a1", 3))
    cluster.node("a2", {ZONE: "a"})
    cluster.node("b1", {ZONE: "b"}, *webs("b1", 1))
    cluster.node("c1", {ZONE: "c"})
    soft = constraint(when_unsatisfiable="ScheduleAnyway")
    scores = cluster.scored(PodTopologySpread(cluster.handle), web(soft), cluster.nodes[1:3])
    assert scores == {"a2": 25, "b1": 100}  # ln(2 + 2) a Pod: 4.2 and 1.4


IN_A, IN_B, NOWHERE = Node("n", {ZONE: "a"}), Node("n", {ZONE: "b"}), Node("n")
RUNS = web(name="runs", node_name="a")
HARD = web(constraint())
TAINTS = web(constraint(node_taints_policy="Honor"))


@pytest.mark.parametrize(
    ("pod", "resource", "old", "new", "hopeful"),
    [
        (HARD, EventResource.ASSIGNED_POD, None, RUNS, True),
        (HARD, EventResource.ASSIGNED_POD, RUNS, None, True),
        (HARD, EventResource.ASSIGNED_POD, RUNS, replace(RUNS, labels={}), True),
        (HARD, EventResource.ASSIGNED_POD, RUNS, replace(RUNS, labels={"app": "web", "x": "y"}), False),
        (HARD, EventResource.ASSIGNED_POD, replace(RUNS, namespace="other"), None, False),
        (HARD, EventResource.ASSIGNED_POD, replace(RUNS, labels={}), None, False),
        (HARD, EventResource.TARGET_POD, HARD, replace(HARD, labels={}), True),
        (TAINTS, EventResource.TARGET_POD, TAINTS, replace(TAINTS, tolerations=(Toleration(),)), True),
        (HARD, EventResource.TARGET_POD, HARD, replace(HARD, tolerations=(Toleration(),)), False),
        (HARD, EventResource.NODE, None, IN_A, True),
        (HARD, EventResource.NODE, None, NOWHERE, False),
        (HARD, EventResource.NODE, IN_A, None, True),
        (HARD, EventResource.NODE, IN_A, IN_B, True),
        (HARD, EventResource.NODE, IN_A, NOWHERE, True),
        (HARD, EventResource.NODE, IN_A, replace(IN_A, taints=(Taint("k"),)), True),
        (HARD, EventResource.NODE, IN_A, replace(IN_A, labels={**IN_A.labels, "x": "y"}), False),
    ],
)
def test_an_event_is_worth_an_attempt_only_when_the_spread_may_have_changed(
    cluster: Any, pod: Pod, resource: EventResource, old: Any, new: Any, hopeful: bool
) -> None:
    plugin = PodTopologySpread(cluster.handle)
    [registration] = [each for each in plugin.events_to_register() if each.event.resource is resource]
    action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE_POD_LABEL
    happening = Happening(registration.event._replace(action=action), old, new)
    assert registration.hint(pod, happening) is (Hint.QUEUE if hopeful else Hint.SKIP)
