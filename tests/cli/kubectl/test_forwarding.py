"""`kubectl podtrail` on a real node: kubectl forwards the port through API server, kubelet and containerd."""

import subprocess
import sys
from pathlib import Path

import pytest

from podtrail.testing.attempts import no_room
from tests.envtest.control_plane import DEADLINE
from tests.extensions.held_page import held_page
from tests.node.node import ACTOR, Node

pytestmark = pytest.mark.node


def asked(node: Node, *arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """What `kubectl podtrail` says, run as kubectl runs its plugins."""
    beside = Path(sys.executable).parent
    environ = {"PATH": f"{node.assets}:{beside}", "HOME": str(folder), "KUBECONFIG": str(node.kubeconfig)}
    return subprocess.run(
        [node.assets / "kubectl", "podtrail", *arguments],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )


def test_a_page_behind_a_real_port_forward_answers(node: Node, node_namespace: str, tmp_path: Path) -> None:
    pods = f"/api/v1/namespaces/{node_namespace}/pods"
    # On the network of the node, where the page of this test is, too.
    spec = {
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "gateway", "image": ACTOR, "args": ["wait"]}],
    }
    labels = {"app.kubernetes.io/name": "podtrail-gateway"}
    node.api.create(pods, {"metadata": {"name": "gw", "labels": labels}, "spec": spec})
    node.wait_for(f"{pods}/gw", lambda found: found["status"]["phase"] == "Running")
    with held_page(no_room()) as page:
        where = ("--podtrail-namespace", node_namespace, "--page-port", page.rstrip("/").rpartition(":")[2])
        done = asked(node, "why", "web-0", *where, folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("default/web-0 is Pending")
    done = asked(node, "why", "web-0", *where, folder=tmp_path)
    assert done.returncode == 1
    assert f"{node_namespace}/gw has no page on port" in done.stderr
