"""The Events that the scheduler writes, with kube-scheduler's reasons, actions and notes."""

import asyncio
import socket
from typing import Any

import pytest

pytestmark = pytest.mark.control_plane


def short(event: Any) -> tuple[str, str, str, str]:
    return event["type"], event["reason"], event["action"], event["note"]


@pytest.mark.parametrize("gates", ["", "SchedulerAsyncAPICalls=true"], ids=["waiting for calls", "asynchronous calls"])
async def test_failed_scheduling_scheduled_and_preempted_are_told(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any, gates: str
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    node = f"{namespace}-n"
    api.node(node, {"cpu": "1"}, labels={"for": namespace})
    api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": namespace}, "value": 1000})
    selector = {"nodeSelector": {"for": namespace}}

    def events(name: str) -> list[Any]:
        items = api.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
        return sorted((each for each in items if each["regarding"]["name"] == name), key=lambda one: one["eventTime"])

    async with running(namespace, gates=gates):
        low = await asyncio.to_thread(api.create, pods, make_pod("low", namespace, "1", **selector))
        [scheduled] = await until(lambda: events("low"))
        assert short(scheduled) == (
            "Normal",
            "Scheduled",
            "Binding",
            f"Successfully assigned {namespace}/low to {node}",
        )
        assert scheduled["reportingController"] == namespace
        assert scheduled["reportingInstance"] == f"{namespace}-{socket.gethostname()}"
        assert scheduled["regarding"]["uid"] == low["metadata"]["uid"]
        urgent = make_pod("high", namespace, "1", priorityClassName=namespace, **selector)
        high = await asyncio.to_thread(api.create, pods, urgent)
        [_, preempted] = await until(lambda: events("low"), lambda found: len(found) == 2)
        note = f"Preempted by pod {high['metadata']['uid']} on node {node}"
        assert short(preempted) == ("Normal", "Preempted", "Preempting", note)
        assert preempted["related"]["name"] == "high"
        told = await until(lambda: events("high"), lambda found: len(found) >= 2)
        assert short(told[0])[:3] == ("Warning", "FailedScheduling", "Scheduling")
        assert "1 Insufficient cpu" in told[0]["note"]
        assert short(told[-1])[:3] == ("Normal", "Scheduled", "Binding")
