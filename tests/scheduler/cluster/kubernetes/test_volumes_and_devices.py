"""Volumes are bound and devices allocated on a real API server; the test does the controllers' part."""

import asyncio
from typing import Any

import pytest

from tests.scheduler.cluster.kubernetes.stored_objects import (
    CLASSES,
    RESOURCE,
    VOLUMES,
    claim,
    claims_of,
    controller_binds,
    devices,
    local_volume,
    storage_class,
    using_volume,
    volume,
)

pytestmark = pytest.mark.control_plane

SELECTED = "volume.kubernetes.io/selected-node"


def is_bound(pod: Any) -> bool:
    return "nodeName" in pod["spec"]


async def test_a_local_volume_decides_the_node_and_is_bound_first(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    for suffix in "ab":
        api.node(f"{namespace}-{suffix}", labels={"for": namespace})
    created = local_volume(api, namespace, f"{namespace}-b")

    async with running(namespace):
        await asyncio.to_thread(
            api.create, pods, using_volume(make_pod("web", namespace, nodeSelector={"for": namespace}))
        )
        taken = await until(lambda: api.get(f"{VOLUMES}/{namespace}"), lambda volume: "claimRef" in volume["spec"])
        assert taken["spec"]["claimRef"]["uid"] == created["metadata"]["uid"]
        assert taken["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
        assert not is_bound(await asyncio.to_thread(api.get, f"{pods}/web"))
        await asyncio.to_thread(controller_binds, api, namespace)
        bound = await until(lambda: api.get(f"{pods}/web"), is_bound)
        assert bound["spec"]["nodeName"] == f"{namespace}-b"


async def test_a_claim_is_told_its_node_and_the_pod_waits_for_the_volume(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    claims, node = claims_of(namespace), f"{namespace}-a"
    api.node(node, labels={"for": namespace})
    api.create(CLASSES, storage_class(namespace, "disk.example.com"))
    api.create(claims, claim(namespace))

    async with running(namespace):
        await asyncio.to_thread(
            api.create, pods, using_volume(make_pod("web", namespace, nodeSelector={"for": namespace}))
        )
        told = await until(
            lambda: api.get(f"{claims}/data"), lambda claim: SELECTED in claim["metadata"].get("annotations", {})
        )
        assert told["metadata"]["annotations"][SELECTED] == node
        await asyncio.to_thread(api.create, VOLUMES, volume(namespace, namespace, node))
        await asyncio.to_thread(controller_binds, api, namespace)
        assert (await until(lambda: api.get(f"{pods}/web"), is_bound))["spec"]["nodeName"] == node


def with_device(make_pod: Any, name: str, scheduler: str, claim_name: str) -> Any:
    claims = [{"name": "gpu", "resourceClaimName": claim_name}]
    return make_pod(name, scheduler, nodeSelector={"for": scheduler}, resourceClaims=claims)


async def test_a_claim_gets_its_devices_and_the_pod_their_node(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    for suffix in "ab":
        api.node(f"{namespace}-{suffix}", labels={"for": namespace})
    devices(api, namespace, f"{namespace}-b", "x", "g")

    async with running(namespace, profiles=[{"schedulerName": namespace}]):
        created = await asyncio.to_thread(api.create, pods, with_device(make_pod, "web", namespace, "g"))
        bound = await until(lambda: api.get(f"{pods}/web"), is_bound)
        assert bound["spec"]["nodeName"] == f"{namespace}-b"
        claim = await asyncio.to_thread(api.get, f"{RESOURCE}/namespaces/{namespace}/resourceclaims/g")
        [result] = claim["status"]["allocation"]["devices"]["results"]
        assert (result["request"], result["device"]) == ("r", "x")
        assert [each["uid"] for each in claim["status"]["reservedFor"]] == [created["metadata"]["uid"]]
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]


async def test_no_device_is_given_twice_and_one_that_goes_free_is_given_again(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    claims = f"{RESOURCE}/namespaces/{namespace}/resourceclaims"
    api.node(f"{namespace}-b", labels={"for": namespace})
    devices(api, namespace, f"{namespace}-b", "xy", "cde")

    def holders() -> dict[str, str]:
        """The claims that have a device, by the device."""
        found = [each for each in api.get(claims)["items"] if "allocation" in each.get("status", {})]
        held = [(each["status"]["allocation"]["devices"]["results"], each["metadata"]["name"]) for each in found]
        assert len({results[0]["device"] for results, _ in held}) == len(held)
        return {results[0]["device"]: name for results, name in held}

    def waiting() -> list[str]:
        return [each["metadata"]["name"] for each in api.get(pods)["items"] if not is_bound(each)]

    async with running(namespace, profiles=[{"schedulerName": namespace}]):
        for name in "cde":
            await asyncio.to_thread(api.create, pods, with_device(make_pod, name, namespace, name))
        await until(waiting, lambda names: len(names) == 1)
        held = await asyncio.to_thread(holders)
        assert held.keys() == {"x", "y"}
        [last] = await asyncio.to_thread(waiting)
        # What the claim's controller does when the Pod that uses it is gone.
        await asyncio.to_thread(api.delete, f"{pods}/{held['x']}")
        free = {"status": {"allocation": None, "reservedFor": None}}
        await asyncio.to_thread(api.patch, f"{claims}/{held['x']}/status", free)
        await until(lambda: api.get(f"{pods}/{last}"), is_bound)
        assert await asyncio.to_thread(holders) == {"x": last, "y": held["y"]}
