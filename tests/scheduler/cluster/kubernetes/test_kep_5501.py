"""KEP-5501's integration tests, with the feature on and off, on a real API server.

| the KEP's words | test |
|---|---|
| the scheduler will asynchronously patch the Pod's status with the last-captured rejection message | `test_a_rejected_pod_has_a_condition_and_an_event_...` |
| test cases ... with feature flag enabled and disabled | `test_with_the_feature_off_...` |
| I also don't want to see transient errors that resolve in seconds | `test_a_rejection_that_resolves_within_the_delay_...` |
| the pending update will be cancelled or overwritten | `test_a_rejection_that_changes_within_the_delay_...` |
| skip sending a redundant patch when processing pods with scheduling gates | `test_a_pod_with_scheduling_gates_...` |
| only be enqueued if the status is new or different from the cached one | `test_the_same_rejection_is_patched_once_...` |
| a call to remove the NotReadyForScheduling condition will be enqueued | `test_the_condition_is_removed_when_a_pod_passes_...` |
| Waiting for resource claim 'my-claim' to be present | `test_a_pod_says_which_resource_claim_it_waits_for` |
| DefaultPreemption ... messages will be improved | tests/scheduler/plugins/preemption/test_carrying_out.py |
| a failed API call, a retry of the status patch | `test_a_patch_that_fails_holds_up_no_other_pod_...` |
| benchmarks that use the scheduling gates and other PreEnqueue plugins | benchmarks `pre_enqueue_status`, `pre_enqueue_on_kubernetes` |

More of it, in virtual time, is in tests/scheduler/api_dispatcher/test_kep_5501.py.
"""
# ruff: noqa: E501

import asyncio
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


PLUGINS = {"Readiness": Readiness}


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

    def status_patches(self) -> int:
        """How many patches of Pod statuses the API server has been sent, by its own count."""
        asked = {"resource": "pods", "subresource": "status", "verb": "PATCH"}
        return sum(
            int(sample.value)
            for family in text_string_to_metric_families(self.api.get("/metrics"))
            if family.name == "apiserver_request"
            for sample in family.samples
            if asked.items() <= sample.labels.items()
        )


@pytest.fixture
def own(control_plane: Any, namespace: str) -> Namespace:
    return Namespace(control_plane.api, namespace)


