"""The scheduling queue beside a stock kube-scheduler's: the same Pods and events move both alike."""

import asyncio
import urllib.request
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.control_plane
PODS = "/api/v1/namespaces/default/pods"
BOTH = ("ours", "theirs")


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


def test_the_same_events_move_the_same_pods(start_control_plane: Any, running: Any, until: Any, make_pod: Any) -> None:
    plane = start_control_plane()
    api = plane.api
    plane.start_scheduler({"profiles": [{"schedulerName": "theirs"}]})
    for name in ("n1", "n2"):
        api.node(name, {"cpu": "4"})

    def create(name: str, **spec: Any) -> None:
        for scheduler in BOTH:
            api.create(PODS, make_pod(f"{scheduler}-{name}", scheduler, **spec))

    def bound(name: str) -> bool:
        return all("nodeName" in api.get(f"{PODS}/{each}-{name}")["spec"] for each in BOTH)

    def refused(name: str) -> bool:
        statuses = [api.get(f"{PODS}/{each}-{name}")["status"] for each in BOTH]
        return all(any(one["type"] == "PodScheduled" for one in status.get("conditions", ())) for status in statuses)

    async def test() -> None:
        async with running("ours", kubeconfig=plane.kubeconfig) as service:

            def texts() -> tuple[str, str]:
                with urllib.request.urlopen(f"http://127.0.0.1:{service.port}/metrics", timeout=60) as answer:
                    return answer.read().decode(), plane.scheduler_get("/metrics")

            await asyncio.to_thread(create, "gated", schedulingGates=[{"name": "example.com/quota"}])
            await asyncio.to_thread(create, "picky", nodeSelector={"disk": "ssd"})
            await asyncio.to_thread(create, "huge", cpu="100", tolerations=[{"operator": "Exists"}])
            await asyncio.to_thread(create, "plain")
            await until(lambda: bound("plain") and refused("picky") and refused("huge"))
            await until(lambda: [waiting(each)["unschedulable"] for each in texts()], lambda found: found == [2, 2])
            await asyncio.to_thread(api.patch, "/api/v1/nodes/n1", {"metadata": {"labels": {"disk": "ssd"}}})
            await until(lambda: bound("picky"))
            for each in BOTH:
                await asyncio.to_thread(api.patch, f"{PODS}/{each}-gated", {"spec": {"schedulingGates": []}})
            await until(lambda: bound("gated"))
            for each in BOTH:
                await asyncio.to_thread(api.delete, f"{PODS}/{each}-plain")
            await asyncio.to_thread(api.node, "n3", {"cpu": "200"})
            await until(lambda: bound("huge"))
            ours, theirs = await until(texts, lambda both: all(not sum(waiting(each).values()) for each in both))
            assert incoming(ours) == incoming(theirs)

    asyncio.run(test())
    plane.stop()
