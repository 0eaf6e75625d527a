"""podtrail deployed on a real node as docker/README.md says, and a user who wants to know what became of a Pod."""

import itertools
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from podtrail.cli import main
from tests.docker.manifests import KUBERNETES, ROOT
from tests.envtest.control_plane import DEADLINE
from tests.node.deployment import fetched, forwarded, pod_of, podtrail_image, rolled_out
from tests.node.node import ACTOR, Node
from tests.node.program_image import write_image

pytestmark = pytest.mark.node
README = (ROOT / "docker" / "README.md").read_text(encoding="utf-8")
PODS = "/api/v1/namespaces/default/pods"
MOMENTS = (
    "created by kubectl",
    "attempt 1: bound, node-1",
    "kubelet of node-1 takes it on",
    "sandbox, its network",
    "container main started",
    "ready\n",
)
"""From API server, scheduler, kubelet, containerd and the watch of Pods."""
USES = """
import aiohttp, cryptography.x509, grpc, re2, yaml, zstandard
from click.testing import CliRunner
from podtrail.cli import main

zstandard.ZstdCompressor().compress(b"x")
for command in (
    *("validate --config /etc/podtrail/config.yaml", "webhook --help", "trace --help"),
    *("generate --help", "reconstruct --help", "replay --help"),
):
    done = CliRunner().invoke(main, command.split(), catch_exceptions=False)
    assert done.exit_code == 0, (command, done.output)
"""
"""What the image is to have, in its Python."""


