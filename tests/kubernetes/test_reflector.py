"""A reflector on a real API server tells a consistent story of each object."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from podtrail_kubernetes.reflector import (
    Added,
    Change,
    Deleted,
    Listed,
    ListWatch,
    Modified,
    Reflector,
    ReflectorTiming,
)
from podtrail_kubernetes.rest_client import RestClient

pytestmark = pytest.mark.control_plane

QUICK = ReflectorTiming(first_back_off=0.01, longest_back_off=0.1)
CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"


class Reflected(logging.Handler):
    """A reflector that runs, what it gives, and whether it logged a failure."""

    def __init__(self, reflector: Reflector) -> None:
        super().__init__(logging.WARNING)
        self.reflector = reflector
        self.failure = asyncio.Event()
        self._changes: asyncio.Queue[Change] = asyncio.Queue()

    async def take(self, change: Change) -> None:
        await self._changes.put(change)

    def emit(self, record: logging.LogRecord) -> None:
        self.failure.set()

    async def next(self) -> Change:
        return await asyncio.wait_for(self._changes.get(), 60)


@asynccontextmanager
async def reflected(kubeconfig: Path, resource: ListWatch, **options: Any) -> AsyncIterator[Reflected]:
    client = await RestClient.open(kubeconfig, agent="podtrail-tests")
    it = Reflected(Reflector(client, resource, random.Random(1), timing=QUICK, **options))
    task = asyncio.create_task(it.reflector.run(it.take))
    logging.getLogger("podtrail_kubernetes").addHandler(it)
    try:
        yield it
    finally:
        logging.getLogger("podtrail_kubernetes").removeHandler(it)
        task.cancel()
        await asyncio.wait([task])
        await client.close()


def names(change: Change) -> list[str]:
    objects = change.objects if isinstance(change, Listed) else [change.object]
    return [each["metadata"]["name"] for each in objects]


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def test_lists_in_pages_and_then_tells_each_change(control_plane: Any, namespace: str) -> None:
    api, path = control_plane.api, CONFIG_MAPS.format(namespace)
    for number in range(5):
        api.create(path, config_map(f"c{number}"))

    async with reflected(control_plane.kubeconfig, ListWatch(path), page=2) as it:
        first = await it.next()
        assert isinstance(first, Listed)
        assert sorted(names(first)) == ["c0", "c1", "c2", "c3", "c4"]
        assert {(each["kind"], each["apiVersion"]) for each in first.objects} == {("ConfigMap", "v1")}
        await asyncio.to_thread(api.create, path, config_map("new"))
        added = await it.next()
        assert isinstance(added, Added)
        await asyncio.to_thread(api.patch, f"{path}/new", {"data": {"key": "value"}})
        modified = await it.next()
        assert isinstance(modified, Modified)
        assert modified.object["data"] == {"key": "value"}
        await asyncio.to_thread(api.delete, f"{path}/new")
        deleted = await it.next()
        assert isinstance(deleted, Deleted)
        assert not deleted.inferred
        assert deleted.object["data"] == {"key": "value"}
        assert it.reflector.counters.lists == 1


async def test_an_object_that_no_longer_matches_the_selector_is_deleted(control_plane: Any, namespace: str) -> None:
    api, path = control_plane.api, CONFIG_MAPS.format(namespace)
    api.create(path, {"metadata": {"name": "mine", "labels": {"app": "web"}}})
    api.create(path, config_map("other"))

    async with reflected(control_plane.kubeconfig, ListWatch(path, label_selector="app=web")) as it:
        assert names(await it.next()) == ["mine"]
        await asyncio.to_thread(api.patch, f"{path}/mine", {"metadata": {"labels": {"app": "db"}}})
        assert isinstance(await it.next(), Deleted)


def test_an_api_server_that_is_restarted_is_followed_without_a_gap(start_control_plane: Any) -> None:
    plane = start_control_plane()
    api, path = plane.api, CONFIG_MAPS.format("default")
    for name in ("kept", "gone", "changed", "recreated"):
        api.create(path, config_map(name))

    def restart_and_change() -> None:
        plane.stop_one("kube-apiserver", kill=True)
        plane.start_apiserver()
        api.delete(f"{path}/gone")
        api.patch(f"{path}/changed", {"data": {"key": "value"}})
        api.delete(f"{path}/recreated")
        api.create(path, config_map("recreated"))

    async def test() -> None:
        async with reflected(plane.kubeconfig, ListWatch(path, field_selector="metadata.name!=kube-root-ca.crt")) as it:
            assert len(names(await it.next())) == 4
            await asyncio.to_thread(restart_and_change)
            changes = [await it.next() for _ in range(4)]
            assert sorted((type(change).__name__, *names(change)) for change in changes) == [
                ("Added", "recreated"),
                ("Deleted", "gone"),
                ("Deleted", "recreated"),
                ("Modified", "changed"),
            ]
            assert it.reflector.counters.failures > 0

    try:
        asyncio.run(test())
    finally:
        plane.stop()


async def test_what_may_not_be_read_yet_is_tried_until_it_may(control_plane: Any, namespace: str) -> None:
    api, path = control_plane.api, CONFIG_MAPS.format(namespace)
    api.create(path, config_map("secretive"))
    role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"

    def allow() -> None:
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]
        api.create(f"{role}/roles", {"metadata": {"name": "reader"}, "rules": rules})
        api.create(
            f"{role}/rolebindings",
            {
                "metadata": {"name": "reader"},
                "subjects": [{"kind": "User", "name": "watcher", "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
            },
        )

    async with reflected(control_plane.user("watcher"), ListWatch(path)) as it:
        await asyncio.wait_for(it.failure.wait(), 60)
        assert "configmaps is forbidden" in str(it.reflector.last_failure)
        await asyncio.to_thread(allow)
        assert names(await it.next()) == ["secretive"]