def test_a_rejected_pod_has_a_condition_and_an_event_and_is_scheduled_when_it_is_ready(
    own: Namespace, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    async def test() -> None:
        clock = asyncio.get_running_loop().time
        async with running(namespace, plugins=PLUGINS, gates=GATES):
            created = clock()
            await asyncio.to_thread(own.api.create, own.pods, make_pod("held", namespace))
            condition = await until(lambda: own.condition("held"))
            assert clock() - created >= DELAY
            [event] = await until(lambda: own.events("held"))
            assert (condition["status"], condition["reason"]) == ("False", "NotReadyForScheduling")
            assert condition["message"] == event["note"] == "waiting for it"
            assert (event["reason"], event["reportingController"]) == ("NotReadyForScheduling", namespace)
            await asyncio.to_thread(own.merge, "held", {"labels": {"ready": ""}})
            await until(lambda: own.condition("held"), lambda condition: condition.get("status") == "True")

    asyncio.run(test())


def test_with_the_feature_off_a_rejected_pod_has_neither(
    control_plane: Any, own: Namespace, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    on = Namespace(control_plane.api, control_plane.api.namespace(f"{namespace}-on"))

    async def test() -> None:
        off = running(namespace, plugins=PLUGINS, gates="SchedulerAsyncAPICalls=true")
        async with off, running(f"{namespace}-on", plugins=PLUGINS, gates=GATES):
            await asyncio.to_thread(own.api.create, own.pods, make_pod("held", namespace))
            await asyncio.to_thread(on.api.create, on.pods, make_pod("held", f"{namespace}-on"))
            await until(lambda: on.events("held"))
            assert await asyncio.to_thread(own.condition, "held") == {}
            assert await asyncio.to_thread(own.events, "held") == []

    asyncio.run(test())


def test_a_rejection_that_resolves_within_the_delay_leaves_no_trace(
    own: Namespace, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    async def test() -> None:
        async with running(namespace, plugins=PLUGINS, gates=GATES):
            await asyncio.to_thread(own.api.create, own.pods, make_pod("brief", namespace))
            await asyncio.to_thread(own.api.create, own.pods, make_pod("held", namespace))
            await asyncio.to_thread(own.merge, "brief", {"labels": {"ready": ""}})
            await until(lambda: own.events("held"))
            await until(lambda: own.condition("brief"), lambda condition: condition.get("status") == "True")
            told = await asyncio.to_thread(own.events, "brief")
            assert "NotReadyForScheduling" not in {event["reason"] for event in told}

    asyncio.run(test())


def test_a_rejection_that_changes_within_the_delay_is_told_as_it_is_last(
    own: Namespace, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    async def test() -> None:
        async with running(namespace, plugins=PLUGINS, gates=GATES):
            await asyncio.to_thread(own.api.create, own.pods, make_pod("held", namespace))
            await asyncio.to_thread(own.merge, "held", {"annotations": {"for": "a claim"}})
            condition = await until(lambda: own.condition("held"))
            assert condition["message"] == "waiting for a claim"
            [event] = await until(lambda: own.events("held"))
            assert event["note"] == "waiting for a claim"

    asyncio.run(test())


def test_a_pod_with_scheduling_gates_keeps_the_api_servers_condition(
    own: Namespace, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    async def test() -> None:
        async with running(namespace, plugins=PLUGINS, gates=GATES):
            gated = make_pod("gated", namespace, schedulingGates=[{"name": "example.com/quota"}])
            created = await asyncio.to_thread(own.api.create, own.pods, gated)
            await asyncio.to_thread(own.api.create, own.pods, make_pod("held", namespace))
            await until(lambda: own.events("held"))
            now = await asyncio.to_thread(own.api.get, f"{own.pods}/gated")
            assert (await asyncio.to_thread(own.condition, "gated"))["reason"] == "SchedulingGated"
            assert now["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
            assert await asyncio.to_thread(own.events, "gated") == []

    asyncio.run(test())


def test_a_pod_says_which_resource_claim_it_waits_for(
    own: Namespace, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    claims = [{"name": "gpu", "resourceClaimName": "my-claim"}]

    async def test() -> None:
        async with running(namespace, gates=GATES):
            await asyncio.to_thread(own.api.create, own.pods, make_pod("web", namespace, resourceClaims=claims))
            condition = await until(lambda: own.condition("web"))
            [event] = await until(lambda: own.events("web"))
            assert condition["reason"] == event["reason"] == "NotReadyForScheduling"
            assert condition["message"] == event["note"] == "Waiting for resource claim 'my-claim' to be present"
            claim = {"metadata": {"name": "my-claim"}, "spec": {}}
            path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
            await asyncio.to_thread(own.api.create, path, claim)
            await until(lambda: own.condition("web"), lambda condition: condition.get("status") == "True")

    asyncio.run(test())


def test_the_same_rejection_is_patched_once_however_often_it_is_made_and_by_however_many_schedulers(
    own: Namespace, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    """What must not come cannot be waited for: another Pod's patch, asked for later, tells that it did not."""

    async def test() -> None:
        before = await asyncio.to_thread(own.status_patches)
        async with running(namespace, plugins=PLUGINS, gates=GATES):
            await asyncio.to_thread(own.api.create, own.pods, make_pod("held", namespace))
            await until(lambda: own.condition("held"))
            for number in range(3):
                await asyncio.to_thread(own.merge, "held", {"annotations": {"n": str(number)}})
            await asyncio.to_thread(own.api.create, own.pods, make_pod("later", namespace))
            await until(lambda: own.condition("later"))
        async with running(namespace, plugins=PLUGINS, gates=GATES):
            await asyncio.to_thread(own.api.create, own.pods, make_pod("last", namespace))
            await until(lambda: own.condition("last"))
        assert await asyncio.to_thread(own.status_patches) - before == 3

    asyncio.run(test())


def test_the_condition_is_removed_when_a_pod_passes_and_is_not_scheduled_yet(
    own: Namespace, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    class Patience:
        """Has Pods wait for a permission that does not come."""

        name = "Patience"

        def __init__(self, *_: object) -> None:
            """Needs nothing."""

        def permit(self, state: CycleState, pod: Pod, node: str) -> PermitResult:
            return PermitResult(Status(Code.WAIT), timeout=3600 * 10**9)

    async def test() -> None:
        async with running(namespace, plugins=PLUGINS | {"Patience": Patience}, gates=GATES):
            await asyncio.to_thread(own.api.create, own.pods, make_pod("held", namespace))
            await until(lambda: own.condition("held"))
            await asyncio.to_thread(own.merge, "held", {"labels": {"ready": ""}})
            await until(lambda: own.condition("held"), lambda condition: not condition)

    asyncio.run(test())


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
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return sum(
            sample.value
            for family in text_string_to_metric_families(answer.read().decode())
            if family.name == "scheduler_async_api_call_execution"
            for sample in family.samples
            if wanted.items() <= sample.labels.items()
        )


def test_a_patch_that_fails_holds_up_no_other_pod_and_is_sent_again(
    own: Namespace, namespace: str, running: Any, until: Any, make_pod: Any, refusing: Callable[[], None]
) -> None:
    async def test() -> None:
        async with running(namespace, plugins=PLUGINS, gates=GATES) as service:
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

    asyncio.run(test())
