"""The manifests of docker/kubernetes are what a real API server takes, and their roles are enough and no more."""

import asyncio
import contextlib
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from podtrail_kubernetes.errors import StatusError
from podtrail_kubernetes.reflector import Change, ListWatch, Reflector
from podtrail_kubernetes.rest_client import RestClient

from tests.docker.manifests import COLLECTIONS, KUBERNETES, ROOT, collection_of, documents, stores
from tests.envtest.control_plane import Refusal

pytestmark = pytest.mark.control_plane
README = (ROOT / "docker" / "README.md").read_text(encoding="utf-8")


def texts() -> list[tuple[str, str]]:
    """Return every manifest, and those that can be given a store once more with it."""
    whole = [path for path in sorted(KUBERNETES.rglob("*.yaml")) if not path.name.endswith(".patch.yaml")]
    shown = [path for path in whole if path.parent.name != "host" and path.name != "kustomization.yaml"]
    plain = [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in shown]
    return plain + [(f"{place} with a store", text) for place, text in stores().items()]


@pytest.mark.parametrize(("place", "text"), texts(), ids=lambda value: value if "\n" not in value else "")
def test_the_api_server_takes_the_manifest_and_knows_each_field(control_plane: Any, place: str, text: str) -> None:
    for document in filter(None, yaml.safe_load_all(text)):
        if document["apiVersion"].startswith("cert-manager.io/"):
            continue  # of another project
        if document["kind"] == "Namespace":
            with contextlib.suppress(Refusal):
                control_plane.api.namespace(document["metadata"]["name"])  # those behind it are in it
        target = f"{collection_of(document)}/{document['metadata']['name']}"
        query = "dryRun=All&fieldValidation=Strict&fieldManager=podtrail-tests&force=true"
        control_plane.api.request("PATCH", f"{target}?{query}", document, "application/apply-patch+yaml")


@pytest.mark.parametrize("kind", ["scheduler", "stock"])
def test_the_patch_for_senders_gives_podtrail_the_token_and_changes_nothing_else(control_plane: Any, kind: str) -> None:
    (deployment,) = [one for one in documents(KUBERNETES / kind / "deployment.yaml") if one["kind"] == "Deployment"]
    (patch,) = documents(KUBERNETES / "gateway" / "sender.patch.yaml")
    target = f"{collection_of(deployment)}/{deployment['metadata']['name']}"
    apply = "application/apply-patch+yaml"
    before = control_plane.api.request("PATCH", f"{target}?fieldManager=podtrail-tests&force=true", deployment, apply)
    try:
        query = "dryRun=All&fieldValidation=Strict"
        after = control_plane.api.request("PATCH", f"{target}?{query}", patch, "application/strategic-merge-patch+json")
    finally:
        control_plane.api.request("DELETE", target)
    was, now = (
        {container["name"]: container for container in one["spec"]["template"]["spec"]["containers"]}
        for one in (before, after)
    )
    ours, theirs = now.pop("podtrail"), was.pop("podtrail")
    assert was == now
    assert ours["image"] == theirs["image"]
    assert "--set=extensions.bearertokenauth.filename=/etc/podtrail-gateway/token" in ours["args"]
    assert {"name": "gateway", "mountPath": "/etc/podtrail-gateway", "readOnly": True} in ours["volumeMounts"]


def test_the_recipe_for_a_kubeconfig_asks_for_a_certificate_that_names_the_user(
    control_plane: Any, tmp_path: Path
) -> None:
    recipe = re.search(r"^(openssl req .*?)^kubectl create -f - (<<EOF\n.*?^EOF\n)", README, re.DOTALL | re.MULTILINE)
    assert recipe
    made = subprocess.run(
        ["bash", "-ec", f"{recipe[1]}cat {recipe[2]}"], cwd=tmp_path, check=True, capture_output=True, timeout=60
    )
    wanted = control_plane.api.request(
        "POST",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests?dryRun=All&fieldValidation=Strict",
        yaml.safe_load(made.stdout),
    )
    signed = ["openssl", "req", "-in", "podtrail.csr", "-noout", "-subject", "-nameopt", "RFC2253"]
    subject = subprocess.run(signed, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=600).stdout
    assert subject.strip() == "subject=CN=podtrail"
    assert wanted["spec"]["usages"] == ["client auth"]


def test_podtrail_beside_a_stock_scheduler_may_look_and_nothing_else(control_plane: Any, namespace: str) -> None:
    for document in documents(KUBERNETES / "stock" / "rbac.yaml"):
        control_plane.api.create(COLLECTIONS[document["kind"]], document)

    async def test() -> None:
        connection = await RestClient.open(control_plane.user("podtrail"), agent="podtrail-tests")
        for path in ("/api/v1/pods", "/api/v1/nodes", "/apis/events.k8s.io/v1/events"):
            listed = asyncio.Event()

            async def take(change: Change, listed: asyncio.Event = listed) -> None:
                listed.set()

            reflector = Reflector(connection, ListWatch(path), random.Random(1))
            task = asyncio.create_task(reflector.run(take))
            await asyncio.wait_for(listed.wait(), 60)
            task.cancel()
            await asyncio.wait([task])
        for path in ("/api/v1/secrets", "/api/v1/configmaps"):
            with pytest.raises(StatusError, match="is forbidden"):
                await connection.request("GET", path)
        for path in ("pods", "configmaps"):
            with pytest.raises(StatusError, match="is forbidden"):
                await connection.request("POST", f"/api/v1/namespaces/{namespace}/{path}", {"metadata": {"name": "x"}})
        await connection.close()

    asyncio.run(test())
