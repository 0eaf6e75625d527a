"""What tells of a Pod is linked with the attempt that bound it, whichever comes first; what may be another's is not."""

import random
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.processor import LinkStitching

from podtrail.component import Context
from podtrail.config.types import SECOND
from podtrail.otlp import Batch, Group, Link, SpanView, Value, encode_span, frame, resource_header, scope_header, split
from podtrail.testing.attempts import MS, START, MadeAttempt

SERVER, CLIENT = 2, 3
SANDBOX: Final = "436b55bb282d5e2482c73ad664777e7ffd541108a6c448c732778570091693d9"
UID: Final = MadeAttempt().uid
CONTROLLER: Final = (
    "kube-controller-manager/v1.37.1 (linux/amd64) kubernetes/0000000/system:serviceaccount:kube-system:"
)
WAIT: Final = 5 * SECOND


def id_of(trace: bytes, name: str) -> bytes:
    return blake2b(trace + name.encode(), digest_size=8).digest()


def made(
    service: str,
    trace: bytes,
    name: str,
    attributes: Mapping[str, Value],
    *,
    kind: int = 1,
    at: int = START,
    parent: bytes = b"",
    links: Sequence[Link] = (),
) -> Group:
    raw = encode_span(
        trace_id=trace * 16,
        span_id=id_of(trace, name),
        parent_span_id=parent,
        name=name,
        kind=kind,
        start=at,
        end=at + MS,
        attributes=attributes,
        links=list(links),
    )
    resource = {"service.name": service, **({"host.name": "node-1"} if service == "kubelet" else {})}
    return Group(resource_header(resource), scope_header("test"), trace * 16, frame([raw]), 1)


def sync(trace: bytes = b"y", at: int = START, name: str = "syncPod", uid: str = UID) -> Group:
    told: dict[str, Value] = {"k8s.pod.uid": uid, "k8s.namespace.name": "default", "k8s.pod.name": "web-0"}
    return made("kubelet", trace, name, told, at=at)


def created(
    resource: str, name: str, controller: str, trace: bytes, at: int = START, *, code: int = 201
) -> list[Group]:
    """Return a creation as it is sent: the write under another scope than the request, so in a group of its own."""
    group = "/api/v1" if resource == "pods" else "/apis/apps/v1"
    told: dict[str, Value] = {
        "url.path": f"{group}/namespaces/default/{resource}",
        "audit-id": f"{resource}-{name}-{trace!r}",
        "http.request.method": "POST",
        "http.response.status_code": code,
        "user_agent.original": CONTROLLER + controller,
    }
    written: dict[str, Value] = {"key": f"/{resource}/default/{name}", "audit-id": told["audit-id"]}
    request = made("apiserver", trace, f"POST {resource}", told, kind=SERVER, at=at)
    return [
        made("apiserver", trace, "Create etcd3", written, at=at, parent=SpanView(split(request.spans)[0]).span_id),
        request,
    ]


class Run:
    """Groups that come one by one, each a millisecond after the other unless time passes."""

    def __init__(self) -> None:
        self.context = Context(id="link_stitching")
        self.processor = LinkStitching(Config(), self.context)
        self.now = START
        self.out: list[Batch] = []

    def add(self, *groups: Group) -> "Run":
        for group in groups:
            self.now += MS
            self.out += self.processor.add(Batch([group], self.now), self.now).out
        return self

    def wait(self) -> "Run":
        self.now += WAIT
        self.out += self.processor.expire(self.now, 1000)
        return self

    def links(self, name: str) -> list[tuple[bytes, object, object]]:
        """Return target, type and evidence of the links of spans of a name, and of their amendments."""
        self.out += self.processor.drain(self.now)
        views = [SpanView(raw) for batch in self.out for group in batch.groups for raw in split(group.spans)]
        ids = {view.span_id for view in views if view.name == name}
        return [
            (link.span_id, link.attributes.get("podtrail.link.type"), link.attributes.get("podtrail.link.evidence"))
            for view in views
            if view.span_id in ids or (view.name == "podtrail.amendment" and view.parent_span_id in ids)
            for link in view.links
        ]

    def unjoined(self) -> Mapping[str, float]:
        counted = self.context.metrics.snapshot().get("otelcol_processor_link_stitching_unjoined", {})
        return {label.partition(",")[2]: count for label, count in counted.items()}