@pytest.fixture(scope="module")
def deployed(shared_node: Node) -> Node:
    """The node with all that is deployed; podtrail is one image everywhere."""
    node, image = shared_node, podtrail_image()
    with node.enclosure.network():
        node.load(image)
        node.release_tracing()
        steps = README.partition("## The whole story")[2]
        commands = "".join(re.findall(r"^```sh\n(.*?)^```", steps, re.MULTILINE | re.DOTALL)[:1])
        # As a user types them, in the repository's root.
        tools = node.folder / "bin"
        tools.mkdir()
        kubectl = tools / "kubectl"
        kubectl.write_text(f'#!/bin/sh\nexec {node.assets / "kubectl"} --kubeconfig={node.kubeconfig} "$@"\n')
        kubectl.chmod(0o755)
        done = subprocess.run(
            ["bash", "-exc", commands],
            cwd=ROOT,
            env={"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(node.folder)},
            capture_output=True,
            text=True,
            timeout=5 * DEADLINE,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr.count("+ kubectl apply") == 5
        wait_for_a_whole_story(node, node.folder)
    return node


@pytest.fixture
def cluster(deployed: Node) -> Iterator[Node]:
    """The node, with the test in its network."""
    with deployed.enclosure.network():
        yield deployed


def pod(name: str, scheduler: str) -> dict[str, Any]:
    probe = {"httpGet": {"port": 8080}, "periodSeconds": 1}
    container = {"name": "main", "image": ACTOR, "args": ["answer", ":8080"], "readinessProbe": probe}
    spec = {"schedulerName": scheduler, "containers": [container], "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def traced(node: Node, folder: Path, name: str, scheduler: str = "podtrail-scheduler") -> tuple[str, str]:
    """Creates a Pod as a user who traces it and waits until it is ready; returns the trace's id and the Pod's uid."""
    manifest = folder / f"{name}.yaml"
    manifest.write_text(yaml.safe_dump(pod(name, scheduler)))
    kubectl = [str(node.assets / "kubectl"), "apply", "-f", str(manifest)]
    done = subprocess.run(
        [sys.executable, "-m", "podtrail", "trace", f"--kubeconfig={node.kubeconfig}", "--wait", "--", *kubectl],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    trace = re.search(r"trace ([0-9a-f]{32}):", done.stderr)
    uid = re.search(rf"Pod default/{name}  uid (\S+)", done.stderr)
    assert trace, done.stderr
    assert uid, done.stderr
    return trace[1], uid[1]


def wait_for_a_whole_story(node: Node, folder: Path) -> None:
    """Returns once a Pod's story is whole.

    API server, kubelet and containerd were there before the agent. Their clients try to reach it ever more rarely, and
    drop spans that they cannot hold until then.
    """
    end = time.monotonic() + 3 * DEADLINE
    for number in itertools.count(1):
        _, uid = traced(node, folder, f"first-{number}")
        with forwarded(node, "podtrail", "deploy/podtrail-gateway", 15927) as page:
            try:
                told(page, uid, patience=30.0)
            except AssertionError:
                if time.monotonic() > end:
                    raise
            else:
                return


def told(page: str, uid: str, patience: float = DEADLINE) -> str:
    """What `podtrail why pod` says once it says everything; an AssertionError if that takes more seconds."""
    end = time.monotonic() + patience
    said = ""
    while time.monotonic() < end:
        said = CliRunner().invoke(main, ["why", "pod", uid, f"--endpoint={page}"]).output
        if all(moment in said for moment in MOMENTS):
            return said
        time.sleep(0.5)
    raise AssertionError(f"the story stayed incomplete:\n{said}")


def test_a_pods_story_is_complete_from_its_creation_until_it_is_ready(cluster: Node, tmp_path: Path) -> None:
    trace, uid = traced(cluster, tmp_path, "web")
    with forwarded(cluster, "podtrail", "deploy/podtrail-gateway", 15927) as page:
        said = told(page, uid)
        at = [said.index(moment) for moment in MOMENTS]
        assert at == sorted(at), said
        shown = fetched(f"{page}/pods/{uid}").decode()
        assert "container main started" in shown
        assert "POST /api/v1/namespaces/{:namespace}/pods/{:name}/binding" in shown
        creation = fetched(f"{page}/api/v1/traces/{trace}").decode()
        assert "POST /api/v1/namespaces/{:namespace}/pods" in creation


def test_beside_a_stock_scheduler_podtrail_reads_its_log_and_tells_the_same_story(
    cluster: Node, tmp_path: Path
) -> None:
    image, program = "registry.k8s.io/kube-scheduler:v1.37.1", cluster.assets / "kube-scheduler"
    cluster.load(write_image(tmp_path / "image.tar", image, program, at="/usr/local/bin/kube-scheduler"))
    for name in ("rbac", "scheduler-rbac", "deployment"):
        cluster.kubectl("apply", "-f", str(KUBERNETES / "stock" / f"{name}.yaml"))
    patch = f"--patch-file={KUBERNETES / 'gateway' / 'sender.patch.yaml'}"
    cluster.kubectl("-n", "kube-system", "patch", "deployment", "kube-scheduler-2", patch)
    rolled_out(cluster, "kube-system", "deploy/kube-scheduler-2")
    _, uid = traced(cluster, tmp_path, "stock", "kube-scheduler-2")
    with forwarded(cluster, "podtrail", "deploy/podtrail-gateway", 15927) as page:
        assert "default/stock is running" in told(page, uid)


def test_the_webhook_writes_the_users_trace_into_the_pod(cluster: Node, tmp_path: Path) -> None:
    trace, _ = traced(cluster, tmp_path, "annotated", "default-scheduler")
    annotations = cluster.api.get(f"{PODS}/annotated")["metadata"]["annotations"]
    assert annotations["tracing.k8s.io/traceparent"].split("-")[1] == trace


def test_what_runs_is_the_image_as_the_manifests_confine_it(cluster: Node) -> None:
    for namespace, app in (("podtrail", "podtrail-gateway"), ("kube-system", "podtrail-agent")):
        found = pod_of(cluster, namespace, app)
        name = found["metadata"]["name"]
        with pytest.raises(subprocess.CalledProcessError) as refused:
            cluster.kubectl("-n", namespace, "exec", name, "--", "sh", "-c", "id -u; echo > /opt/podtrail/new")
        assert refused.value.output.strip() == "10001"
        assert "Read-only file system" in refused.value.stderr


def test_all_that_podtrail_is_for_works_from_the_image_and_it_is_small(cluster: Node) -> None:
    gateway = ["-n", "podtrail", "exec", "deploy/podtrail-gateway", "--"]
    cluster.kubectl(*gateway, "/opt/podtrail/bin/podtrail", "--version")
    cluster.kubectl(*gateway, "/opt/podtrail/bin/python", "-c", USES)
    mebibytes = int(cluster.kubectl(*gateway, "du", "-sm", "/opt/podtrail").split()[0])
    assert mebibytes <= 125


def test_pods_are_created_and_get_ready_while_parts_of_podtrail_are_gone_and_later_ones_are_told(
    cluster: Node, tmp_path: Path
) -> None:
    cluster.kubectl("-n", "podtrail", "scale", "deploy/podtrail-webhook", "--replicas=0")
    gateway = pod_of(cluster, "podtrail", "podtrail-gateway")["metadata"]["name"]
    cluster.kubectl("-n", "podtrail", "delete", "pod", gateway, "--grace-period=0", "--force", "--wait=false")
    cluster.stop_one("kubelet", kill=True)
    cluster.start_kubelet()
    traced(cluster, tmp_path, "meanwhile")
    cluster.kubectl("-n", "podtrail", "scale", "deploy/podtrail-webhook", "--replicas=2")
    rolled_out(cluster, "podtrail", "deploy/podtrail-webhook", "deploy/podtrail-gateway")
    _, uid = traced(cluster, tmp_path, "later")
    with forwarded(cluster, "podtrail", "deploy/podtrail-gateway", 15927) as page:
        assert "default/later is running" in told(page, uid)
