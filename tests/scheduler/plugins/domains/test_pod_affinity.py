"""InterPodAffinity: where Pods may be and are best near others, and away from them."""

from dataclasses import replace
from typing import Any

import pytest
from podtrail_scheduler.configuration.args import InterPodAffinityArgs
from podtrail_scheduler.framework.events import ActionType, EventResource, Happening, Hint
from podtrail_scheduler.objects import (
    Affinity,
    LabelSelector,
    Namespace,
    Node,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Requirement,
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


def test_required_affinity_wants_a_matching_pod_in_the_domain(cluster: Any) -> None:
    zones(cluster, a=(pod("w", "web"),), b=())
    assert refused(cluster, near(term("web"))) == {"b": NO_AFFINITY}


def test_one_pod_must_match_all_affinity_terms(cluster: Any) -> None:
    both = replace(pod("both"), labels={"app": "web", "tier": "front"})
    zones(cluster, a=(pod("w", "web"), replace(pod("f"), labels={"tier": "front"})), b=(both,))
    front = PodAffinityTerm(LabelSelector({"tier": "front"}), ZONE)
    assert refused(cluster, near(term("web"), front)) == {"a": NO_AFFINITY}


def test_the_first_of_a_kind_may_go_wherever_the_label_is(cluster: Any) -> None:
    zones(cluster, a=(), b=())
    cluster.node("bare", {})
    assert refused(cluster, near(term("web")), app="web") == {"bare": NO_AFFINITY}


def test_a_stranger_to_its_own_terms_is_not_the_first_of_a_kind(cluster: Any) -> None:
    zones(cluster, a=())
    assert refused(cluster, near(term("web")), app="db") == {"a": NO_AFFINITY}


def test_anti_affinity_keeps_away_from_any_match_but_not_from_nodes_without_the_label(cluster: Any) -> None:
    zones(cluster, a=(pod("w", "web"),), b=(pod("d", "db"),), c=())
    cluster.node("bare", {}, pod("x", "web"))
    assert refused(cluster, away(term("web"), term("db"))) == {"a": NO_ANTI_AFFINITY, "b": NO_ANTI_AFFINITY}


def test_running_pods_keep_others_away_too(cluster: Any) -> None:
    zones(cluster, a=(pod("w", "web", affinity=away(term("noisy"))),), b=())
    assert refused(cluster, Affinity(), app="noisy") == {"a": NO_EXISTING}


def test_filter_is_skipped_when_no_term_concerns_the_pod(cluster: Any) -> None:
    zones(cluster, a=(pod("w", "web", affinity=away(term("noisy"))),), b=())
    assert cluster.filtered(InterPodAffinity(cluster.handle), pod("new", "quiet")) is None


@pytest.mark.parametrize(
    ("fields", "kept_out"),
    [
        ({}, False),
        ({"namespaces": frozenset(("other",))}, True),
        ({"namespace_selector": LabelSelector({"team": "x"})}, True),
        ({"namespace_selector": LabelSelector({"team": "y"})}, False),
        ({"namespace_selector": LabelSelector()}, True),
    ],
    ids=["own namespace", "listed", "selected by label", "not selected", "every namespace"],
)
def test_a_term_means_the_pods_of_its_namespaces(cluster: Any, fields: dict[str, Any], kept_out: bool) -> None:
    cluster.know(Namespace("other", {"team": "x"}), Namespace("default"))
    zones(cluster, a=(pod("w", "web", namespace="other"),))
    assert bool(refused(cluster, away(term("web", **fields)))) is kept_out


def test_a_running_pods_namespace_selector_is_asked_for_the_namespace_of_the_new_pod(cluster: Any) -> None:
    selective = term("web", namespace_selector=LabelSelector({"team": "x"}))
    cluster.know(Namespace("default", {"team": "x"}))
    zones(cluster, a=(pod("w", namespace="other", affinity=away(selective)),))
    assert refused(cluster, Affinity(), app="web") == {"a": NO_EXISTING}


def test_a_term_without_a_selector_matches_no_pod(cluster: Any) -> None:
    zones(cluster, a=(pod("w", "web"),))
    assert refused(cluster, away(PodAffinityTerm(None, ZONE))) == {}


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


def test_preferred_terms_of_the_pod_and_of_running_pods_add_up(cluster: Any) -> None:
    likes = pod("l", affinity=near(preferred=(WeightedPodAffinityTerm(30, term("new")),)))
    needs = pod("n", affinity=near(term("new")))
    loathes = pod("h", affinity=away(preferred=(WeightedPodAffinityTerm(20, term("new")),)))
    zones(cluster, a=(pod("w", "web"),), b=(likes,), c=(needs,), d=(loathes,))
    new = pod("x", "new", affinity=near(preferred=(WeightedPodAffinityTerm(10, term("web")),)))
    scores = cluster.scored(InterPodAffinity(cluster.handle), new)
    assert scores == {"a": 60, "b": 100, "c": 42, "d": 0}  # 10, 30, 1 and -20, stretched to 0..100


def test_scoring_is_skipped_when_nothing_is_worth_anything(cluster: Any) -> None:
    zones(cluster, a=(pod("w", "web"),))
    assert cluster.scored(InterPodAffinity(cluster.handle), pod("new", "web")) is None


def test_preferences_of_running_pods_may_be_ignored_for_pods_without_any(cluster: Any) -> None:
    likes = pod("l", affinity=near(preferred=(WeightedPodAffinityTerm(30, term("new")),)))
    zones(cluster, a=(likes,), b=())
    args = InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)
    assert cluster.scored(InterPodAffinity(cluster.handle, args), pod("x", "new")) is None