BOUND: Final = MadeAttempt(number=1, result="Success")


@pytest.mark.parametrize("name", ["syncPod", "syncTerminatingPod", "syncTerminatedPod"])
@pytest.mark.parametrize("waits", [False, True], ids=["within the window", "after the sync has left"])
@pytest.mark.parametrize("first", ["sync", "attempt"])
def test_a_sync_is_linked_with_the_attempt_whichever_comes_first(name: str, first: str, *, waits: bool) -> None:
    run = Run()
    early = sync(name=name, at=START - 3 * SECOND)
    parts = [[early], BOUND.groups()] if first == "sync" else [BOUND.groups(), [early]]
    run.add(*parts[0])
    if waits:
        run.wait()
    run.add(*parts[1])
    kind = "scheduling" if name == "syncPod" else "termination"
    assert run.links(name) == [(BOUND.root_id, kind, "pod-uid")]
    told = [(target, told_kind, evidence) for target, told_kind, evidence in run.links("SchedulePod")]
    assert told == [(id_of(b"y", name), kind, "pod-uid")]


def test_of_all_syncs_the_attempt_is_told_of_the_first_and_not_again_after_a_restart_of_the_kubelet() -> None:
    run = Run().add(*BOUND.groups(), sync(b"1"), sync(b"2"), sync(b"3", at=START + 60 * SECOND))
    assert len(run.links("syncPod")) == 3
    assert [kind for _, kind, _ in run.links("SchedulePod")] == ["scheduling"]


def test_a_sync_that_comes_twice_is_told_once() -> None:
    run = Run().add(sync(), sync()).wait().add(*BOUND.groups())
    assert [kind for _, kind, _ in run.links("SchedulePod")] == ["scheduling"]


def test_an_attempt_that_failed_did_not_start_the_pod() -> None:
    run = Run().add(*MadeAttempt(number=1, result="Unschedulable").groups(), sync())
    assert run.links("syncPod") == []
    assert run.unjoined()["reason=not_bound,type=scheduling"] == 1


def test_the_runtimes_own_traces_are_linked_by_what_is_taught_later() -> None:
    wait = made("containerd", b"w", "task.Wait", {"task.id": SANDBOX})
    names: dict[str, Value] = {"sandbox.id": SANDBOX, "sandbox.name": f"web-0_default_{UID}_0"}
    within = made("containerd", b"y", "cri.sandbox.run", names, parent=b"p" * 8)
    run = Run().add(wait, within, sync(), *BOUND.groups())
    assert run.links("task.Wait") == [(BOUND.root_id, "runtime", "sandbox-id")]
    assert run.links("cri.sandbox.run") == [], "it is in the trace of the sync"
    assert [kind for _, kind, _ in run.links("SchedulePod")] == ["scheduling"], "of the others there are too many"


def test_what_nobody_taught_is_counted() -> None:
    run = Run().add(made("containerd", b"w", "task.Wait", {"task.id": SANDBOX}), *BOUND.groups())
    assert run.links("task.Wait") == []
    assert run.unjoined()["reason=unknown_pod,type=runtime"] == 1


def test_a_static_pod_has_no_attempt_and_is_counted() -> None:
    names: dict[str, Value] = {"sandbox.id": SANDBOX, "sandbox.name": "etcd-node-1_kube-system_0123456789abcdef_0"}
    run = Run().add(
        made("containerd", b"y", "cri.sandbox.run", names, parent=b"p" * 8),
        made("containerd", b"w", "task.Wait", {"task.id": SANDBOX}),
    )
    assert run.links("task.Wait") == []
    assert run.unjoined() == {"reason=no_attempt,type=runtime": 1}


