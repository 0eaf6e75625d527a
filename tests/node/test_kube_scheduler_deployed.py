"""podtrail-kube-scheduler on a real node by its manifests, and what podtrail beside it tells of a Pod that it bound."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.cli.kubectl.arguments import PAGE_PORT
from tests.docker.manifests import KUBERNETES, ROOT, documents
from tests.envtest.control_plane import DEADLINE, Refusal
from tests.node.deployment import fetched, forwarded, kube_scheduler_image, podtrail_image, rolled_out
from tests.node.node import ACTOR, Node

pytestmark = pytest.mark.node
MANIFESTS = KUBERNETES / "kube-scheduler"
KEEP_ALL = "--set=processors.tail_sampling.policies=[{name: all, type: always_sample}]"
KEY = "tracing.k8s.io/traceparent"


@pytest.fixture(scope="module")
def archives() -> tuple[Path, Path]:
    """Both images; asked for before a node is started."""
    return podtrail_image(), kube_scheduler_image()


@pytest.fixture(scope="module")
def images(archives: tuple[Path, Path], shared_node: Node) -> Node:
    """The node with both images."""
    with shared_node.enclosure.network():
        for archive in archives:
            shared_node.load(archive)
    return shared_node


@pytest.fixture
def cluster(images: Node, node: Node, node_namespace: str) -> tuple[Node, str]:
    """The node, with the test in its network, and a namespace."""
    return node, node_namespace


def running(node: Node, namespace: str, scheduler: str, name: str = "web") -> Any:
    """A new Pod of the scheduler's once it runs."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    container = {"name": "main", "image": ACTOR, "args": ["wait"]}
    spec = {"schedulerName": scheduler, "containers": [container], "terminationGracePeriodSeconds": 1}
    node.api.create(pods, {"metadata": {"name": name}, "spec": spec})
    return node.wait_for(f"{pods}/{name}", lambda pod: pod["status"].get("phase") == "Running")


def assert_told(
    node: Node, target: str, port: int, pod: dict[str, Any], scheduler: str, patience: float = DEADLINE
) -> None:
    """`podtrail why pod` has the attempt with its parts; the spans are those that the Pod's annotation names."""
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    trace = f"api/v1/traces/{pod['metadata']['annotations'][KEY].split('-')[1]}"
    end = time.monotonic() + patience
    while True:  # a forward ends when podtrail does not listen yet, and spans come after the decision about them
        try:
            with forwarded(node, "kube-system", target, port) as page:
                said = CliRunner().invoke(main, ["why", "pod", name, f"--endpoint={page}"]).output
                assert f"{name} was scheduled on node-1" in said
                attempt = CliRunner().invoke(main, ["why", "pod", name, "--attempt", "1", f"--endpoint={page}"]).output
                spans = fetched(f"{page}/{trace}").decode()
                break
        except (AssertionError, OSError):
            if time.monotonic() > end:
                raise
        time.sleep(0.2)
    assert "bind, plugin DefaultBinder" in attempt, attempt
    for part in ("SchedulePod", "plugin: NodeResourcesFit", f'"{scheduler}"', '"kube-scheduler"', '"v1.37.'):
        assert part in spans, (part, spans)


def test_a_second_scheduler_as_a_deployment_binds_pods_and_podtrail_beside_it_tells_how(
    cluster: tuple[Node, str],
) -> None:
    node, namespace = cluster
    name, of_system = "podtrail-kube-scheduler", "/api/v1/namespaces/kube-system"
    node.kubectl("apply", "-f", str(MANIFESTS / "rbac.yaml"))
    objects = documents(MANIFESTS / "deployment.yaml")
    spec = objects[-1]["spec"]["template"]["spec"]
    wanted = {"metadata": {"name": "restricted"}, "spec": spec | {"serviceAccountName": "default"}}
    spec["containers"][1]["args"] = ["run", "--config=/etc/podtrail/config.yaml", KEEP_ALL]
    node.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    try:
        rolled_out(node, "kube-system", f"deploy/{name}")
        for number in range(4):  # what is scheduled while podtrail starts on a busy machine may be lost
            pod = running(node, namespace, name, f"web-{number}")
            lease = node.api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}")
            leader = lease["spec"]["holderIdentity"].rpartition("_")[0]
            try:
                assert_told(node, f"pod/{leader}", PAGE_PORT, pod, name, patience=30 if number < 3 else DEADLINE)
                break
            except AssertionError:
                if number == 3:
                    raise
        statuses = node.api.get(f"{of_system}/pods/{leader}")["status"]["containerStatuses"]
        assert [each["restartCount"] for each in statuses] == [0, 0]
        node.api.patch(
            f"/api/v1/namespaces/{namespace}",
            {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
        )
        node.api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", wanted)
    finally:
        node.kubectl("-n", "kube-system", "delete", "deployment", name, "--wait=false")


@pytest.fixture
def without_scheduler(cluster: tuple[Node, str]) -> Iterator[None]:
    """Without the node's own scheduler, and afterwards with it and without static Pods again."""
    node, _ = cluster
    node.stop_one("kube-scheduler")
    yield
    for manifest in node.manifests.iterdir():
        manifest.unlink()
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        try:
            node.api.get("/api/v1/namespaces/kube-system/pods/kube-scheduler-node-1")
        except Refusal:
            break
        time.sleep(0.2)
    node.start_scheduler()


@pytest.mark.usefixtures("without_scheduler")
def test_the_static_pod_takes_the_place_of_kubeadms_scheduler(cluster: tuple[Node, str]) -> None:
    node, namespace = cluster
    host = node.folder / "etc"
    tracing = (MANIFESTS / "host" / "tracing.yaml").read_text()
    files = {
        "kubernetes/scheduler.conf": node.user("system:kube-scheduler").read_text(),
        # The agent of other tests has the ports that podtrail has by default.
        "podtrail-kube-scheduler/tracing.yaml": tracing.replace("4317", "5317"),
        "podtrail/config.yaml": (ROOT / "docker" / "sidecar.yaml").read_text(),
    }
    for path, text in files.items():
        (host / path).parent.mkdir(parents=True, exist_ok=True)
        (host / path).write_text(text)
    (pod,) = documents(MANIFESTS / "static-pod.yaml")
    for volume in pod["spec"]["volumes"]:
        volume["hostPath"]["path"] = volume["hostPath"]["path"].replace("/etc/", f"{host}/")
    readme = (ROOT / "docker" / "README.md").read_text()
    moved = re.search(r"^```yaml\n(args:\n.*?localhost:5317.*?)```", readme, re.MULTILINE | re.DOTALL)
    assert moved
    podtrail = pod["spec"]["containers"][1]
    podtrail["args"] = [*yaml.safe_load(moved[1])["args"], KEEP_ALL]
    podtrail["livenessProbe"]["httpGet"]["port"] = 15133
    (node.manifests / "kube-scheduler.yaml").write_text(yaml.safe_dump(pod))
    bound = running(node, namespace, "default-scheduler")
    node.wait_for(
        "/api/v1/namespaces/kube-system/pods/kube-scheduler-node-1",
        lambda mirror: all(each["ready"] for each in mirror["status"].get("containerStatuses", [{"ready": False}])),
    )
    assert_told(node, "pod/kube-scheduler-node-1", 16927, bound, "default-scheduler")
