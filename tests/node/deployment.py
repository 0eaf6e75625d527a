"""podtrail on a node as a user deploys it: the image, and the manifests of docker/kubernetes as they stand."""

import contextlib
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.envtest.control_plane import DEADLINE
from tests.node.node import Node


def podtrail_image() -> Path:
    """Return the archive of podtrail's image; skip the test if image.sh has not built it from the files as they are."""
    script = Path(__file__).parent / "image.sh"
    asked = subprocess.run([script, "--path"], check=True, capture_output=True, text=True, timeout=DEADLINE)
    archive = Path(asked.stdout.strip())
    if not archive.is_file():
        pytest.skip("needs the image of podtrail as it is now; tests/node/image.sh builds it, as root on Debian")
    return archive


def kube_scheduler_image() -> Path:
    """Return the archive of podtrail-kube-scheduler's image; skip the test if it is not built as it is now."""
    script = Path(__file__).parents[2] / "instrumentation" / "go" / "image.sh"
    asked = subprocess.run([script, "--path"], check=True, capture_output=True, text=True, timeout=DEADLINE)
    archive = Path(asked.stdout.strip())
    if not archive.is_file():
        pytest.skip("needs the image of podtrail-kube-scheduler as it is now; instrumentation/go/image.sh builds it")
    return archive


def rolled_out(node: Node, namespace: str, *workloads: str) -> None:
    """Returns when all Pods of the workloads are ready."""
    for name in workloads:
        node.kubectl("-n", namespace, "rollout", "status", name, f"--timeout={DEADLINE - 10}s")


@contextlib.contextmanager
def forwarded(node: Node, namespace: str, target: str, port: int) -> Iterator[str]:
    """The address at which a port of a Pod can be reached, as a user does it."""
    command = [str(node.assets / "kubectl"), f"--kubeconfig={node.kubeconfig}", "-n", namespace]
    with subprocess.Popen(
        [*command, "port-forward", target, f":{port}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", said)
        assert found, said
        try:
            yield f"http://127.0.0.1:{found[1]}"
        finally:
            process.terminate()
            process.wait(DEADLINE)


def fetched(url: str) -> bytes:
    """What is at an address."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        body: bytes = answer.read()
        return body


def pod_of(node: Node, namespace: str, app: str) -> Any:
    """The first Pod of a workload that is not going."""
    pods = node.api.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector=app.kubernetes.io%2Fname%3D{app}")["items"]
    return next(each for each in pods if "deletionTimestamp" not in each["metadata"])