@pytest.mark.parametrize("scheduled", [False, True])
def test_the_sync_of_a_pod_without_an_attempt_is_linked_with_its_creation(scheduled: bool) -> None:
    run = Run().add(*created("pods", "web-0", "daemon-set", b"c"), sync(at=START + 10 * MS))
    if scheduled:
        run.add(MadeAttempt(start=START + 2 * MS, duration=MS).groups()[0])
    assert [kind for _, kind, _ in run.wait().links("syncPod")] == ["scheduling" if scheduled else "creation"]


def test_pods_made_again_within_20_ms_have_neither_creation_nor_binding_of_the_other() -> None:
    run = Run()
    attempts = []
    for trace, uid, at in ((b"1", "first", START), (b"2", "second", START + 20 * MS)):
        attempts.append(MadeAttempt(uid=uid, number=1, start=at + 5 * MS, result="Success"))
        path: dict[str, Value] = {"url.path": "/api/v1/namespaces/default/pods/web-0/binding", "audit-id": uid}
        run.add(*created("pods", "web-0", "x", trace, at), *attempts[-1].groups())
        run.add(made("apiserver", b"b" + trace[:0], f"POST binding {uid}", path, kind=SERVER, at=at + 7 * MS))
    for name in ("POST binding first", "POST binding second", "SchedulePod"):
        assert run.links(name) == []
    assert run.unjoined() == {"reason=ambiguous,type=binding": 2, "reason=ambiguous,type=creation": 2}


def test_where_the_binding_has_the_schedulers_context_the_creations_are_known_as_well() -> None:
    run = Run()
    targets = {}
    for trace, uid, at in ((b"1", "first", START), (b"2", "second", START + 20 * MS)):
        attempt = MadeAttempt(uid=uid, number=1, start=at + 5 * MS, result="Success")
        path: dict[str, Value] = {"url.path": "/api/v1/namespaces/default/pods/web-0/binding", "audit-id": uid}
        context = [Link(attempt.trace_id, attempt.root_id, {})]
        binding = made(
            "apiserver", bytes([trace[0] + 9]), f"POST binding {uid}", path, kind=SERVER, at=at + 7 * MS, links=context
        )
        run.add(*created("pods", "web-0", "x", trace, at), binding, *attempt.groups())
        targets[uid] = attempt.root_id
    assert run.links("POST binding first") == [(targets["first"], "binding", "trace-context")]
    assert run.links("POST binding second") == [(targets["second"], "binding", "trace-context")]


def test_a_creation_that_the_api_server_refused_is_none() -> None:
    refused, made_it = (
        created("pods", "web-0", "x", b"r", code=409),
        created("pods", "web-0", "x", b"c", START - SECOND),
    )
    run = Run().add(*made_it, *refused, *BOUND.groups())
    assert [kind for _, kind, _ in run.links("SchedulePod")] == ["creation"]
    assert run.unjoined() == {}


def test_a_creation_is_linked_with_that_of_its_replicaset_and_that_with_its_deployments() -> None:
    run = Run().add(
        *created("deployments", "web", "nobody", b"d", START - 3 * SECOND),
        *created("replicasets", "web-7f7644db44", "deployment-controller", b"r", START - 2 * SECOND),
        *created("pods", "web-7f7644db44-dsw5v", "replicaset-controller", b"p", START - SECOND),
    )
    assert run.links("POST pods") == [(id_of(b"r", "POST replicasets"), "owner", "name")]
    assert run.links("POST replicasets") == [(id_of(b"d", "POST deployments"), "owner", "name")]
    assert run.links("POST deployments") == []


