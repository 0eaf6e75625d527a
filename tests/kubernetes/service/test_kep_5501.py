"""KEP-5501's integration tests, with the feature on and off, on a real API server."""

import asyncio
from typing import Any

import pytest
from podtrail_scheduler.framework.status import Status, unschedulable
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.queueing.events import Action, ClusterEvent, Registration, Resource

pytestmark = pytest.mark.control_plane
GATES = "SchedulerAsyncAPICalls=true,SchedulerPreEnqueuePodStatus=true"


class Readiness:
    """Holds Pods back until they are labelled `ready`."""

    name = "Readiness"

    def __init__(self, handle: Any, args: Any = None) -> None:
        pass

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return None if "ready" in pod.labels else unschedulable(f"waiting for {pod.annotations.get('for', 'it')}")

    def events_to_register(self) -> tuple[Registration, ...]:
        return (Registration(ClusterEvent(Resource.TARGET_POD, Action.UPDATE)),)


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


@pytest.fixture
def own(control_plane: Any, namespace: str) -> Namespace:
    return Namespace(control_plane.api, namespace)


def test_a_rejected_pod_has_a_condition_and_an_event_and_is_scheduled_when_it_is_ready(
    own: Namespace, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    async def test() -> None:
        async with running(namespace, plugins=PLUGINS, gates=GATES):
            await asyncio.to_thread(own.api.create, own.pods, make_pod("held", namespace))
            condition = await until(lambda: own.condition("held"))
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
