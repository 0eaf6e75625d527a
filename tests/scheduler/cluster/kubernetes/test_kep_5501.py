"""KEP-5501's integration tests, with the feature on and off, on a real API server.

Most of its sentences hold in `test_what_lasts_of_rejections_is_told_in_conditions_and_events`: the rejection of a Pod
is patched after the delay, one that resolves within it is not, one that changes is told as it is last, gated Pods are
left alone, a claim that is waited for is named, the condition is removed when a Pod passes; and with the feature off
nothing is told. `test_a_patch_that_fails_...` is "a failed API call, a retry of the status patch". That the same
rejection is patched once is proven in virtual time, with all the rest: tests/scheduler/api_dispatcher/test_kep_5501.py.
DefaultPreemption's messages are in tests/scheduler/plugins/preemption/test_carrying_out.py, the benchmarks are
`pre_enqueue_status` and `pre_enqueue_on_kubernetes`.
"""

import asyncio
import functools
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.events import ActionType, ClusterEvent, EventResource, Registration
from podtrail_scheduler.framework.extension_points import PermitResult
from podtrail_scheduler.framework.status import Code, Status, unschedulable
from podtrail_scheduler.objects import Pod
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.control_plane
GATES = "SchedulerAsyncAPICalls=true,SchedulerPreEnqueuePodStatus=true"
DELAY = 5
"""Seconds that a rejection must last."""


class Readiness:
    """Holds Pods back until they are labelled `ready`."""

    name = "Readiness"

    def __init__(self, handle: Any, args: Any = None) -> None:
        pass

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return None if "ready" in pod.labels else unschedulable(f"waiting for {pod.annotations.get('for', 'it')}")

    def events_to_register(self) -> tuple[Registration, ...]:
        return (Registration(ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE)),)


MESSAGES = {
    "held": "waiting for it",
    "patient": "waiting for it",
    "changed": "waiting for a claim",
    "web": "Waiting for resource claim 'my-claim' to be present",
}
"""Of the Pods that stay rejected."""


class Namespace:
    """What tests do in theirs."""

    def __init__(self, api: Any, name: str) -> None:
        self.api = api
        self.pods = f"/api/v1/namespaces/{name}/pods"
        self._events = f"/apis/events.k8s.io/v1/namespaces/{name}/events"
        api.node(f"{name}-n", labels={"for": name})

    def events(self, pod: str) -> list[Any]:
        return [each for each in self.api.get(self._events)["items"] if each["regarding"]["name"] == pod]

    def condition(self, pod: str) -> dict[str, Any]:
        conditions = self.api.get(f"{self.pods}/{pod}")["status"].get("conditions", ())
        return next((each for each in conditions if each["type"] == "PodScheduled"), {})

    def merge(self, pod: str, metadata: dict[str, Any]) -> Any:
        return self.api.patch(f"{self.pods}/{pod}", {"metadata": metadata})


@pytest.fixture
def own(control_plane: Any, namespace: str) -> Namespace:
    return Namespace(control_plane.api, namespace)


class Patience:
    """Has Pods that are labelled `patient` wait for a permission that does not come."""

    name = "Patience"

    def __init__(self, *_: object) -> None:
        """Needs nothing."""

    def permit(self, state: CycleState, pod: Pod, node: str) -> PermitResult | None:
        return PermitResult(Status(Code.WAIT), timeout=3600 * 10**9) if "patient" in pod.labels else None