@pytest.mark.parametrize(
    ("owner", "pod", "controller"),
    [
        ("jobs/sums", "sums-1-x5k2f", "job-controller"),
        ("jobs/sums-1", "sums-1-x5k2f", "job-controller"),
        ("jobs/sums", "sums-x5k2f", "replicaset-controller"),
        ("jobs/sums", "sums-x5k2f", "somebody"),
        ("replicasets/" + "w" * 57, "w" * 57 + "-x5k2f", "replicaset-controller"),
    ],
    ids=["an index", "or a name with a number", "another controller", "nobody", "a name that is cut off"],
)
def test_what_may_have_another_owner_is_linked_with_none(owner: str, pod: str, controller: str) -> None:
    resource, _, name = owner.partition("/")
    run = Run().add(*created(resource, name, "x", b"o", START - SECOND), *created("pods", pod, controller, b"p"))
    assert run.links("POST pods") == []


def test_of_two_owners_of_one_name_none_is_meant() -> None:
    owners = [
        *created("jobs", "sums", "x", b"1", START - 9 * SECOND),
        *created("jobs", "sums", "x", b"2", START - SECOND),
    ]
    run = Run().add(*owners, *created("pods", "sums-x5k2f", "job-controller", b"p"))
    assert run.links("POST pods") == []
    assert run.unjoined()["reason=ambiguous,type=owner"] == 1


@pytest.mark.parametrize("ahead", [-5, 0, 5])
def test_a_status_write_by_a_clock_that_is_5_s_off_is_not_linked_with_another_attempt(ahead: int) -> None:
    agent = "kube-scheduler/v1.37.1 (linux/amd64) kubernetes/0000000/scheduler"
    path: dict[str, Value] = {"url.path": "/api/v1/namespaces/default/pods/web-0/status", "user_agent.original": agent}
    path["audit-id"] = "s"
    tries = [MadeAttempt(number=n, start=START + 5 * n * SECOND, result="Unschedulable") for n in (1, 2, 3)]
    true = tries[1]
    write = made("apiserver", b"s", "PATCH status", path, kind=SERVER, at=true.start + MS + ahead * SECOND)
    run = Run().add(*[group for one in tries for group in one.groups()], write)
    assert run.links("PATCH status") == []
    assert run.unjoined()["reason=ambiguous,type=status"] == 1


