"""The manifests of docker/kubernetes are what a real API server takes, and their roles are enough and no more."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from podtrail_scheduler.cluster.kubernetes.connection import Connection, Refused
from podtrail_scheduler.cluster.kubernetes.reflector import Change, Reflector, Resource

from tests.docker.manifests import COLLECTIONS, KUBERNETES, documents

pytestmark = pytest.mark.control_plane


@pytest.mark.parametrize(
    "path",
    [p for p in sorted(KUBERNETES.rglob("*.yaml")) if p.parent.name != "host"],
    ids=lambda path: str(path.relative_to(KUBERNETES)),
)
def test_the_api_server_takes_the_manifest_and_knows_each_field(control_plane: Any, path: Path) -> None:
    for document in documents(path):
        target = f"{COLLECTIONS[document['kind']]}/{document['metadata']['name']}"
        query = "dryRun=All&fieldValidation=Strict&fieldManager=podtrail-tests&force=true"
        control_plane.api.request("PATCH", f"{target}?{query}", document, "application/apply-patch+yaml")


def test_podtrail_beside_a_stock_scheduler_may_look_and_nothing_else(control_plane: Any, namespace: str) -> None:
    for document in documents(KUBERNETES / "stock" / "rbac.yaml"):
        control_plane.api.create(COLLECTIONS[document["kind"]], document)

    async def test() -> None:
        connection = await Connection.open(control_plane.user("podtrail"), agent="podtrail-tests")
        for path in ("/api/v1/pods", "/api/v1/nodes", "/apis/events.k8s.io/v1/events"):
            listed = asyncio.Event()

            async def take(change: Change, listed: asyncio.Event = listed) -> None:
                listed.set()

            reflector = Reflector(connection, Resource(path), random.Random(1))
            task = asyncio.create_task(reflector.run(take))
            await asyncio.wait_for(listed.wait(), 60)
            task.cancel()
            await asyncio.wait([task])
        for path in ("/api/v1/secrets", "/api/v1/configmaps"):
            with pytest.raises(Refused, match="is forbidden"):
                await connection.request("GET", path)
        for path in ("pods", "configmaps"):
            with pytest.raises(Refused, match="is forbidden"):
                await connection.request("POST", f"/api/v1/namespaces/{namespace}/{path}", {"metadata": {"name": "x"}})
        await connection.close()

    asyncio.run(test())
