"""Which Pod a span is about, by what other spans taught; and when it is not said, because it would be a guess."""

import pytest

from podtrail.otlp import Link, Value
from tests.pod_identity.told_directory import (
    APISERVER,
    AT,
    CLIENT,
    CONTAINER,
    CONTAINERD,
    KUBELET,
    KUBELET_AGENT,
    OTHER,
    SANDBOX,
    SERVER,
    UID,
    ToldDirectory,
)

# Ids of the container runtime


def test_spans_with_the_id_of_a_sandbox_are_the_pods_whose_name_that_sandbox_has() -> None:
    cluster = ToldDirectory()
    cluster.sandbox(UID)
    for key in ("sandbox.id", "cni.id", "task.id", "container.id", "task.container.id"):
        assert cluster.ask(cluster.clues("any", {key: SANDBOX}), CONTAINERD) == (UID, "sandbox-id", 1)


def test_spans_with_the_id_of_a_container_are_the_pods_whose_name_that_container_has() -> None:
    cluster = ToldDirectory()
    cluster.container(UID)
    assert cluster.ask(cluster.clues("task.Wait", {"task.id": CONTAINER}), CONTAINERD) == (UID, "container-id", 1)
    assert cluster.ask(cluster.clues("cni.Remove", {"cni.id": SANDBOX}), CONTAINERD) == (UID, "sandbox-id", 1)
    assert cluster.ask(cluster.clues("task.Wait", {"task.id": "f" * 64}), CONTAINERD) is None


@pytest.mark.parametrize(
    "name",
    [
        f"web_0_default_{UID}_0",
        f"web-0_default_{UID}",
        f"web-0_default__{UID}_0",
        f"Web-0_default_{UID}_0",
        f"web-0_de.fault_{UID}_0",
        f"web-0_default_{UID}_x",
        "web-0_default_u?d_0",
        f"web-0_default_{'u' * 129}_0",
        f"{'w' * 300}_default_{UID}_0",
        f"web-0_default_{UID}_0\n",
        "_" * 100_000,
    ],
)
def test_a_sandbox_name_that_the_kubelet_would_not_give_teaches_nothing(name: str) -> None:
    cluster = ToldDirectory()
    cluster.learn(cluster.clues("cri.sandbox.run", {"sandbox.id": SANDBOX, "sandbox.name": name}), CONTAINERD)
    assert cluster.ask(cluster.clues("any", {"sandbox.id": SANDBOX}), CONTAINERD) is None


def test_an_id_that_is_said_to_be_of_two_pods_is_of_none() -> None:
    cluster = ToldDirectory()
    cluster.sandbox(UID)
    cluster.sandbox(OTHER)
    for _ in range(2):
        assert cluster.ask(cluster.clues("any", {"sandbox.id": SANDBOX}), CONTAINERD) == ("", "sandbox-id", 2)
        cluster.sandbox(UID)


def test_a_container_in_a_sandbox_of_another_pod_is_of_neither() -> None:
    cluster = ToldDirectory()
    cluster.sandbox(UID)
    cluster.sandbox(OTHER, sandbox=CONTAINER)
    both = cluster.clues("any", {"sandbox.id": SANDBOX, "container.id": CONTAINER})
    assert cluster.ask(both, CONTAINERD) == ("", "sandbox-id", 2)


# Uids and traces


def test_spans_in_the_trace_of_a_sync_or_an_attempt_are_of_its_pod() -> None:
    cluster = ToldDirectory()
    cluster.sync(UID, "web-0")
    cluster.attempt(OTHER, "default/web-1")
    silent = cluster.clues("StartContainer", {"container.id": CONTAINER}, trace=b"y" * 16, parent=b"p" * 8)
    assert cluster.ask(silent, CONTAINERD) == (UID, "trace", 1)
    assert cluster.directory.uid_of_trace(b"a" * 16) == OTHER
    assert cluster.directory.uid_of_trace(b"z" * 16) == ""


def test_a_trace_with_the_syncs_of_two_pods_is_of_neither() -> None:
    cluster = ToldDirectory()
    cluster.sync(UID, "web-0")
    cluster.sync(OTHER, "web-1")
    silent = cluster.clues("StartContainer", {"container.id": CONTAINER}, trace=b"y" * 16, parent=b"p" * 8)
    assert cluster.ask(silent, CONTAINERD) == ("", "trace", 2)
    assert cluster.directory.uid_of_trace(b"y" * 16) == ""


def test_a_uid_under_two_names_is_believed_under_neither() -> None:
    cluster = ToldDirectory()
    cluster.sync(UID, "web-0")
    assert cluster.ask(cluster.sync(UID, "evil"), KUBELET) == ("", "pod-uid", 2)
    assert cluster.ask(cluster.sync(UID, "web-0"), KUBELET) == ("", "pod-uid", 2)
    assert cluster.directory.place_of(UID) == ""


def test_a_span_that_links_to_one_whose_pod_is_known_is_of_that_pod() -> None:
    cluster = ToldDirectory()
    cluster.attempt(UID, "default/web-0")
    client = Link(b"a" * 16, b"bindspan", {})
    told: dict[str, Value] = {"url.path": "/api/v1/namespaces/default/pods/web-0/binding", "audit-id": "a"}
    binding = cluster.clues("POST binding", told, kind=SERVER, links=[client])
    assert cluster.ask(binding, APISERVER) == (UID, "trace-context", 1)


