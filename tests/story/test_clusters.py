"""Pods of several clusters that meet at one gateway: each has its own story, and says of which cluster it is."""

import json

import pytest

from podtrail.otlp import Group, Link, change_resource, encode_span, frame, resource_header, scope_header
from podtrail.otlp.decisions import decision_line
from podtrail.story import Library, WhyQuestion, answer_query, selector, summarize, to_json
from podtrail.story.decision_lines import read_decision
from podtrail.testing.attempts import MS, START, MadeAttempt, no_room

NOW = START + 60_000 * MS
EAST, WEST = "east", "arn:aws:eks:eu-west-1:1234:cluster/west"


def attempt(cluster: str, **changes: object) -> MadeAttempt:
    return no_room(**({"uid": f"uid-of-{cluster}", "cluster": cluster} | changes))


def library(*attempts: MadeAttempt) -> Library:
    held = Library()
    for each in attempts:
        held.decide("traces", each.batch())
        held.keep(each.groups(), each.start)
    return held


def ask(held: Library, **query: str) -> dict[str, object]:
    return answer_query(held, WhyQuestion.read(query), NOW, live=True).as_json()


def first(told: dict[str, object]) -> str:
    lines = told["lines"]
    assert isinstance(lines, list), told
    return "".join(piece["text"] for piece in lines[0])


def test_pods_of_one_name_in_two_clusters_are_two_and_each_says_of_which() -> None:
    held = library(attempt(EAST), attempt(WEST))
    assert {(pod.cluster, pod.tries) for pod in held.stories.pods()} == {(EAST, 1), (WEST, 1)}
    assert all(held.stories.namesakes(pod) == [] for pod in held.stories.pods())
    assert held.fate(attempt(EAST).trace_id).label == "attempt 1 of default/web-0 in cluster east"
    assert first(ask(held, pod="uid-of-east")).startswith("default/web-0 in cluster east is Pending")


def test_pods_without_a_uid_are_told_apart_by_their_clusters() -> None:
    here, there = (attempt(cluster, uid="", number=n) for n, cluster in enumerate((EAST, WEST), 1))
    held = library(here, there, attempt("", uid="", number=3))
    assert {pod.key: pod.tries for pod in held.stories.pods()} == {
        "east:default/web-0": 1,
        f"{WEST}:default/web-0": 2,
        "default/web-0": 3,
    }
    assert first(ask(held, pod=f"{WEST}:default/web-0")).startswith("default/web-0 in cluster arn:aws")


def test_the_kubelets_uids_of_static_pods_which_equal_nodes_share_are_no_one_pod() -> None:
    held = Library()
    for cluster in (EAST, WEST):
        span = encode_span(
            trace_id=cluster[:1].encode() * 16,
            span_id=b"12345678",
            name="syncPod",
            start=START,
            end=START + MS,
            attributes={"k8s.pod.uid": "static", "k8s.namespace.name": "kube-system", "k8s.pod.name": "etcd-node-1"},
        )
        resource = resource_header({"service.name": "kubelet", "host.name": "node-1", "k8s.cluster.name": cluster})
        held.keep([Group(resource, scope_header("kubelet"), cluster[:1].encode() * 16, frame([span]), 1)] * 2, START)
    assert {(pod.key, pod.cluster) for pod in held.stories.pods()} == {("static", EAST), (f"{WEST}:static", WEST)}


@pytest.mark.parametrize("cluster", ["", EAST])
def test_one_cluster_alone_is_not_spoken_of(cluster: str) -> None:
    held = library(attempt(cluster), attempt(cluster, uid="made-anew", start=START + MS, result="Error", refusals=()))
    told = ask(held, pod="default/web-0")
    assert "cluster" not in first(told)
    assert "cluster" not in held.fate(attempt(cluster).trace_id).label
    assert not held.stories.several_clusters
    assert [one.cluster for one in summarize(held.stories, took=0).waiting] == ["", ""]
    assert [pod.uid for pod in held.stories.namesakes(held.stories.pods()[0])] == [held.stories.pods()[1].uid]


def test_who_does_not_say_its_cluster_is_no_second_one_and_may_be_the_pod_before() -> None:
    held = library(attempt("", start=START - MS), attempt(EAST))
    assert not held.stories.several_clusters
    assert first(ask(held, pod="default/web-0")).startswith("default/web-0 is Pending")
    (pod,) = held.find("uid-of-east")
    assert [other.uid for other in held.stories.namesakes(pod)] == ["uid-of-"]


def test_a_pods_cluster_is_known_as_soon_as_one_of_its_spans_says_it() -> None:
    silent, says = attempt("", uid="one"), attempt(EAST, uid="one", number=2)
    (pod,) = library(silent, says).stories.pods()
    assert (pod.cluster, pod.tries) == (EAST, 2)
    (pod,) = library(says, silent).stories.pods()
    assert (pod.cluster, pod.tries) == (EAST, 2)


def test_a_story_that_was_told_before_the_second_cluster_came_says_its_own_from_then_on() -> None:
    held = library(attempt(EAST))
    assert not held.stories.pods()[0].several_clusters
    held.keep(attempt(WEST).groups(), START)
    assert all(pod.several_clusters for pod in held.stories.pods())


