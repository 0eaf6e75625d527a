"""The kit's own node: what a cluster's users expect of one, and what tests may do to it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.envtest.control_plane import DEFAULT_ASSETS as CONTROL_PLANE_ASSETS
from tests.node.fixtures import DEFAULT_ASSETS
from tests.node.node import ACTOR, BINARIES, MISSING_IMAGE, Node

HERE = Path(__file__).parent
on_a_node = pytest.mark.node


def pod(name: str, *arguments: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": ACTOR, "args": list(arguments)} | spec.pop("container", {})
    whole = {"containers": [container], "terminationGracePeriodSeconds": 1, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


def is_ready(found: Any) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in found["status"].get("conditions", ()))


def test_the_build_makes_what_the_node_starts() -> None:
    script = (HERE / "build.sh").read_text()
    for name in BINARIES:
        assert re.search(rf"^(for name in|make) .*\b{name}\b", script, re.MULTILINE), name


def test_the_node_is_of_the_control_planes_release() -> None:
    named = re.findall(r"(?:node|envtest)-([\d.]*\d)", (HERE / "build.sh").read_text())
    assert {DEFAULT_ASSETS.name.removeprefix("node-"), *named} == {CONTROL_PLANE_ASSETS.name.removeprefix("envtest-")}


@on_a_node
def test_a_pod_runs_becomes_ready_is_logged_and_goes(node: Node, node_namespace: str) -> None:
    pods = f"/api/v1/namespaces/{node_namespace}/pods"
    probe = {"readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 1}}
    node.api.create(pods, pod("web", "answer", ":8080", container=probe))
    node.wait_for(f"{pods}/web", is_ready)
    node.api.create(pods, pod("over", "end", "3", restartPolicy="Never"))
    over = node.wait_for(f"{pods}/over", lambda found: found["status"]["phase"] == "Failed")
    assert over["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert node.container_log(f"{node_namespace}/over") == "actor: ends with 3\n"
    node.api.delete(f"{pods}/web", grace=1)
    node.wait_for(pods, lambda found: [each["metadata"]["name"] for each in found["items"]] == ["over"])


@on_a_node
def test_an_image_that_nobody_has_is_told_at_once(node: Node, node_namespace: str) -> None:
    pods = f"/api/v1/namespaces/{node_namespace}/pods"
    node.api.create(pods, pod("hopeless", container={"image": MISSING_IMAGE}))
    node.wait_for(
        f"{pods}/hopeless",
        lambda found: any(
            each["state"].get("waiting", {}).get("reason") in ("ErrImagePull", "ImagePullBackOff")
            for each in found["status"].get("containerStatuses", ())
        ),
    )


@on_a_node
def test_a_pod_reaches_a_deployment_by_the_name_of_its_service(node: Node, node_namespace: str) -> None:
    probe = {"readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 1}}
    template = pod("unnamed", "answer", ":8080", container=probe)
    labels = {"app": "web"}
    node.kubectl(
        *("apply", f"--namespace={node_namespace}", "-f", "-"),
        stdin=json.dumps(
            {
                "apiVersion": "v1",
                "kind": "List",
                "items": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "Deployment",
                        "metadata": {"name": "web"},
                        "spec": {
                            "selector": {"matchLabels": labels},
                            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
                        },
                    },
                    {
                        "apiVersion": "v1",
                        "kind": "Service",
                        "metadata": {"name": "web"},
                        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
                    },
                ],
            }
        ),
    )
    pods = f"/api/v1/namespaces/{node_namespace}/pods"
    node.api.create(pods, pod("client", "ask", "http://web"))
    node.wait_for(f"{pods}/client", is_ready)
    node.wait_for(f"{pods}/client/log", lambda said: isinstance(said, str) and said.endswith("actor: was answered\n"))


@on_a_node
@pytest.mark.parametrize("name", ["kubelet", "containerd", "kube-controller-manager"])
def test_pods_run_on_while_a_component_is_killed_and_started_again(node: Node, node_namespace: str, name: str) -> None:
    pods = f"/api/v1/namespaces/{node_namespace}/pods"
    node.api.create(pods, pod("before", "wait"))
    before = node.wait_for(f"{pods}/before", is_ready)
    node.stop_one(name, kill=True)
    {
        "kubelet": node.start_kubelet,
        "containerd": node.start_containerd,
        "kube-controller-manager": node.start_controller_manager,
    }[name]()
    node.api.create(pods, pod("after", "wait"))
    node.wait_for(f"{pods}/after", is_ready)
    status = node.api.get(f"{pods}/before")["status"]["containerStatuses"][0]
    assert status["restartCount"] == 0
    assert status["containerID"] == before["status"]["containerStatuses"][0]["containerID"]
