"""The Pods that each scheduler of the matrix gets: bound, refused for each kind of reason, preempting, deleted."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.envtest.control_plane import Api, Refusal

DEADLINE: Final = 120.0
"""Seconds within which a scheduler does what is expected of it, on a machine that has other things to do."""
_POLL: Final = 0.1
_RBAC: Final = "/apis/admissionregistration.k8s.io/v1"
REFUSED: Final = "refused"
"""The beginning of the names of Pods whose binding the API server forbids."""


def until(done: Callable[[], Any], what: str) -> None:
    """Wait until `done` returns something true."""
    deadline = time.monotonic() + DEADLINE
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(_POLL)


def prepare(api: Api) -> None:
    """Create what is the same for all runs: the priority, and the policy that forbids some bindings."""
    api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    forbidden = {"expression": f"!object.metadata.name.startsWith('{REFUSED}')", "message": "bindings are frozen"}
    policy = {
        "metadata": {"name": "frozen"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [forbidden], "failurePolicy": "Fail"},
    }
    api.create(f"{_RBAC}/validatingadmissionpolicies", policy)
    binding = {"metadata": {"name": "frozen"}, "spec": {"policyName": "frozen", "validationActions": ["Deny"]}}
    api.create(f"{_RBAC}/validatingadmissionpolicybindings", binding)


class Workload:
    """Nodes, and Pods in a namespace of their own, with a name for each fate."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self.namespace = api.namespace(namespace)
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._nodes = {
            "n0": {"disk": "hdd"},
            "n1": {"disk": "hdd"},
            "n2": {"disk": "ssd"},
            "narrow": {"size": "narrow"},
        }
        for name, labels in self._nodes.items():
            api.node(name, {"cpu": "1" if name == "narrow" else "4"}, labels=labels)
        api.node("reserved", {"cpu": "4"}, taints=[{"key": "reserved", "value": "yes", "effect": "NoSchedule"}])

    def close(self) -> None:
        """Delete all Pods and nodes."""
        for pod in self._api.get(self._pods)["items"]:
            self.delete(pod["metadata"]["name"])
        for namespace in (self.namespace, "kube-system"):  # a later watch would list its Events
            self._api.request("DELETE", f"/api/v1/namespaces/{namespace}/events")
        for name in (*self._nodes, "reserved"):
            self._api.delete(f"/api/v1/nodes/{name}")

    def few(self, prefix: str) -> None:
        """Play what is short: Pods are bound, one waits, one is deleted while it waits."""
        for number in range(3):
            self.create(f"{prefix}-web-{number}")
        self.create(f"{prefix}-giant", "64")
        self.create(f"{prefix}-doomed", "65")
        self.await_bound(*(f"{prefix}-web-{number}" for number in range(3)))
        self.await_refused(f"{prefix}-giant", f"{prefix}-doomed")
        self.delete(f"{prefix}-doomed")

    def all(self) -> None:
        """Play each fate."""
        for number in range(5):
            self.create(f"web-{number}", labels={"app": "web"})
        self.create("gated", schedulingGates=[{"name": "example.com/quota"}])
        self.create("by-hand", nodeName="n0")
        self.create("giant", "64")
        self.create("picky", nodeSelector={"disk": "tape"})
        self.create("claims", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}])
        self.await_bound(*(f"web-{number}" for number in range(5)))
        self.await_refused("giant", "picky", "claims")
        self._late()
        self._preemption()
        self._deletions()
        self._refused_binding()

    def _late(self) -> None:
        """A Pod that fits once a node has another label."""
        self.create("late", nodeSelector={"disk": "nvme"})
        self.await_refused("late")
        self._api.patch("/api/v1/nodes/n1", {"metadata": {"labels": {"disk": "nvme"}}})
        self.await_bound("late")

    def _preemption(self) -> None:
        small: dict[str, Any] = {"nodeSelector": {"size": "narrow"}, "terminationGracePeriodSeconds": 0}
        for number in range(2):
            self.create(f"victim-{number}", "400m", **small)
        self.await_bound("victim-0", "victim-1")
        self.create("boss", "900m", priorityClassName="high", **small)
        self.await_bound("boss")

    def _deletions(self) -> None:
        """A Pod is deleted while it waits, another while it runs, and comes back under its name."""
        self.create("doomed", "64")
        self.await_refused("doomed")
        self.delete("doomed")
        for _ in range(2):
            self.create("again")
            self.await_bound("again")
            self.delete("again")

    def _refused_binding(self) -> None:
        self.create(REFUSED)
        self.await_refused(REFUSED, reason="SchedulerError")
        self.delete(REFUSED)

    def create(self, name: str, cpu: str = "100m", labels: Mapping[str, str] | None = None, **spec: Any) -> None:
        """Create a Pod."""
        container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": {"cpu": cpu}}}
        body = {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": [container], **spec}}
        self._api.create(self._pods, body)

    def delete(self, name: str) -> None:
        """Delete a Pod at once, if it is there."""
        try:
            self._api.delete(f"{self._pods}/{name}")
        except Refusal as refusal:
            if refusal.code != 404:
                raise

    def bound(self) -> dict[str, str]:
        """Return the node of each Pod that has one."""
        pods = self._api.get(self._pods)["items"]
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in pods
            if pod["spec"].get("nodeName") and pod["metadata"]["name"] != "by-hand"
        }

    def await_bound(self, *names: str) -> None:
        """Wait until Pods have nodes."""
        until(lambda: set(names) <= set(self.bound()), f"bound: {names}")

    def await_refused(self, *names: str, reason: str = "Unschedulable") -> None:
        """Wait until Pods have a condition that says why they wait."""
        for name in names:
            until(lambda: self._reason(name) == reason, f"{reason}: {name}")  # noqa: B023

    def _reason(self, name: str) -> str:
        conditions = self._api.get(f"{self._pods}/{name}").get("status", {}).get("conditions", [])
        return next((each.get("reason", "") for each in conditions if each["type"] == "PodScheduled"), "")
