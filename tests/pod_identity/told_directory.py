"""Spans of a cluster's components as a `PodDirectory` is told of them."""

from collections.abc import Mapping
from typing import Final

from podtrail.otlp import Link, SpanView, Value, encode_span, resource_header
from podtrail.pod_identity import (
    ClockTime,
    IdentifiedPod,
    PodClues,
    PodCreation,
    PodDirectory,
    SpanSource,
    read_clues,
)

SECOND: Final = 1_000_000_000
MS: Final = 1_000_000
AT: Final = 1_790_000_000 * SECOND
UID: Final = "586efa0a-cb6b-4800-86f8-76d60c62e7ea"
OTHER: Final = "1fd76290-9b0b-4a11-abb8-53a7f3aebe5b"
SANDBOX: Final = "436b55bb282d5e2482c73ad664777e7ffd541108a6c448c732778570091693d9"
CONTAINER: Final = "8b99d4603b0909f2f6ef0818dc0b25bb92b43edeb1df4803dc557078caedd108"
SERVER, CLIENT = 2, 3
KUBELET: Final = resource_header({"service.name": "kubelet", "host.name": "node-1"})
APISERVER: Final = resource_header({"service.name": "apiserver"})
SCHEDULER: Final = resource_header({"service.name": "podtrail-scheduler"})
CONTAINERD: Final = resource_header({"service.name": "containerd"})
KUBELET_AGENT: Final = "kubelet/v1.37.1 (linux/amd64) kubernetes/0000000"


class ToldDirectory:
    """A directory with spans of a cluster's components to learn and to ask about."""

    def __init__(self, most_pods: int = 100) -> None:
        self.forgotten: list[tuple[str, str]] = []
        self.directory = PodDirectory(
            most_pods, 900 * SECOND, lambda what, reason: self.forgotten.append((what, reason))
        )
        self.spans = 0

    def clues(
        self,
        name: str,
        attributes: Mapping[str, Value],
        *,
        kind: int = 1,
        at: int = AT,
        trace: bytes = b"t" * 16,
        links: list[Link] | None = None,
        parent: bytes = b"",
    ) -> PodClues:
        self.spans += 1
        raw = encode_span(
            trace_id=trace,
            span_id=self.spans.to_bytes(8, "big"),
            parent_span_id=parent,
            name=name,
            start=at,
            end=at + MS,
            kind=kind,
            attributes=attributes,
            links=links or [],
        )
        clues = read_clues(SpanView(raw))
        assert clues is not None
        return clues

    def source(self, resource: bytes) -> SpanSource:
        return self.directory.source(resource)

    def learn(self, clues: PodClues, resource: bytes) -> PodClues:
        self.directory.learn(clues, self.source(resource), AT)
        return clues

    def ask(self, clues: PodClues, resource: bytes) -> IdentifiedPod | None:
        return self.directory.identify(clues, self.source(resource))

    def attempt(self, uid: str, place: str, at: int = AT, trace: bytes = b"a" * 16) -> None:
        self.directory.learn_attempt(uid, place, trace, at, self.source(SCHEDULER), AT)

    def creation(self, place: str, at: int, span: bytes) -> None:
        clock = self.source(APISERVER).clock
        self.directory.learn_creation(place, PodCreation(ClockTime(at, clock), ClockTime(at + MS, clock), span), AT)

    def sync(self, uid: str, name: str, at: int = AT, kind: str = "syncPod", trace: bytes = b"y" * 16) -> PodClues:
        told: dict[str, Value] = {"k8s.pod.uid": uid, "k8s.namespace.name": "default", "k8s.pod.name": name}
        return self.learn(self.clues(kind, told, at=at, trace=trace), KUBELET)

    def sandbox(self, uid: str, name: str = "web-0", sandbox: str = SANDBOX) -> PodClues:
        told: dict[str, Value] = {"sandbox.id": sandbox, "sandbox.name": f"{name}_default_{uid}_0"}
        return self.learn(self.clues("cri.sandbox.run", told), CONTAINERD)

    def container(self, uid: str, container: str = CONTAINER) -> PodClues:
        told: dict[str, Value] = {
            "container.id": container,
            "sandbox.id": SANDBOX,
            "container.name": f"main_web-0_default_{uid}_0",
        }
        return self.learn(self.clues("runtime.v1.RuntimeService/CreateContainer", told, kind=SERVER), CONTAINERD)

    def request(self, name: str = "web-0", at: int = AT, method: str = "GET") -> PodClues:
        path = f"/api/v1/namespaces/default/pods/{name}"
        told: dict[str, Value] = {"url.path": path, "audit-id": "a", "user_agent.original": KUBELET_AGENT}
        return self.clues(f"{method} pods", told, kind=SERVER, at=at, trace=b"r" * 16)

    def kubelet_request(self, name: str = "web-0", at: int = AT, rest: str = "/status") -> PodClues:
        url = f"https://10.0.0.1:6443/api/v1/namespaces/default/pods/{name}{rest}"
        return self.clues("HTTP PATCH", {"url.full": url}, kind=CLIENT, at=at, trace=b"k" * 16)

    def deletion(self, at: int, name: str = "web-0") -> None:
        path = f"/api/v1/namespaces/default/pods/{name}"
        told: dict[str, Value] = {"url.path": path, "http.request.method": "DELETE", "http.response.status_code": 200}
        self.learn(self.clues("DELETE pods", told, kind=SERVER, at=at, trace=b"d" * 16), APISERVER)

    def event(self, name: str, agent: str, at: int = AT, first: int = 0) -> PodClues:
        path = f"/api/v1/namespaces/default/events/{name}.{first or at:x}"
        told: dict[str, Value] = {"url.path": path, "audit-id": "e", "user_agent.original": agent}
        return self.clues("PATCH events", told, kind=SERVER, at=at, trace=b"e" * 16)
