"""Names are weak evidence: Pods of one name follow one another, and each component has a clock of its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.otlp import Link, Value
from podtrail.pod_identity import CLOCKS_APART
from tests.pod_identity.told_directory import (
    APISERVER,
    AT,
    KUBELET,
    KUBELET_AGENT,
    MS,
    OTHER,
    SECOND,
    UID,
    ToldDirectory,
)

PLACE = "default/web-0"
SCHEDULER_AGENT = "kube-scheduler/v1.37.1 (linux/amd64) kubernetes/0000000/scheduler"


def test_a_generated_name_is_of_one_pod_at_all_times() -> None:
    cluster = ToldDirectory()
    cluster.attempt(UID, "default/web-7f7644db44-dsw5v")
    for at in (AT - 9 * SECOND, AT, AT + 100 * SECOND):
        assert cluster.ask(cluster.request("web-7f7644db44-dsw5v", at), APISERVER) == (UID, "name", 1)
        assert cluster.ask(cluster.kubelet_request("web-7f7644db44-dsw5v", at), KUBELET) == (UID, "name", 1)


def test_a_name_that_looks_generated_and_had_two_pods_is_as_weak_as_any() -> None:
    cluster = ToldDirectory()
    cluster.attempt(UID, "default/web-dsw5v")
    cluster.attempt(OTHER, "default/web-dsw5v", AT + SECOND)
    assert cluster.ask(cluster.request("web-dsw5v", AT), APISERVER) == ("", "name", 2)


def test_a_name_of_which_nobody_told_is_of_no_pod() -> None:
    cluster = ToldDirectory()
    assert cluster.ask(cluster.request(), APISERVER) is None


def test_a_request_behind_the_creation_of_the_only_pod_is_about_that() -> None:
    cluster = ToldDirectory()
    cluster.creation(PLACE, AT, b"c" * 24)
    cluster.attempt(UID, PLACE, AT + 10 * MS)
    assert cluster.ask(cluster.request(at=AT + 5 * MS), APISERVER) == (UID, "name", 1)
    assert cluster.ask(cluster.request(at=AT - 5 * MS), APISERVER) is None, "that was about a Pod before it"


def test_a_pod_whose_creation_nobody_saw_may_have_had_a_predecessor() -> None:
    cluster = ToldDirectory()
    cluster.attempt(UID, PLACE)
    assert cluster.ask(cluster.request(at=AT + SECOND), APISERVER) == ("", "name", 2)
    assert cluster.ask(cluster.request(at=AT + CLOCKS_APART + SECOND), APISERVER) == (UID, "name", 1)


def test_requests_of_a_kubelet_are_in_order_with_its_syncs() -> None:
    cluster = ToldDirectory()
    cluster.sync(UID, "web-0", AT)
    cluster.sync(OTHER, "web-0", AT + SECOND)
    assert cluster.ask(cluster.kubelet_request(at=AT + 1), KUBELET) == ("", "name", 2), (
        "or was the other there already?"
    )
    cluster.sync(UID, "web-0", AT + 500 * MS)
    assert cluster.ask(cluster.kubelet_request(at=AT + 400 * MS), KUBELET) == (UID, "name", 1)
    assert cluster.ask(cluster.kubelet_request(at=AT + SECOND + 1), KUBELET) == (OTHER, "name", 1)
    assert cluster.ask(cluster.kubelet_request(at=AT + 700 * MS), KUBELET) == ("", "name", 2)


def test_a_pod_made_again_within_20_ms_is_not_told_from_the_one_before() -> None:
    cluster = ToldDirectory()
    cluster.creation(PLACE, AT, b"c" * 24)
    cluster.creation(PLACE, AT + 20 * MS, b"d" * 24)
    cluster.attempt(UID, PLACE, AT + 5 * MS)
    cluster.attempt(OTHER, PLACE, AT + 25 * MS)
    for at in (AT + 2 * MS, AT + 12 * MS, AT + 30 * MS, AT + SECOND):
        assert cluster.ask(cluster.request(at=at), APISERVER) == ("", "name", 2)
    assert cluster.directory.creation_of(UID)[0] is None
    assert cluster.directory.creations_possible(UID) == 2
    later = AT + CLOCKS_APART + SECOND
    assert cluster.ask(cluster.request(at=later), APISERVER) == (OTHER, "name", 1)


def test_pods_whose_lives_are_far_apart_are_told_apart() -> None:
    cluster = ToldDirectory()
    for uid, at, span in ((UID, AT, b"c"), (OTHER, AT + 100 * SECOND, b"d")):
        cluster.creation(PLACE, at, span * 24)
        cluster.attempt(uid, PLACE, at + 10 * MS)
        cluster.sync(uid, "web-0", at + 60 * SECOND)
    assert cluster.ask(cluster.request(at=AT + 50 * SECOND), APISERVER) == (UID, "name", 1)
    assert cluster.ask(cluster.request(at=AT + 100 * SECOND + 50 * MS), APISERVER) == (OTHER, "name", 1)
    creations = [cluster.directory.creation_of(uid)[0] for uid in (UID, OTHER)]
    assert [creation and creation.span for creation in creations] == [b"c" * 24, b"d" * 24]


def test_a_request_known_by_its_context_says_by_the_api_servers_clock_when_its_pod_was_there() -> None:
    cluster = ToldDirectory()
    cluster.creation(PLACE, AT, b"c" * 24)
    cluster.creation(PLACE, AT + 20 * MS, b"d" * 24)
    for uid, at in ((UID, AT + 5 * MS), (OTHER, AT + 25 * MS)):
        cluster.attempt(uid, PLACE, at, uid.encode()[:16])
        told: dict[str, Value] = {"url.path": "/api/v1/namespaces/default/pods/web-0/binding", "audit-id": "a"}
        link = Link(uid.encode()[:16], b"bindspan", {})
        binding = cluster.clues("POST binding", told, kind=2, at=at + 2 * MS, trace=b"b" * 16, links=[link])
        identity = cluster.ask(binding, APISERVER)
        assert identity == (uid, "trace-context", 1)
        cluster.directory.confirm(binding, identity, cluster.source(APISERVER), AT)
    creations = [cluster.directory.creation_of(uid)[0] for uid in (UID, OTHER)]
    assert [creation and creation.span for creation in creations] == [b"c" * 24, b"d" * 24]
    assert cluster.ask(cluster.request(at=AT + 12 * MS), APISERVER) == (UID, "name", 1)
    assert cluster.ask(cluster.request(at=AT + 30 * MS), APISERVER) == (OTHER, "name", 1)


def test_a_creation_is_the_only_one_that_can_have_made_the_pod() -> None:
    cluster = ToldDirectory()
    cluster.creation(PLACE, AT, b"c" * 24)
    cluster.attempt(UID, PLACE, AT + 10 * MS)
    written: dict[str, Value] = {"key": "/pods/default/web-0", "audit-id": "c"}
    cluster.learn(cluster.clues("Create etcd3", written, at=AT), APISERVER)
    path: dict[str, Value] = {"url.path": "/api/v1/namespaces/default/pods", "audit-id": "c"}
    request = cluster.clues("POST pods", path, kind=2, at=AT, trace=b"c" * 16)
    assert cluster.ask(request, APISERVER) == (UID, "name", 1), "its own span does not name the Pod"


@pytest.mark.parametrize("known", ["attempt", "creation", "deletion"])
def test_an_event_may_outlive_its_pod_whatever_was_seen_of_that(known: str) -> None:
    """A Pod that is deleted with grace period 0 and made again 67 ms later: its kubelet still writes Events."""
    cluster = ToldDirectory()
    if known == "attempt":
        cluster.attempt(OTHER, PLACE, AT - 60 * SECOND)
    elif known == "creation":
        cluster.creation(PLACE, AT - 60 * SECOND, b"d" * 24)
    else:
        cluster.deletion(AT - 67 * MS)
    cluster.creation(PLACE, AT, b"c" * 24)
    cluster.attempt(UID, PLACE, AT + 10 * MS)
    for at in (AT + 20 * MS, AT + 20 * SECOND):
        assert cluster.ask(cluster.event("web-0", KUBELET_AGENT, at), APISERVER) == ("", "name", 2)
    request = cluster.ask(cluster.request(at=AT + 20 * SECOND), APISERVER)
    assert request == (UID, "name", 1), "a request by name finds the Pod that is there"


def test_an_event_that_first_happened_before_the_pod_is_about_another() -> None:
    cluster = ToldDirectory()
    cluster.creation(PLACE, AT, b"c" * 24)
    cluster.attempt(UID, PLACE, AT + 10 * MS)
    late = cluster.event("web-0", KUBELET_AGENT, AT + SECOND, first=AT - SECOND)
    identity = cluster.ask(late, APISERVER)
    assert identity is None or not identity.uid
    cluster.deletion(AT + 30 * SECOND)
    own = cluster.event("web-0", KUBELET_AGENT, AT + 31 * SECOND)
    assert cluster.ask(own, APISERVER) == (UID, "name", 1), "its own deletion makes no other Pod of it"


def test_events_are_about_a_pod_when_a_kubelet_or_a_scheduler_writes_them() -> None:
    cluster = ToldDirectory()
    cluster.creation(PLACE, AT, b"c" * 24)
    cluster.sync(UID, "web-0", AT)
    cluster.sync(OTHER, "node-1", AT)
    for agent in (KUBELET_AGENT, SCHEDULER_AGENT):
        assert cluster.ask(cluster.event("web-0", agent, AT + MS), APISERVER) == (UID, "name", 1)
    job = "kube-controller-manager/v1.37.1 (linux/amd64) kubernetes/0000000/system:serviceaccount:kube-system:job"
    assert cluster.ask(cluster.event("web-0", job, AT + MS), APISERVER) == ("", "name", 2), "it may be the Job's"
    assert cluster.ask(cluster.event("node-1", KUBELET_AGENT, AT + MS), APISERVER) == ("", "name", 2), "or the node's"
    assert cluster.ask(cluster.event("web-1", KUBELET_AGENT, AT + MS), APISERVER) is None


@pytest.mark.parametrize("name", ["web-0.zz", "web-0", ".18ea6d533afbed99", "web-0.18ea6d533afbed99.x"])
def test_an_event_of_another_form_names_nobody(name: str) -> None:
    cluster = ToldDirectory()
    cluster.sync(UID, "web-0")
    path = f"/api/v1/namespaces/default/events/{name}"
    told: dict[str, Value] = {"url.path": path, "audit-id": "e", "user_agent.original": KUBELET_AGENT, "cni.id": "x"}
    assert cluster.ask(cluster.clues("PATCH", told, kind=2), APISERVER) is None


@given(
    offsets=st.tuples(*[st.integers(-2500 * MS, 2500 * MS)] * 3),
    lengths=st.lists(st.integers(MS, 20 * SECOND), min_size=1, max_size=5),
    data=st.data(),
)
def test_no_clock_and_no_lost_span_makes_a_request_that_of_another_pod(
    offsets: tuple[int, int, int], lengths: list[int], data: st.DataObject
) -> None:
    """Pods of one name, one after the other; each has an attempt, any other span of it may be lost."""
    api, kubelet, scheduler = offsets
    cluster = ToldDirectory()
    begin = AT
    asked = []
    for number, length in enumerate(lengths):
        uid = f"u-{number}"
        if data.draw(st.booleans()):
            cluster.creation(PLACE, begin + api, bytes([number]) * 24)
        cluster.attempt(uid, PLACE, begin + length // 4 + scheduler, bytes([number]) * 16)
        if data.draw(st.booleans()):
            cluster.sync(uid, "web-0", begin + length // 2 + kubelet, trace=bytes([100 + number]) * 16)
        later = begin + length // 2 + 1 + data.draw(st.integers(0, length // 2 - 1))
        asked += [
            (uid, cluster.request(at=later + api), APISERVER),
            (uid, cluster.kubelet_request(at=later + kubelet), KUBELET),
        ]
        begin += length + 2 * MS
    for uid, clues, resource in asked:
        identity = cluster.ask(clues, resource)
        assert identity is None or identity.uid in ("", uid)
    for number in range(len(lengths)):
        creation, _ = cluster.directory.creation_of(f"u-{number}")
        assert creation is None or creation.span[0] == number
