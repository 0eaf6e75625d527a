"""The scheduling queue beside a stock kube-scheduler's: the same Pods and events move both alike."""

import asyncio
import urllib.request
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.control_plane


def incoming(text: str) -> dict[tuple[str, str], float]:
    """`scheduler_queue_incoming_pods_total` by queue and event.

    Whether a Pod is in back-off still when an event moves it depends on the second in which it failed: what follows
    from that is left out.
    """
    [family] = [each for each in text_string_to_metric_families(text) if each.name == "scheduler_queue_incoming_pods"]
    found: dict[tuple[str, str], float] = {}
    for sample in family.samples:
        queue, event = sample.labels["queue"], sample.labels["event"]
        if event in ("BackoffComplete", "PopFromBackoffQ"):
            continue
        queue = "active or backoff" if queue in ("active", "backoff") else queue
        found[queue, event] = found.get((queue, event), 0) + sample.value
    return found


def waiting(text: str) -> dict[str, float]:
    [family] = [each for each in text_string_to_metric_families(text) if each.name == "scheduler_pending_pods"]
    return {sample.labels["queue"]: sample.value for sample in family.samples}


async def test_the_same_events_move_the_same_pods(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any, kube_scheduler: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    both = f"{namespace}-ours", f"{namespace}-theirs"
    kube_scheduler(both[1])
    for number in (1, 2):
        api.node(f"{namespace}-{number}", {"cpu": "4"})

    def create(name: str, **spec: Any) -> None:
        for scheduler in both:
            api.create(pods, make_pod(f"{scheduler}-{name}", scheduler, **spec))

    def bound(name: str) -> bool:
        return all("nodeName" in api.get(f"{pods}/{each}-{name}")["spec"] for each in both)

    def refused(name: str) -> bool:
        statuses = [api.get(f"{pods}/{each}-{name}")["status"] for each in both]
        return all(any(one["type"] == "PodScheduled" for one in status.get("conditions", ())) for status in statuses)

    async with running(both[0]) as service:

        def texts() -> tuple[str, str]:
            with urllib.request.urlopen(f"http://127.0.0.1:{service.port}/metrics", timeout=120) as answer:
                return answer.read().decode(), control_plane.scheduler_get("/metrics")

        def change() -> None:
            create("gated", schedulingGates=[{"name": "example.com/quota"}])
            create("picky", nodeSelector={"disk": namespace})
            create("huge", cpu="100", tolerations=[{"operator": "Exists"}])
            create("plain")

        await asyncio.to_thread(change)
        await until(lambda: bound("plain") and refused("picky") and refused("huge"))
        await until(lambda: [waiting(each)["unschedulable"] for each in texts()], lambda found: found == [2, 2])
        await asyncio.to_thread(
            api.patch, f"/api/v1/nodes/{namespace}-1", {"metadata": {"labels": {"disk": namespace}}}
        )
        await until(lambda: bound("picky"))
        for each in both:
            await asyncio.to_thread(api.patch, f"{pods}/{each}-gated", {"spec": {"schedulingGates": []}})
        await until(lambda: bound("gated"))
        for each in both:
            await asyncio.to_thread(api.delete, f"{pods}/{each}-plain")
        await asyncio.to_thread(api.node, f"{namespace}-3", {"cpu": "200"})
        await until(lambda: bound("huge"))
        ours, theirs = await until(texts, lambda both: all(not sum(waiting(each).values()) for each in both))
        assert incoming(ours) == incoming(theirs)
