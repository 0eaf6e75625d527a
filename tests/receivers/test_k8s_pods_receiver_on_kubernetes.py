"""The `k8s_pods` receiver on a real API server: every transition once, also of what happened while it was away."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from podtrail_receivers.k8s_pods import FACTORY

from podtrail.component import Context
from podtrail.otlp import SpanView
from tests.receivers.sink import Sink

pytestmark = pytest.mark.control_plane
PODS = "/api/v1/namespaces/default/pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Seen(Sink):
    """The transitions that came, by Pod."""

    def of(self, name: str) -> list[str]:
        return [str(span.attributes["podtrail.pod.transition"]) for span in self.named(name)]

    def named(self, name: str) -> list[SpanView]:
        return [span for span in self.spans if span.attributes["k8s.pod.name"] == name]

    @property
    def ids(self) -> set[tuple[bytes, bytes]]:
        return {(span.trace_id, span.span_id) for span in self.spans}


@pytest.fixture
def plane(start_control_plane: Callable[..., Any]) -> Iterator[Any]:
    plane = start_control_plane()
    plane.api.node("n1")
    rules = [{"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list", "watch"]}]
    plane.api.create(f"{RBAC}/clusterroles", {"metadata": {"name": "pods"}, "rules": rules})
    try:
        yield plane
    finally:
        plane.stop()


def allow(api: Any) -> None:
    subject = {"kind": "User", "name": "podtrail", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "pods", "apiGroup": "rbac.authorization.k8s.io"}
    whole = {"metadata": {"name": "podtrail"}, "subjects": [subject], "roleRef": role}
    api.create(f"{RBAC}/clusterrolebindings", whole)


@asynccontextmanager
async def watching(plane: Any, seen: Seen, **settings: Any) -> AsyncIterator[None]:
    told = {"auth_type": "kubeConfig", "kubeconfig": str(plane.user("podtrail")), **settings}
    async with FACTORY.create(FACTORY.Config.model_validate(told), Context(id="k8s_pods")) as receiver:
        work = asyncio.create_task(receiver.run(seen))
        try:
            yield
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


def create(api: Any, name: str, **spec: Any) -> None:
    api.create(PODS, {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}})


def bind(api: Any, name: str) -> None:
    api.create(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}})


def warn(api: Any, name: str) -> None:
    """What a kubelet would report."""
    uid = api.get(f"{PODS}/{name}")["metadata"]["uid"] if name == "web" else "of-no-pod"
    about = {"kind": "Pod", "namespace": "default", "name": name, "uid": uid}
    told = {
        "reason": "FailedMount",
        "type": "Warning",
        "message": "no such volume",
        "source": {"component": "kubelet", "host": "n1"},
    }
    times = dict.fromkeys(("firstTimestamp", "lastTimestamp"), "2026-11-22T17:13:33Z")
    event = {"metadata": {"name": f"{name}.1"}, "involvedObject": about, **told, **times}
    api.create("/api/v1/namespaces/default/events", event)


def run_it(api: Any, name: str) -> None:
    """What a kubelet would write."""
    at = "2026-11-22T17:13:33Z"
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": at}
    state = {"name": "c", "ready": True, "restartCount": 0, "image": "i", "imageID": "i"}
    running = {**state, "state": {"running": {"startedAt": at}}}
    status = {"phase": "Running", "conditions": [ready], "containerStatuses": [running]}
    api.patch(f"{PODS}/{name}/status", {"status": status}, "strategic-merge")


def test_a_pod_is_followed_from_its_gates_to_its_deletion(plane: Any) -> None:
    api, told = plane.api, Seen()
    allow(api)

    async def main() -> None:
        told.refusals = 2
        async with watching(plane, told, events=True):
            await asyncio.to_thread(create, api, "web", schedulingGates=[{"name": "example.com/quota"}])
            await told.until(lambda: "created" in told.of("web"))
            await asyncio.to_thread(api.patch, f"{PODS}/web", {"spec": {"schedulingGates": None}})
            await told.until(lambda: "gated" in told.of("web"))
            await asyncio.to_thread(bind, api, "web")
            for pod in ("unknown", "web"):
                await asyncio.to_thread(warn, api, pod)
            await told.until(lambda: "warned" in told.of("web"))
            await asyncio.to_thread(run_it, api, "web")
            await told.until(lambda: "ready" in told.of("web"))
            await asyncio.to_thread(api.delete, f"{PODS}/web")
            await told.until(lambda: "deleted" in told.of("web"))

    asyncio.run(main())
    assert told.of("web")[:5] == ["created", "unscheduled", "gated", "scheduled", "warned"]
    assert sorted(told.of("web")[5:7]) == ["ready", "started"]
    assert not told.of("unknown")
    assert told.of("web")[-1] == "deleted"
    assert len(told.ids) == len(told.spans)
    assert {span.attributes.get("k8s.node.name") for span in told.named("web")[3:]} == {"n1"}


def test_what_was_deleted_and_made_while_nobody_could_watch_is_told_after_it(plane: Any) -> None:
    api, told = plane.api, Seen()
    allow(api)

    def while_away() -> None:
        api.delete(f"{RBAC}/clusterrolebindings/podtrail")
        _restart(plane)
        api.delete(f"{PODS}/gone")
        create(api, "new")
        _restart(plane)  # what it has missed is no longer in any watch: 410
        allow(api)

    async def main() -> None:
        await asyncio.to_thread(create, api, "gone")
        await asyncio.to_thread(create, api, "kept")
        async with watching(plane, told):
            await told.until(lambda: bool(told.of("gone") and told.of("kept")))
            await asyncio.to_thread(while_away)
            await told.until(lambda: "deleted" in told.of("gone") and bool(told.of("new")))

    asyncio.run(main())
    assert told.of("gone") == ["created", "deleted"]
    missed = told.named("gone")[-1]
    assert missed.attributes["podtrail.inferred"] == ["start: when it was missed; it went while nobody watched"]
    assert (told.of("kept"), told.of("new")) == (["created"], ["created"])


def test_a_second_watcher_and_a_restarted_one_tell_the_same_spans(plane: Any) -> None:
    api = plane.api
    allow(api)
    first, beside, later = Seen(), Seen(), Seen()

    async def main() -> None:
        async with watching(plane, first), watching(plane, beside, namespaces=["default"]):
            await asyncio.to_thread(create, api, "web")
            await asyncio.to_thread(bind, api, "web")
            await asyncio.to_thread(run_it, api, "web")
            await first.until(lambda: "ready" in first.of("web"))
            await beside.until(lambda: "ready" in beside.of("web"))
        async with watching(plane, later):
            await later.until(lambda: "ready" in later.of("web"))

    asyncio.run(main())
    assert first.ids == beside.ids == later.ids
    (created,) = [span for span in later.spans if span.name == "pod created"]
    assert created.attributes["podtrail.time.resolution_ns"] == 1_000_000_000


def _restart(plane: Any) -> None:
    plane.stop_one("kube-apiserver", kill=True)
    plane.start_apiserver()