async def test_what_lasts_of_rejections_is_told_in_conditions_and_events(
    own: Namespace, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    """Every Pod has the delay that the last of them has: none is waited for by itself."""
    ready: dict[str, Any] = {"labels": {"ready": ""}}
    claims = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"

    def create() -> dict[str, Any]:
        gated = make_pod("gated", namespace, schedulingGates=[{"name": "example.com/quota"}])
        claiming = make_pod("web", namespace, resourceClaims=[{"name": "gpu", "resourceClaimName": "my-claim"}])
        pods = [gated, claiming, make_pod("off", f"{namespace}-off")]
        pods += [make_pod(name, namespace) for name in ("brief", "changed", "patient", "held")]
        claiming["metadata"] |= ready
        created = {pod["metadata"]["name"]: own.api.create(own.pods, pod) for pod in pods}
        own.merge("brief", ready)
        own.merge("changed", {"annotations": {"for": "a claim"}})
        return created

    def told(pod: str) -> dict[str, Any] | None:
        """The condition, once there is an event as well."""
        return own.condition(pod) if own.events(pod) else None

    clock = asyncio.get_running_loop().time
    off = running(f"{namespace}-off", plugins={"Readiness": Readiness}, gates="SchedulerAsyncAPICalls=true")
    plugins = {"Readiness": Readiness, "Patience": Patience}
    async with off, running(namespace, plugins=plugins, gates=GATES):
        start = clock()
        created = await asyncio.to_thread(create)
        for pod, message in MESSAGES.items():
            condition = await until(functools.partial(told, pod))
            assert clock() - start >= DELAY
            [event] = own.events(pod)
            assert (condition["status"], condition["reason"]) == ("False", "NotReadyForScheduling")
            assert condition["message"] == event["note"] == message
            assert (event["reason"], event["reportingController"]) == ("NotReadyForScheduling", namespace)
        assert own.condition("gated")["reason"] == "SchedulingGated"
        version = created["gated"]["metadata"]["resourceVersion"]
        assert own.api.get(f"{own.pods}/gated")["metadata"]["resourceVersion"] == version
        assert own.condition("off") == {}
        assert own.events("gated") == own.events("off") == []
        await until(lambda: own.condition("brief").get("status") == "True")
        assert "NotReadyForScheduling" not in {event["reason"] for event in own.events("brief")}
        own.merge("held", ready)
        own.merge("patient", {"labels": {"ready": "", "patient": ""}})
        own.api.create(claims, {"metadata": {"name": "my-claim"}, "spec": {}})
        await until(lambda: own.condition("held").get("status") == "True")
        await until(lambda: own.condition("web").get("status") == "True")
        await until(lambda: own.condition("patient") == {})


WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.fixture
def refusing(own: Namespace, namespace: str) -> Callable[[], None]:
    """From now on the API server can't write Pod statuses of the namespace: its webhook for them does not answer.

    Returns what makes it answer again.
    """
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/status"], "operations": ["UPDATE"]}
    webhook = {
        "name": "statuses.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    own.api.create(WEBHOOKS, {"metadata": {"name": namespace}, "webhooks": [webhook]})

    def end() -> None:
        own.api.delete(f"{WEBHOOKS}/{namespace}")

    return end


def failed_patches(port: int) -> float:
    """How many patches of Pod statuses have failed that service, by its metrics."""
    wanted = {"call_type": "pod_status_patch", "result": "error"}
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as answer:
        return sum(
            sample.value
            for family in text_string_to_metric_families(answer.read().decode())
            if family.name == "scheduler_async_api_call_execution"
            for sample in family.samples
            if wanted.items() <= sample.labels.items()
        )


async def test_a_patch_that_fails_holds_up_no_other_pod_and_is_sent_again(
    own: Namespace, namespace: str, running: Any, until: Any, make_pod: Any, refusing: Callable[[], None]
) -> None:
    async with running(namespace, plugins={"Readiness": Readiness}, gates=GATES) as service:
        await asyncio.to_thread(own.api.create, own.pods, make_pod("held", namespace))
        await until(lambda: failed_patches(service.port))
        free = make_pod("free", namespace)
        free["metadata"]["labels"] = {"ready": ""}
        await asyncio.to_thread(own.api.create, own.pods, free)
        await until(lambda: own.api.get(f"{own.pods}/free")["spec"].get("nodeName"))
        assert await asyncio.to_thread(own.condition, "held") == {}
        await asyncio.to_thread(refusing)
        condition = await until(lambda: own.condition("held"))
        assert condition["reason"] == "NotReadyForScheduling"