def test_a_name_of_several_clusters_is_asked_back_with_what_may_be_meant() -> None:
    held = library(attempt(EAST), attempt(WEST), attempt("", uid="silent"))
    told = ask(held, pod="default/web-0")
    assert told["error"] == "2 clusters have a Pod default/web-0, and one that does not say its cluster"
    assert told["clusters"] == ["", WEST, EAST]
    assert told["choices"] == [
        {"cluster": "", "namespace": "default", "key": "silent"},
        {"cluster": WEST, "namespace": "default", "key": f"uid-of-{WEST}"},
        {"cluster": EAST, "namespace": "default", "key": "uid-of-east"},
    ]
    assert first(ask(held, pod="default/web-0", cluster=WEST)).startswith(f"default/web-0 in cluster {WEST} is")
    assert first(ask(held, pod="web-0", cluster=EAST)).startswith("default/web-0 in cluster east is")
    both = ask(library(attempt(EAST), attempt(WEST, namespace="prod")), pod="web-0")
    assert both["error"] == "2 namespaces of 2 clusters have a Pod web-0"


def test_a_pod_that_its_cluster_does_not_have_is_not_known_and_where_there_is_one_is_said() -> None:
    held = library(attempt(EAST))
    assert ask(held, pod="default/web-0", cluster="south") == {
        "error": "nothing is known of Pod default/web-0 in cluster south; there is default/web-0 in cluster east"
    }
    assert "in cluster east" in str(ask(held, pod="uid-of-east", cluster="south")["error"])
    with pytest.raises(ValueError, match="cluster is that of a Pod"):
        WhyQuestion.read({"trace": "00" * 16, "cluster": EAST})


def test_a_pod_of_the_same_name_elsewhere_is_no_earlier_one_of_this_name() -> None:
    held = library(attempt(WEST, start=START - MS), attempt(EAST))
    assert "Earlier Pods" not in json.dumps(ask(held, pod="default/web-0", cluster=EAST)["details"])


def creation(cluster: str, agent: str) -> Group:
    trace = cluster[:1].encode() * 16
    spans = [
        encode_span(
            trace_id=trace,
            span_id=b"post0000",
            name="POST /api/v1/namespaces/{:namespace}/pods",
            start=START - MS,
            end=START,
            attributes={"user_agent.original": agent},
        ),
        encode_span(
            trace_id=trace,
            span_id=b"etcd0000",
            name="Create etcd3",
            start=START - MS,
            end=START,
            attributes={"resource": "pods", "key": "/pods/default/web-0"},
        ),
    ]
    resource = resource_header({"service.name": "apiserver", "k8s.cluster.name": cluster})
    return Group(resource, scope_header("apiserver"), trace, frame(spans), len(spans))


def test_who_created_a_pod_is_looked_for_in_its_own_cluster() -> None:
    held = library(attempt(EAST), attempt(WEST))
    held.keep([creation(EAST, "kubectl/v1.37.1")], START)
    held.keep([creation(WEST, "helm/v4")], START)
    found = {}
    for pod in held.stories.pods():
        created, _ = held.requests_of(pod)
        found[pod.cluster] = created.agent if created else ""
    assert found == {EAST: "kubectl/v1.37.1", WEST: "helm/v4"}


def test_decisions_say_of_which_cluster_the_pod_is_and_are_found_by_it_where_there_are_several() -> None:
    held = library(attempt(EAST, uid="one"), attempt(WEST, uid="two"))
    stories = [held.decision_story(entry) for entry in held.decisions.latest()]
    assert [(one.cluster, one.several_clusters) for one in stories] == [(WEST, True), (EAST, True)]
    for several, found in ((True, ["one"]), (False, [])):
        wanted = selector(q="EAST", several_clusters=several)
        assert wanted is not None
        assert [entry.owner.key for entry in held.decisions.latest() if wanted(entry) and entry.owner] == found


def test_a_decision_that_was_written_down_says_the_cluster_and_is_read_with_it() -> None:
    line = decision_line(attempt(EAST).verdict())
    assert line["cluster"] == EAST
    assert "cluster" not in decision_line(attempt("").verdict())
    verdict, root, cluster = read_decision(json.dumps(line).encode())
    held = Library()
    held.read(verdict, root, cluster)
    assert [pod.cluster for pod in held.stories.pods()] == [EAST]


def test_the_example_of_what_pods_wait_for_names_its_cluster() -> None:
    (waiting,) = summarize(library(attempt(EAST), attempt(WEST)).stories, took=0).waiting
    assert (waiting.pods, waiting.cluster) in {(2, EAST), (2, WEST)}


def test_a_life_that_is_told_by_link_stitching_is_of_the_cluster_that_its_spans_say() -> None:
    told = change_resource(resource_header({"service.name": "podtrail"}), {"k8s.cluster.name": EAST}, ())
    life = encode_span(
        trace_id=b"l" * 16,
        span_id=b"part0000",
        name="created",
        start=START,
        end=START + MS,
        attributes={"k8s.pod.uid": "one", "k8s.namespace.name": "default", "k8s.pod.name": "web-0"},
        links=[Link(b"o" * 16, b"original", {})],
    )
    held = library(attempt(WEST))
    held.keep([Group(told, scope_header("podtrail.link_stitching"), b"l" * 16, frame([life]), 1)], START)
    (pod,) = held.find("one")
    assert (pod.cluster, pod.several_clusters) == (EAST, True)


def test_the_story_in_json_has_the_cluster_alone_or_not() -> None:
    held = library(attempt(EAST))
    told = to_json(held.stories.pods()[0])
    assert isinstance(told, dict)
    assert (told["cluster"], told["severalClusters"]) == (EAST, False)
