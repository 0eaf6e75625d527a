"""`podtrail trace` where Pods run: what changes its connection's protocol passes, and --wait sees Pods get ready."""

import re
import signal
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.trace.conftest import Done, Start, manifest
from tests.node.node import ACTOR, MISSING_IMAGE, Node

pytestmark = pytest.mark.node
Trace = Callable[..., Done]


def running(name: str, image: str = ACTOR) -> dict[str, object]:
    probe = {"httpGet": {"port": 8080}, "periodSeconds": 1}
    container = {"name": "main", "image": image, "args": ["answer", ":8080"], "readinessProbe": probe}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def deployment(name: str, replicas: int) -> dict[str, object]:
    pod = running(name)
    template = {"metadata": {"labels": {"app": name}}, "spec": pod["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


PAGE = (Path(__file__).parents[3] / "docs" / "trace.md").read_text(encoding="utf-8")
SHOWN = PAGE.partition("$ podtrail trace --wait -- kubectl apply -f shop.yaml\n")[2].partition("```")[0]


def shape(told: str) -> str:
    """What is the same in every run."""
    varies = r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+\.\d\d s|\S+/shop(-\S+)?|on node-\S+"
    return re.sub(varies, "*", told)


@pytest.fixture
def kubectl(node: Node) -> Path:
    return node.assets / "kubectl"


@pytest.fixture
def here(node: Node) -> dict[str, str]:
    return {"KUBECONFIG": str(node.kubeconfig)}


@pytest.fixture
def web(trace: Trace, kubectl: Path, here: dict[str, str], node_namespace: str, tmp_path: Path) -> str:
    """A Pod that answers, made by a traced command that waited for it."""
    x = manifest(tmp_path / "web.json", running("web"))
    done = trace("--wait", "--", kubectl, "-n", node_namespace, "apply", "-f", x, environ=here)
    assert done.code == 0, done.told
    steps = r"\(created [\d.]+ s, scheduled on \S+ [\d.]+ s, started [\d.]+ s\)"
    assert re.search(rf"podtrail: {node_namespace}/web ready [\d.]+ s after the command began {steps}\n", done.told)
    return node_namespace


def test_wait_follows_the_pods_that_controllers_make_of_a_deployment(
    trace: Trace, node: Node, kubectl: Path, here: dict[str, str], node_namespace: str, tmp_path: Path
) -> None:
    x = manifest(tmp_path / "x.json", deployment("shop", 2))
    done = trace("--wait", "--", kubectl, "-n", node_namespace, "apply", "-f", x, environ=here)
    assert done.code == 0, done.told
    pods = node.api.get(f"/api/v1/namespaces/{node_namespace}/pods")["items"]
    told = sorted(
        re.findall(rf"Pod {node_namespace}/(\S+)  uid (\S+)  of Deployment {node_namespace}/shop\n", done.told)
    )
    assert told == sorted((pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in pods)
    assert len(told) == 2
    assert shape(done.out + done.told) == shape(SHOWN)
    status = node.api.get(f"/apis/apps/v1/namespaces/{node_namespace}/deployments/shop")["status"]
    assert status["readyReplicas"] == 2
    forced = ("apply", "--server-side", "--force-conflicts", "-f", x)
    again = trace("--wait", "--", kubectl, "-n", node_namespace, *forced, environ=here)
    assert again.code == 0, again.told
    assert "Pod" not in again.told  # those that are there are of the first run
    restart = ("rollout", "restart", "deployment", "shop")
    restarted = trace("--wait", "--", kubectl, "-n", node_namespace, *restart, environ=here)
    assert restarted.code == 0, restarted.told
    assert len(re.findall(r"  Pod .*  of Deployment", restarted.told)) == 2
    assert not set(re.findall(r"uid (\S+)", restarted.told)) & {uid for _, uid in told}


def test_wait_says_what_a_pod_without_an_image_waits_for(
    trace: Trace, kubectl: Path, here: dict[str, str], node_namespace: str, tmp_path: Path
) -> None:
    x = manifest(tmp_path / "x.json", running("hopeless", MISSING_IMAGE))
    waits = ("--wait", "--timeout", "6s")
    done = trace(*waits, "--", kubectl, "-n", node_namespace, "create", "-f", x, environ=here)
    assert done.code == 1
    for said in (r"podtrail: \S+/hopeless waits", "    not ready"):
        assert re.search(said + r": container main: (ErrImagePull|ImagePullBackOff): ", done.told), done.told
    assert "last warning: Failed: " in done.told


@pytest.mark.parametrize("websockets", ["true", "false"], ids=["websocket", "spdy"])
def test_exec_passes_with_output_and_exit_code(
    websockets: str, trace: Trace, kubectl: Path, here: dict[str, str], web: str
) -> None:
    environ = here | {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    done = trace("--", kubectl, "-n", web, "exec", "web", "--", "/actor", "end", "3", environ=environ)
    assert (done.code, done.out) == (3, "actor: ends with 3\n"), done.told


@pytest.mark.parametrize("websockets", ["true", "false"], ids=["websocket", "spdy"])
def test_port_forward_passes(websockets: str, start: Start, kubectl: Path, here: dict[str, str], web: str) -> None:
    environ = here | {"KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets}
    process = start("--", kubectl, "-n", web, "port-forward", "web", ":8080", environ=environ)
    assert process.stdout is not None
    said = process.stdout.readline()
    port = re.search(r"127\.0\.0\.1:(\d+)", said)
    assert port, said
    for _ in range(3):
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/", timeout=600) as answer:
            assert answer.read() == b"actor answers\n"
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=600)
    assert process.returncode == 128 + signal.SIGTERM, told
    assert "kubectl port-forward" in told


def test_logs_are_followed_to_their_end(
    trace: Trace, kubectl: Path, here: dict[str, str], node_namespace: str, tmp_path: Path
) -> None:
    pod = running("over")
    spec = {"containers": [{"name": "main", "image": ACTOR, "args": ["end", "3", "2s"]}], "restartPolicy": "Never"}
    x = manifest(tmp_path / "x.json", pod | {"spec": spec})
    made = trace("--wait", "--", kubectl, "-n", node_namespace, "create", "-f", x, environ=here)
    assert made.code in (0, 1)  # ready for two seconds, and then failed
    done = trace("--", kubectl, "-n", node_namespace, "logs", "-f", "over", environ=here)
    assert (done.code, done.out) == (0, "actor: ends with 3\n"), done.told