def test_the_weight_of_required_terms_of_running_pods_may_be_nothing(cluster: Any) -> None:
    zones(cluster, a=(pod("n", affinity=near(term("new"))),), b=())
    assert cluster.scored(InterPodAffinity(cluster.handle), pod("x", "new")) == {"a": 100, "b": 0}
    args = InterPodAffinityArgs(hard_pod_affinity_weight=0)
    assert cluster.scored(InterPodAffinity(cluster.handle, args), pod("x", "new")) is None


RUNS = replace(pod("w", "web"), node_name="a")
IN_A, IN_B, NOWHERE = Node("n", {ZONE: "a"}), Node("n", {ZONE: "b"}), Node("n")


@pytest.mark.parametrize(
    ("affinity", "resource", "old", "new", "hopeful"),
    [
        (near(term("web")), EventResource.ASSIGNED_POD, None, RUNS, True),
        (near(term("db")), EventResource.ASSIGNED_POD, None, RUNS, False),
        (near(term("web")), EventResource.ASSIGNED_POD, None, replace(RUNS, node_name=""), False),
        (near(term("web")), EventResource.ASSIGNED_POD, replace(RUNS, labels={}), RUNS, True),
        (near(term("web")), EventResource.ASSIGNED_POD, RUNS, RUNS, False),
        (away(term("web")), EventResource.ASSIGNED_POD, RUNS, None, True),
        (away(term("web")), EventResource.ASSIGNED_POD, RUNS, replace(RUNS, labels={}), True),
        (away(term("web")), EventResource.ASSIGNED_POD, None, RUNS, False),
        (Affinity(), EventResource.ASSIGNED_POD, replace(RUNS, affinity=away(term("new"))), None, True),
        (near(term("web")), EventResource.NODE, None, IN_A, True),
        (near(term("web")), EventResource.NODE, None, NOWHERE, False),
        (near(term("web")), EventResource.NODE, IN_A, IN_B, True),
        (near(term("web")), EventResource.NODE, IN_A, NOWHERE, False),
        (away(term("web")), EventResource.NODE, None, NOWHERE, True),
        (away(term("web")), EventResource.NODE, IN_A, NOWHERE, True),
        (away(term("web")), EventResource.NODE, NOWHERE, IN_A, False),
    ],
)
def test_an_event_is_worth_an_attempt_only_when_a_term_may_hold_now(
    cluster: Any, affinity: Affinity, resource: EventResource, old: Any, new: Any, hopeful: bool
) -> None:
    plugin = InterPodAffinity(cluster.handle)
    [registration] = [each for each in plugin.events_to_register() if each.event.resource is resource]
    action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE_POD_LABEL
    happening = Happening(registration.event._replace(action=action), old, new)
    assert registration.hint(pod("x", "new", affinity=affinity), happening) is (Hint.QUEUE if hopeful else Hint.SKIP)


def test_terms_may_use_expressions(cluster: Any) -> None:
    zones(cluster, a=(pod("w", "web"),), b=(pod("d", "db"),), c=())
    selector = LabelSelector(match_expressions=(Requirement("app", "In", ("web", "db")),))
    assert refused(cluster, near(PodAffinityTerm(selector, ZONE))) == {"c": NO_AFFINITY}