def test_a_request_is_of_the_pod_that_its_clients_span_is_of() -> None:
    cluster = ToldDirectory()
    cluster.sync(UID, "web-0", AT)
    client = cluster.learn(cluster.kubelet_request(at=AT + 1, rest=""), KUBELET)
    link = Link(client.trace_id, client.span_id, {})
    path: dict[str, Value] = {"url.path": "/api/v1/namespaces/default/pods/web-0", "audit-id": "a"}
    unlinked = cluster.clues("GET pods", path, kind=SERVER, at=AT + 2)
    assert cluster.ask(unlinked, APISERVER) == ("", "name", 2), "whose creation nobody saw"
    linked = cluster.clues("GET pods", path, kind=SERVER, at=AT + 2, links=[link])
    assert cluster.ask(linked, APISERVER) == (UID, "trace-context", 1)
    elsewhere = cluster.clues("GET pods", path | {"url.path": path_of("web-1")}, kind=SERVER, links=[link])
    assert cluster.ask(elsewhere, APISERVER) is None, "a client that asks for one Pod is not told of another"


def path_of(name: str) -> str:
    return f"/api/v1/namespaces/default/pods/{name}"


def test_a_client_that_names_no_pod_is_of_the_pod_that_its_request_turns_out_to_be_about() -> None:
    cluster = ToldDirectory()
    cluster.sync(UID, "web-7f7644db44-dsw5v")
    url = "https://10.0.0.1:6443/api/v1/namespaces/default/events"
    client = cluster.learn(cluster.clues("HTTP POST", {"url.full": url}, kind=CLIENT, trace=b"k" * 16), KUBELET)
    assert cluster.ask(client, KUBELET) is None
    told: dict[str, Value] = {"url.path": "/api/v1/namespaces/default/events", "audit-id": "e"}
    told["user_agent.original"] = KUBELET_AGENT
    link = Link(client.trace_id, client.span_id, {})
    server = cluster.learn(cluster.clues("POST events", told, kind=SERVER, links=[link]), APISERVER)
    written: dict[str, Value] = {"key": "/events/default/web-7f7644db44-dsw5v.18ea6d533afbed99", "audit-id": "e"}
    cluster.learn(cluster.clues("Create etcd3", written, trace=b"e" * 16), APISERVER)
    assert cluster.ask(server, APISERVER) == (UID, "name", 1)
    assert cluster.ask(client, KUBELET) == (UID, "trace-context", 1)


@pytest.mark.parametrize("context", ["a child", "a link"])
def test_a_request_about_a_pod_in_the_trace_of_anothers_attempt_is_not_that_others(context: str) -> None:
    """A preemptor's attempt deletes its victims; a client may send whatever context it likes."""
    cluster = ToldDirectory()
    cluster.attempt(UID, "default/preemptor")
    cluster.attempt(OTHER, "default/web-7f7644db44-dsw5v", trace=b"v" * 16)
    path: dict[str, Value] = {"url.path": path_of("web-7f7644db44-dsw5v"), "audit-id": "a"}
    child = cluster.clues("DELETE pods", path, kind=SERVER, trace=b"a" * 16)
    linked = cluster.clues("DELETE pods", path, kind=SERVER, links=[Link(b"a" * 16, b"deleting", {})])
    assert cluster.ask(child if context == "a child" else linked, APISERVER) == (OTHER, "name", 1)


# Bounds


def test_what_is_remembered_is_bounded_whatever_comes_and_told_when_it_is_forgotten() -> None:
    cluster = ToldDirectory(most_pods=10)
    for number in range(500):
        uid, name = f"u-{number}", f"pod-{number}"
        cluster.sync(uid, name, trace=number.to_bytes(16, "big"))
        cluster.sandbox(uid, name, sandbox=f"{number:064x}")
        cluster.creation(f"default/{name}", AT, number.to_bytes(24, "big"))
        written: dict[str, Value] = {"key": f"/pods/default/{name}", "audit-id": f"audit-{number}"}
        cluster.learn(cluster.clues("Create etcd3", written), APISERVER)
        cluster.learn(cluster.kubelet_request(name), KUBELET)
    sizes = cluster.directory.sizes()
    assert sizes == {"pod_name": 10, "place": 10, "runtime_id": 40, "pod_trace": 40, "request": 20, "partner": 10}
    assert cluster.directory.size() < 120_000
    assert {what for what, reason in cluster.forgotten if reason == "full"} == set(sizes)
    cluster.directory.expire(AT + 901 * 10**9)
    assert set(cluster.directory.sizes().values()) == {0}
    assert {what for what, reason in cluster.forgotten if reason == "ttl"} == set(sizes)


def test_a_successor_knows_all_that_its_predecessor_did() -> None:
    cluster, successor = ToldDirectory(), ToldDirectory()
    cluster.container(UID)
    cluster.sync(UID, "web-0", at=AT)
    successor.directory.take_over(cluster.directory)
    assert successor.directory.sizes() == cluster.directory.sizes()
    for clues, resource in (
        (cluster.clues("task.Wait", {"task.id": CONTAINER}), CONTAINERD),
        (cluster.kubelet_request(at=AT + 1), KUBELET),
    ):
        assert successor.ask(clues, resource) == cluster.ask(clues, resource) != None  # noqa: E711