def told_of(pod: int, begin: int, length: int, api: int, kubelet: int) -> list[Group]:
    """Return all spans but the attempt of a Pod `web-0` that began then and was there so long, by clocks so far off."""
    later = begin + length // 2
    path = "/api/v1/namespaces/default/pods/web-0"
    named: dict[str, Value] = {"url.path": path, "audit-id": f"a-{pod}"}
    url: dict[str, Value] = {"url.full": "https://10.0.0.1:6443" + path}
    bind: dict[str, Value] = {"url.path": path + "/binding", "audit-id": f"b-{pod}"}
    status: dict[str, Value] = {"url.path": path + "/status", "user_agent.original": "kube-scheduler/v1.37.1"}
    ids: dict[str, Value] = {"sandbox.id": f"{pod:064x}", "sandbox.name": f"web-0_default_u-{pod}_0"}
    return [
        *created("pods", "web-0", "x", bytes([10 + pod]), begin + api),
        made("apiserver", bytes([20 + pod]), "GET pods", named, kind=SERVER, at=later + api),
        made("apiserver", bytes([70 + pod]), "POST binding", bind, kind=SERVER, at=begin + length // 4 + api + 1),
        made("apiserver", bytes([80 + pod]), "PATCH status", status, kind=SERVER, at=begin + length // 4 + api + 2),
        made("kubelet", bytes([30 + pod]), "HTTP GET", url, kind=CLIENT, at=later + kubelet + MS),
        made("containerd", bytes([40 + pod]), "cri.sandbox.run", ids, at=later, parent=b"p" * 8),
        made("containerd", bytes([50 + pod]), "task.Wait", {"task.id": f"{pod:064x}"}, at=later),
        sync(bytes([60 + pod]), later + kubelet, uid=f"u-{pod}"),
    ]


@settings(deadline=None)
@given(
    offsets=st.tuples(*[st.integers(-2500 * MS, 2500 * MS)] * 3),
    lengths=st.lists(st.integers(40 * MS, 20 * SECOND), min_size=1, max_size=4),
    order=st.randoms(use_true_random=False),
)
def test_in_no_order_and_by_no_clock_is_anything_linked_with_the_attempt_of_another(
    offsets: tuple[int, int, int], lengths: list[int], order: random.Random
) -> None:
    """Pods of one name follow one another; spans come in any order, twice, or not at all; attempts of the first too."""
    api, kubelet, scheduler = offsets
    attempts: list[Group] = []
    others: list[Group] = []
    owner: dict[bytes, int] = {}
    begin = START
    lost = order.randrange(len(lengths))
    for pod, length in enumerate(lengths):
        bound = MadeAttempt(uid=f"u-{pod}", number=1, start=begin + length // 4 + scheduler, result="Success")
        owner[bound.root_id] = pod
        attempts += bound.groups() if pod >= lost else []
        told = told_of(pod, begin, length, api, kubelet)
        owner.update({SpanView(split(group.spans)[0]).span_id: pod for group in told})
        others += told
        begin += length + 2 * MS
    kept = [group for group in others for _ in range(order.choice([0, 1, 1, 2]))]
    order.shuffle(kept)
    run = Run().add(*attempts, *kept) if order.random() < 0.5 else Run().add(*kept).wait().add(*attempts)
    run.links("SchedulePod")
    for view in (SpanView(raw) for batch in run.out for group in batch.groups for raw in split(group.spans)):
        source = view.parent_span_id if view.name == "podtrail.amendment" else view.span_id
        for link in view.links:
            assert owner[source] == owner[link.span_id], view.name


def asked_and_answered(action: str, *, audit_id: str = "a-1") -> list[Group]:
    """Return a client's span of a request, and the server's in a trace of its own with a link to it."""
    asking = made("kubelet", b"k", "HTTP GET", {}, kind=CLIENT)
    link = Link(b"k" * 16, SpanView(split(asking.spans)[0]).span_id, {})
    told: dict[str, Value] = {"url.path": f"/api/v1/{action}", "http.request.method": "GET"}
    told |= {"audit-id": audit_id} if audit_id else {}
    return [asking, made("apiserver", b"s", "GET", told, kind=SERVER, links=[link])]


@pytest.mark.parametrize("action", ["nodes/node-1", "namespaces/default/pods/web-0"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_request_of_a_client_that_is_not_trusted_is_linked_with_the_clients_span_as_such(
    action: str, *, turned: bool
) -> None:
    groups = asked_and_answered(action)
    run = Run().add(*(reversed(groups) if turned else groups)).wait()
    asking, answering = (SpanView(split(group.spans)[0]).span_id for group in groups)
    assert run.links("GET") == [(asking, "client", "trace-context")]
    assert run.links("HTTP GET") == [(answering, "client", "trace-context")]
    counted = run.context.metrics.snapshot()["otelcol_processor_link_stitching_links"]
    assert [(label.rpartition("type=")[2], count) for label, count in counted.items()] == [("client", 1)]


def test_a_link_of_another_server_or_to_an_attempt_is_none_to_a_client() -> None:
    assert Run().add(*asked_and_answered("nodes/node-1", audit_id="")).wait().links("GET")[0][1] is None
    request = made(
        "apiserver", b"s", "GET", {"audit-id": "a-1"}, kind=SERVER, links=[Link(BOUND.trace_id, BOUND.root_id, {})]
    )
    assert Run().add(*BOUND.groups(), request).wait().links("GET")[0][1] is None
